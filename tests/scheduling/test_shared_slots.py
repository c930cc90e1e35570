"""Slots that groups of members share, compared with a count of free members minute by minute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.query import Query, Requirement, Slots, shared, slots
from scheduling.windows import MINUTE
from tests.scheduling import oracle
from tests.scheduling.strategies import at, members_of, questions
from tests.scheduling.test_query import laid


@st.composite
def cases(draw):
    """A query, the calendars of each member, and groups as pairs of members and their required number."""
    query = draw(questions(longest=1500, align=True))
    query = replace(query, limit=draw(st.none() | st.integers(1, 5)))
    members = draw(members_of(query, most=6).filter(bool))
    some = st.lists(st.integers(0, len(members) - 1), min_size=1, unique=True).map(sorted)
    group = some.flatmap(lambda chosen: st.tuples(st.just(chosen), st.integers(1, len(chosen) + 1)))
    return query, members, draw(st.lists(group, min_size=1, max_size=4))


def expected(query, members, groups):
    """The starts, each with its free members, found by looking at every minute of every possible slot."""
    free = []
    for member in members:
        minutes = set()
        for start, end in oracle.free(query, member):
            minutes.update(range(start, end, MINUTE))
        free.append(minutes)
    found = []
    for start in range(query.start, query.end, MINUTE):
        if oracle.into_local_day(start, query.zone) % query.stride:
            continue
        whole = range(start, start + query.duration, MINUTE)
        here = [n for n, minutes in enumerate(free) if all(minute in minutes for minute in whole)]
        if all(len(set(here) & set(chosen)) >= required for chosen, required in groups):
            found.append((start, here))
    return found[: query.limit]


def pairs(found):
    """The shared slots as pairs of a start and its members."""
    by_start = {}
    for start, member in zip(found.starts.tolist(), found.members.tolist(), strict=True):
        by_start.setdefault(start, []).append(member)
    return list(by_start.items())


def shared_slots(query, members, groups):
    found = slots(replace(query, limit=None), *laid(members))
    requirements = [Requirement(np.array(chosen), required) for chosen, required in groups]
    return shared(found, requirements, len(members), query.limit)


# Fewer rarely have a limit behind starts that do not count.
@pytest.mark.slow
@settings(max_examples=max(300, settings.default.max_examples))
@given(cases())
def test_start_is_offered_exactly_if_each_group_has_enough_free(case):
    query, members, groups = case
    assert pairs(shared_slots(query, members, groups)) == expected(query, members, groups)


def test_the_limit_counts_only_starts_that_meet_the_requirements():
    nine, hour = at("2026-11-20T09:00"), 60 * MINUTE
    query = Query(nine, nine + 3 * hour, hour, align_clock=True, limit=1)
    members = [[[(nine, nine + hour)]], []]
    assert pairs(shared_slots(query, members, [([0, 1], 2)])) == [(nine + hour, [0, 1])]


def test_shared_slots_of_empty_input_are_empty():
    nothing = Slots(np.array([], np.int64), np.array([], np.int64), MINUTE)
    assert len(shared(nothing, [Requirement(np.array([0]), 1)], 1)) == 0


def test_a_requirement_above_the_size_of_its_group_is_never_met():
    query = Query(at("2026-11-20"), at("2026-11-21"), 30 * MINUTE, align_clock=True)
    assert pairs(shared_slots(query, [[], []], [([0, 1], 2)]))
    assert pairs(shared_slots(query, [[], []], [([0, 1], 3)])) == []

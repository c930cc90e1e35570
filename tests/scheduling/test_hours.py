"""Members with hours, paddings and notice of their own, compared with each member alone, minute by minute."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.explain import explain
from scheduling.hours import Dates, Hours, within_all, within_each
from scheduling.layers import layers
from scheduling.query import Own, Query, free, max_slots_of, slots, slots_of_each
from scheduling.windows import DAY, MINUTE, DateOverride, Window
from tests.scheduling import oracle
from tests.scheduling.strategies import at, hours_of, members_of, questions, terms_of
from tests.scheduling.test_query import laid


@st.composite
def asked(draw):
    """A query, the calendars of members, and what differs for some of them."""
    query = draw(questions(longest=1500))
    members = draw(members_of(query))
    own = [draw(st.none() | terms_of(query)) for _ in members]
    return query, members, own


@given(asked())
def test_each_member_is_offered_what_they_are_alone(case):
    query, members, own = case
    found = slots(query, *laid(members), own)
    expected = sorted(
        (start, n)
        for n, member in enumerate(members)
        for start in oracle.slots_of(query.of_member(own[n]), member)
    )
    assert list(zip(found.starts.tolist(), found.members.tolist(), strict=True)) == expected


@given(asked())
def test_free_time_slots_and_layers_of_each_member_are_those_of_the_member_alone(case):
    query, members, own = case
    stretches, each = free(query, *laid(members), own), slots_of_each(query, *laid(members), own)
    parts = layers(query, *laid(members), own)
    for n, member in enumerate(members):
        alone = query.of_member(own[n])
        assert stretches.group(n).pairs() == oracle.free(alone, member)
        starts = [start for start, _ in each.group(n).pairs()]
        assert starts == oracle.slots_of(alone, member)
        one = layers(alone, *laid([member]))
        assert parts.busy.group(n).pairs() == one.busy.group(0).pairs()
        assert parts.tolerated.group(n).pairs() == one.tolerated.group(0).pairs()


@given(asked())
def test_no_member_has_more_slots_than_are_counted(case):
    query, members, own = case
    assert len(slots(query, *laid(members), own)) <= max_slots_of(query, len(members), own)


@given(asked(), st.data())
def test_a_moment_is_explained_as_for_the_member_alone(case, data):
    query, members, own = case
    moment = query.start + data.draw(st.integers(-5, (query.end - query.start) // MINUTE + 5)) * MINUTE
    together = explain(query, moment, *laid(members), own)
    for n, member in enumerate(members):
        (alone,) = explain(query.of_member(own[n]), moment, *laid([member]))
        assert together[n] == alone


@given(questions(longest=1500).flatmap(lambda query: st.tuples(st.just(query), st.lists(hours_of(query)))))
def test_hours_of_many_are_those_of_each(case):
    query, people = case
    found = within_each(people, query.start, query.end)
    for n, hours in enumerate(people):
        alone = hours.within(query.start, query.end).pairs()
        minutes = range(query.start, query.end, MINUTE)
        assert alone == oracle.runs((t for t in minutes if oracle.in_hours(t, hours)), MINUTE)
        assert found.group(n).pairs() == alone


def test_nobody_and_anybody_have_hours():
    assert len(within_all([], 0, DAY)) == 0
    assert within_all([(), ()], 0, DAY).flat().pairs() == [(0, DAY), (0, DAY)]


TOKYO = Hours("Asia/Tokyo", (Window(frozenset(range(5)), 540, 1020),))


@pytest.mark.parametrize(
    ("replaced", "spans"),
    [
        # 09:00 to 17:00 in Tokyo is 00:00 to 08:00 in UTC.
        (None, [("2026-11-23T00:00", "2026-11-23T08:00"), ("2026-11-24T00:00", "2026-11-24T08:00")]),
        # The day in Berlin ends at 23:00 UTC, before the next one begins in Tokyo.
        (("2026-11-23", ()), [("2026-11-24T00:00", "2026-11-24T08:00")]),
        (
            ("2026-11-24", ((600, 660),)),
            [("2026-11-23T00:00", "2026-11-23T08:00"), ("2026-11-24T09:00", "2026-11-24T10:00")],
        ),
    ],
)
def test_dates_of_another_zone_replace_the_days_of_that_zone(replaced, spans):
    dates = replaced and Dates("Europe/Berlin", (DateOverride(date.fromisoformat(replaced[0]), replaced[1]),))
    hours = replace(TOKYO, replaced=dates)
    found = hours.within(at("2026-11-22T23:00"), at("2026-11-24T23:00"))
    assert found.pairs() == [(at(start), at(end)) for start, end in spans]


def test_a_thousand_members_with_one_object_share_its_hours():
    people = [TOKYO] * 1000
    found = within_each(people, at("2026-11-23"), at("2026-11-25"))
    assert np.all(found.sizes() == 2)


def test_the_longest_padding_of_all_is_read():
    query = Query(0, DAY, MINUTE, 5, 7)
    assert query.widened(None).busy_range() == (-7, DAY + 5)
    terms = [None, Own((), 1, 9, None)]
    assert query.widened(terms).busy_range() == (-9, DAY + 5)
    assert query.widened(terms[1:]).busy_range() == (-9, DAY + 1)

"""The layers of a member's time, compared with a count of periods at every instant."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from scheduling.intervals import Groups, common, gaps
from scheduling.layers import Layers, layers
from scheduling.query import Query
from tests.scheduling import oracle
from tests.scheduling.strategies import calendars, members_of, questions
from tests.scheduling.test_query import laid

members = st.lists(st.lists(calendars(-9, 50, 12), max_size=4), max_size=4)
separate = st.lists(st.sets(st.integers(0, 30)), max_size=4)


def pairs(groups: Groups) -> list[list[tuple[int, int]]]:
    return [groups.group(n).pairs() for n in range(len(groups))]


@given(members, st.integers(1, 40), st.integers(0, 5), st.integers(0, 5), st.integers(0, 3))
def test_each_instant_is_blocked_or_not_and_busy_or_not(members, length, before, after, overlaps):
    query = Query(3, 3 + length, 1, before, after, overlaps)
    found = layers(query, *laid(members))

    for n, member in enumerate(members):
        left = {at for start, end in oracle.free(query, member, unit=1) for at in range(start, end)}
        busy = {
            at
            for calendar in member
            for start, end in calendar
            for at in range(max(start, query.start), min(end, query.end))
        }
        every = set(range(query.start, query.end))
        assert found.busy.group(n).pairs() == oracle.runs(busy - left, 1)
        assert found.padded.group(n).pairs() == (oracle.runs(every - left, 1) if before or after else [])
        assert found.tolerated.group(n).pairs() == oracle.runs(busy & left, 1)


@given(st.data())
def test_windows_and_notice_count_for_no_layer(data):
    query = data.draw(questions())
    busy = laid(data.draw(members_of(query)))
    without = replace(query, windows=None, each_day=None, overrides=(), not_before=None)

    found, expected = layers(query, *busy), layers(without, *busy)

    for layer in fields(Layers):
        assert pairs(getattr(found, layer.name)) == pairs(getattr(expected, layer.name))


@given(separate)
def test_gaps_are_the_uncovered_time(owners):
    groups = Groups.of([oracle.runs(each, 1) for each in owners])

    assert pairs(gaps(groups, 0, 31)) == [oracle.runs(set(range(31)) - each, 1) for each in owners]


@given(
    separate.flatmap(
        lambda one: st.tuples(
            st.just(one), st.lists(st.sets(st.integers(0, 30)), min_size=len(one), max_size=len(one))
        )
    )
)
def test_common_is_the_intersection(case):
    one, other = case

    found = common(*(Groups.of([oracle.runs(each, 1) for each in each_of]) for each_of in case))

    assert pairs(found) == [oracle.runs(each & also, 1) for each, also in zip(one, other, strict=True)]

"""Free stretches and slots, compared with a count of busy periods minute by minute."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.intervals import Groups
from scheduling.query import Query, busy_union, free, max_slots_of, slots, slots_of_each
from scheduling.windows import ALL_DAY, DAY, MINUTE, DateOverride, Window
from tests.scheduling import oracle
from tests.scheduling.strategies import at, calendars, members_of, questions

asked = questions().flatmap(lambda query: st.tuples(st.just(query), members_of(query)))


def laid(members):
    """The calendars and the member of each, as arguments of the engine."""
    flat = [calendar for member in members for calendar in member]
    of = [n for n, member in enumerate(members) for _ in member]
    return Groups.of(flat), np.array(of, dtype=np.int64), len(members)


def free_stretches(query, members):
    groups = free(query, *laid(members))
    return [groups.group(n).pairs() for n in range(len(groups))]


def slot_pairs(query, members):
    found = slots(query, *laid(members))
    assert found.duration == query.duration
    return list(zip(found.starts.tolist(), found.members.tolist(), strict=True))


@given(asked)
def test_a_minute_is_free_exactly_when_allowed_and_not_too_busy(case):
    query, members = case
    assert free_stretches(query, members) == [oracle.free(query, member) for member in members]


@given(asked)
def test_slots_of_members_are_ordered_by_start_then_member(case):
    query, members = case
    assert slot_pairs(query, members) == sorted(
        (start, n) for n, member in enumerate(members) for start in oracle.slots_of(query, member)
    )


@given(asked)
def test_few_periods_have_the_same_slots_by_numpy(case):
    query, members = case
    few = [(free_stretches(query, [member]), slot_pairs(query, [member])) for member in members]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scheduling.query._FEW_PERIODS", -1)
        patch.setattr("scheduling.query._FEW_PERIODS_WITH_OVERLAPS", -1)
        assert few == [(free_stretches(query, [member]), slot_pairs(query, [member])) for member in members]


@pytest.mark.parametrize("overlaps", [0, 2])
@pytest.mark.parametrize("count", [24, 25, 26, 49, 50, 51])
def test_slots_are_equal_around_the_threshold_of_periods(overlaps, count):
    query = Query(
        0, 3 * DAY, 30 * MINUTE, 10 * MINUTE, 5 * MINUTE, overlaps, each_day=Window.daily(540, 1020)
    )
    opens = [n * 7919 % (3 * DAY // MINUTE) * MINUTE for n in range(count)]
    rows = [(start, start + 45 * MINUTE) for start in opens]
    member = [rows[::2], rows[1::2]]
    assert slot_pairs(query, [member]) == [(start, 0) for start in oracle.slots_of(query, member)]


@given(asked)
def test_the_slots_of_each_member_are_those_of_all(case):
    query, members = case
    found = slots_of_each(query, *laid(members))
    assert len(found) == len(members)
    of_each = [found.group(n).pairs() for n in range(len(members))]
    assert slot_pairs(query, members) == sorted(
        (start, n) for n, own in enumerate(of_each) for start, _ in own
    )
    assert all(own == sorted(own) for own in of_each)
    assert {end - start for own in of_each for start, end in own} <= {query.duration}


@given(
    st.lists(st.lists(calendars(-9, 50, 12), max_size=3), max_size=4),
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 3),
    st.none() | st.integers(1, 12),
    st.none() | st.integers(0, 60),
    st.none() | st.integers(0, 9),
)
def test_the_engine_is_exact_to_the_millisecond(
    members, length, duration, before, after, overlaps, step, earliest, limit
):
    query = Query(
        3, 3 + length, duration, before, after, overlaps, step=step, not_before=earliest, limit=limit
    )
    assert free_stretches(query, members) == [oracle.free(query, member, unit=1) for member in members]
    assert slot_pairs(query, members) == sorted(
        (start, n) for n, member in enumerate(members) for start in oracle.slots_of(query, member, unit=1)
    )


@given(asked)
def test_many_members_at_once_are_each_member_alone(case):
    query, members = case
    together = slot_pairs(query, members)
    alone = [(start, n) for n, member in enumerate(members) for start, _ in slot_pairs(query, [member])]
    assert together == sorted(alone)


@given(asked, st.data())
def test_a_busy_period_more_never_adds_free_time(case, data):
    query, members = case
    before = free_stretches(query, members)
    start = data.draw(st.integers(query.start - DAY, query.end + DAY))
    # In a separate calendar: in an existing one it could join two periods, whose paddings would no longer
    # overlap.
    more = [(start, start + data.draw(st.integers(0, DAY)))]
    after = free_stretches(query, [[*member, more] for member in members])
    for then, now in zip(before, after, strict=True):
        assert all(any(a <= c and d <= b for a, b in then) for c, d in now)


@given(asked)
def test_padding_is_no_padding_over_wider_periods(case):
    query, members = case
    # One calendar for each merged period, so that padding cannot merge periods.
    periods = [[[p] for row in member for p in oracle.merged(row, MINUTE)] for member in members]
    before, after = query.padding_before, query.padding_after
    wider = [[[(a - before, b + after)] for [(a, b)] in member] for member in periods]
    without = replace(query, padding_before=0, padding_after=0)
    assert slot_pairs(query, members) == slot_pairs(without, wider)


@given(asked)
def test_a_limit_keeps_each_members_earliest_slots(case):
    query, members = case
    every = slot_pairs(replace(query, limit=None), members)
    first = [[pair for pair in every if pair[1] == n][: query.limit] for n in range(len(members))]
    assert slot_pairs(query, members) == sorted(pair for own in first for pair in own)


@given(asked)
def test_not_before_equals_a_later_range_start(case):
    query, members = case
    moment = query.not_before
    if moment is None or moment <= query.start:
        later = replace(query, not_before=None)
    elif moment < query.end:
        later = replace(query, start=moment, not_before=None)
    else:
        assert slot_pairs(query, members) == []
        return
    assert slot_pairs(query, members) == slot_pairs(later, members)


@given(asked)
def test_overrides_of_the_weekly_windows_of_each_date_change_nothing(case):
    query, members = case
    weekly = replace(query, overrides=())
    first, last = (oracle.local(time, query.zone).date() for time in (query.start - DAY, query.end))
    dates = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    windows = (ALL_DAY,) if query.windows is None else query.windows
    same = tuple(DateOverride(date, tuple(oracle.on_date(date, windows, ()))) for date in dates)
    assert slot_pairs(replace(query, overrides=same), members) == slot_pairs(weekly, members)


@given(asked)
def test_every_slot_lies_in_one_free_stretch(case):
    query, members = case
    stretches = free_stretches(query, members)
    for start, member in slot_pairs(query, members):
        assert any(a <= start and start + query.duration <= b for a, b in stretches[member])


@given(asked)
def test_the_count_limit_is_never_passed(case):
    query, members = case
    assert len(slot_pairs(query, members)) <= max_slots_of(query, len(members))


@given(questions(), st.integers(0, 3))
def test_the_count_limit_is_exact_when_nothing_is_busy(query, members):
    found = len(slot_pairs(query, [[]] * members))
    if query.limit is not None:
        assert found <= query.limit * members
    if query.align_clock or query.stride <= query.duration:
        assert found == max_slots_of(query, members)
    else:
        assert found <= max_slots_of(query, members)


def test_busy_time_can_make_more_of_slots_that_start_rarely():
    rarely = Query(0, 120, 30, step=60)
    assert len(slot_pairs(rarely, [[]])) == 2
    assert len(slot_pairs(rarely, [[[(30, 31), (61, 62)]]])) == 3
    assert max_slots_of(rarely, 1) == 4


@given(st.lists(calendars(-9, 50, 12), max_size=4), st.integers(-5, 30), st.integers(1, 40))
def test_busy_union_is_everybodys_busy_time_within_the_range(rows, start, length):
    groups = Groups.of(rows)
    expected = oracle.runs(
        {unit for row in rows for a, b in row for unit in range(a, b) if start <= unit < start + length}, 1
    )
    assert busy_union(groups, start, start + length).pairs() == expected
    assert busy_union(groups.flat(), start, start + length).pairs() == expected


YEAR = Query(at("2026-01-01"), at("2027-01-02"), 30 * MINUTE, 7 * DAY, 7 * DAY, max_overlaps=1000)


@pytest.mark.parametrize("query", [YEAR, replace(YEAR, max_overlaps=0), replace(YEAR, end=YEAR.start + 1)])
def test_extreme_questions_have_answers(query):
    busy = [[(0, 2**52)], [], [(query.start - 8 * DAY, query.start - 7 * DAY)]]
    found = free_stretches(query, [busy[:1], busy[1:], []])
    whole = [(query.start, query.end)]
    assert found == [[] if query.max_overlaps == 0 else whole, whole, whole]


def test_more_members_than_one_pass_takes():
    query = Query(0, DAY, 60 * MINUTE, windows=(Window.daily(540, 1020),))
    members = [[[(n % 24 * 60 * MINUTE, (n % 24 + 1) * 60 * MINUTE)]] if n % 3 else [] for n in range(1203)]
    expected = [oracle.free(query, member) for member in members[:72]]
    found = free_stretches(query, members)
    assert found == [expected[n % 72] for n in range(1203)]
    assert slot_pairs(query, members) == sorted(
        (start, n) for n, rows in enumerate(found) for row in rows for start in oracle.slots(query, row)
    )


def test_no_members_have_no_slots():
    assert slot_pairs(YEAR, []) == []
    assert free_stretches(YEAR, []) == []


def test_the_busy_range_includes_the_padding():
    assert Query(1000, 2000, 1, padding_before=300).busy_range() == (1000, 2300)
    assert Query(1000, 2000, 1, padding_after=300).busy_range() == (700, 2000)


@pytest.mark.parametrize(
    "wrong",
    [
        {"end": 0},
        {"duration": 0},
        {"step": 0},
        {"padding_before": -1},
        {"padding_after": -1},
        {"max_overlaps": -1},
        {"limit": -1},
    ],
)
def test_a_question_without_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=r"range|length|negative"):
        Query(**{"start": 0, "end": 1, "duration": 1} | wrong)


def test_slots_too_many_to_number_are_refused():
    with pytest.raises(OverflowError):
        slots(Query(0, 2**58, 2**57), *laid([[]] * 100))


def test_busy_arrays_are_left_as_they_were():
    busy = Groups.of([[(5, 9), (2, 4)]])
    slots(Query(0, 20, 1, 1, 1, max_overlaps=1), busy, np.zeros(1, np.int64), 1)
    assert busy.flat().pairs() == [(5, 9), (2, 4)]

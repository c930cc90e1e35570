"""Explanations, compared with the slots and with a count minute by minute."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.explain import Covering, Verdict, explain
from scheduling.query import Query
from scheduling.windows import DAY, MINUTE, Window
from tests.scheduling import oracle
from tests.scheduling.strategies import ODD_TIMES, at, calendars, members_of, questions
from tests.scheduling.test_query import laid, slot_pairs

HOUR = 60 * MINUTE


def inside_mostly(start, end):
    """A moment of a range, sometimes just outside."""
    inside = st.integers(start, end - 1)
    return st.one_of(inside, inside, inside, inside, st.sampled_from([start - 1, start, end - 1, end]))


@st.composite
def cases(draw, most=3):
    """A query, its members, and a moment in the range or near it, not always a whole minute."""
    query = draw(questions(longest=400))
    members = draw(members_of(query, most=most))
    length = (query.end - query.start) // MINUTE
    minute = draw(inside_mostly(0, length))
    return query, members, query.start + minute * MINUTE + draw(st.sampled_from([0, 0, 1, 30_000, 59_999]))


@st.composite
def small_cases(draw):
    """Small numbers, so that edges often coincide."""
    members = draw(st.lists(st.lists(calendars(-3, 25, 12), max_size=3), min_size=1, max_size=3))
    query = Query(
        start=3,
        end=3 + draw(st.integers(6, 24)),
        duration=draw(st.integers(1, 9)),
        padding_before=draw(st.integers(0, 5)),
        padding_after=draw(st.integers(0, 5)),
        max_overlaps=draw(st.sampled_from([0, 0, 0, 1, 2])),
        step=draw(st.none() | st.integers(1, 12)),
        not_before=draw(st.none() | st.integers(0, 30)),
        limit=draw(st.none() | st.integers(0, 4)),
    )
    return query, members, draw(inside_mostly(query.start, query.end))


def explained(query, members, moment):
    return explain(query, moment, *laid(members))


def unit_of(query):
    """All times are whole units from the start of the range."""
    return 1 if query.end - query.start < MINUTE else MINUTE


def holding(stretches, moment):
    return next(((start, end) for start, end in stretches if start <= moment < end), None)


def counted(query, calendars, moment):
    """The periods that cover the moment, found one by one."""
    opening, closing = query.busy_range()
    return [
        Covering(n, start, end, start - query.padding_before, end + query.padding_after)
        for n, rows in enumerate(calendars)
        for start, end in oracle.merged(
            [(max(a, opening), min(b, closing)) for a, b in rows if a < b], unit_of(query)
        )
        if start - query.padding_before <= moment < end + query.padding_after
    ]


def cut(query, calendars):
    """The member's slots, cut from the free time of the oracle."""
    unit = unit_of(query)
    stretches = oracle.free(query, calendars, unit)
    return {stretch: oracle.slots(query, stretch, unit) for stretch in stretches}


def verdict(query, calendars, moment):
    """The verdict, directly from its definition."""
    if moment < query.start or moment >= query.end:
        return Verdict.OUTSIDE_RANGE
    if not oracle.inside(query, moment):
        return Verdict.OUTSIDE_WINDOW
    if query.not_before is not None and moment < query.not_before:
        return Verdict.TOO_SOON
    covering = counted(query, calendars, moment)
    if len(covering) > query.max_overlaps > 0:
        return Verdict.TOO_MANY_OVERLAPS
    if covering and not query.max_overlaps:
        inside = any(start <= moment < end for rows in calendars for start, end in rows)
        return Verdict.BUSY if inside else Verdict.PADDING
    slots_of = cut(query, calendars)
    stretch = holding(slots_of, moment)
    starts = slots_of[stretch]
    offered = oracle.slots_of(query, calendars, unit_of(query))
    if any(start <= moment < start + query.duration for start in offered):
        return Verdict.OFFERED
    if any(start <= moment < start + query.duration for start in starts):
        return Verdict.BEYOND_LIMIT
    if stretch[1] - stretch[0] < query.duration:
        return Verdict.TOO_SHORT
    if starts and moment >= starts[-1] + query.duration:
        return Verdict.REMAINDER
    return Verdict.BETWEEN_SLOTS


either = st.one_of(cases(), small_cases())


@given(either)
def test_a_moment_is_offered_exactly_when_a_slot_holds_it(case):
    query, members, moment = case
    pairs = slot_pairs(query, members)
    for n, found in enumerate(explained(query, members, moment)):
        mine = [start for start, owner in pairs if owner == n]
        held = [start for start in mine if start <= moment < start + query.duration]
        assert (found.verdict is Verdict.OFFERED) == bool(held)
        assert found.slot == ((held[0], held[0] + query.duration) if held else None)
        assert found.starts_slot == (moment in mine)


@given(either)
def test_the_verdict_agrees_with_its_definition(case):
    query, members, moment = case
    assert [found.verdict for found in explained(query, members, moment)] == [
        verdict(query, member, moment) for member in members
    ]


@given(either)
def test_the_slots_around_are_the_last_before_and_the_first_after(case):
    query, members, moment = case
    pairs = slot_pairs(query, members)
    for n, found in enumerate(explained(query, members, moment)):
        mine = [start for start, owner in pairs if owner == n]
        before = [start for start in mine if start < moment]
        after = [start for start in mine if start > moment]
        assert found.previous_slot == ((before[-1], before[-1] + query.duration) if before else None)
        assert found.next_slot == ((after[0], after[0] + query.duration) if after else None)


@given(either)
def test_the_free_stretch_is_the_whole_of_it(case):
    query, members, moment = case
    for member, found in zip(members, explained(query, members, moment), strict=True):
        assert found.free == holding(oracle.free(query, member, unit_of(query)), moment)


@given(either)
def test_the_window_is_the_whole_of_it_or_those_around(case):
    query, members, moment = case
    stretches = oracle.free(replace(query, not_before=None), [], unit_of(query))
    held = holding(stretches, moment)
    for found in explained(query, members, moment):
        assert found.window == held
        if held is not None:
            assert (found.window_before, found.window_after) == (None, None)
            continue
        assert found.window_before == max((end for _, end in stretches if end <= moment), default=None)
        assert found.window_after == min((start for start, _ in stretches if start > moment), default=None)


@given(either)
def test_the_covering_periods_agree_with_a_count_one_by_one(case):
    query, members, moment = case
    inside = query.start <= moment < query.end
    for member, found in zip(members, explained(query, members, moment), strict=True):
        assert list(found.covering) == (counted(query, member, moment) if inside else [])


@given(either)
def test_the_facts_agree_with_the_verdict(case):
    query, members, moment = case
    for found in explained(query, members, moment):
        assert found.at == moment
        blocked = found.verdict in (Verdict.BUSY, Verdict.PADDING, Verdict.TOO_MANY_OVERLAPS)
        if blocked:
            assert len(found.covering) > query.max_overlaps
            assert found.window is not None
        if found.free is not None:
            assert len(found.covering) <= query.max_overlaps
            assert found.window[0] <= found.free[0] <= moment < found.free[1] <= found.window[1]
        outside = found.verdict in (Verdict.OUTSIDE_RANGE, Verdict.OUTSIDE_WINDOW)
        assert (found.free is None) == (blocked or outside or found.verdict is Verdict.TOO_SOON)
        assert (found.window is None) == outside


@given(either)
def test_many_members_at_once_are_each_member_alone(case):
    query, members, moment = case
    together = explained(query, members, moment)
    assert together == [explained(query, [member], moment)[0] for member in members]


NINE, NOON = at("2026-11-23T09:00"), at("2026-11-23T12:00")
MORNING = Query(NINE, NOON, 30 * MINUTE, 10 * MINUTE, 10 * MINUTE)


def moments(query, calendars):
    """Each stretch of the morning and its verdict, minute by minute."""
    verdicts = [explained(query, [calendars], moment)[0].verdict for moment in range(NINE, NOON, MINUTE)]
    edges = [n for n in range(len(verdicts)) if n == 0 or verdicts[n] != verdicts[n - 1]]
    return [(f"{9 + n // 60:02}:{n % 60:02}", str(verdicts[n])) for n in edges]


def meeting(start, end):
    return at(f"2026-11-23T{start}"), at(f"2026-11-23T{end}")


def test_a_morning_by_example():
    found = moments(MORNING, [[meeting("10:00", "10:15"), meeting("10:50", "11:00")]])
    assert found == [
        ("09:00", "offered"),
        ("09:30", "remainder"),
        ("09:50", "padding"),
        ("10:00", "busy"),
        ("10:15", "padding"),
        ("10:25", "tooShort"),
        ("10:40", "padding"),
        ("10:50", "busy"),
        ("11:00", "padding"),
        ("11:10", "offered"),
        ("11:40", "remainder"),
    ]


def test_overlaps_by_example():
    query = replace(MORNING, max_overlaps=1)
    assert moments(query, [[meeting("10:00", "10:15")], [meeting("10:30", "11:00")]]) == [
        ("09:00", "offered"),
        ("10:00", "remainder"),
        ("10:20", "tooManyOverlaps"),
        ("10:25", "offered"),
        ("11:55", "remainder"),
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"step": 60 * MINUTE}, [("09:00", "offered"), ("09:30", "betweenSlots"), ("10:00", "offered")]),
        ({"align_clock": True, "start": NINE + 10 * MINUTE}, [("09:10", "betweenSlots")]),
    ],
)
def test_time_between_slots_by_example(changed, expected):
    found = moments(replace(MORNING, **changed), [])
    assert [each for each in found if each in expected] == expected


def test_touching_periods_are_merged_only_within_a_calendar():
    halves = [meeting("10:00", "10:15"), meeting("10:15", "10:30")]
    (together,) = explained(MORNING, [[halves]], at("2026-11-23T10:20"))
    assert [(each.calendar, each.start, each.end) for each in together.covering] == [
        (0, *meeting("10:00", "10:30"))
    ]
    (apart,) = explained(MORNING, [[[halves[0]], [halves[1]]]], at("2026-11-23T10:20"))
    assert [(each.calendar, each.padded_end) for each in apart.covering] == [
        (0, at("2026-11-23T10:25")),
        (1, at("2026-11-23T10:40")),
    ]


def test_a_period_is_clipped_to_the_read_range():
    days = [(NINE - 3 * DAY, NOON + 3 * DAY)]
    (found,) = explained(MORNING, [[days]], NINE)
    assert found.covering == (
        Covering(0, NINE - 10 * MINUTE, NOON + 10 * MINUTE, NINE - 20 * MINUTE, NOON + 20 * MINUTE),
    )


@pytest.mark.parametrize(("zone", "text"), ODD_TIMES)
def test_every_minute_around_a_clock_change_matches_definition(zone, text):
    start = at(text) - 2 * HOUR
    query = Query(
        start,
        start + 4 * HOUR,
        40 * MINUTE,
        padding_before=5 * MINUTE,
        padding_after=5 * MINUTE,
        zone=zone,
        windows=(Window.daily(90, 210), Window.daily(1380, 60)),
        step=30 * MINUTE,
        align_clock=True,
    )
    calendars = [[(start + 45 * MINUTE, start + 50 * MINUTE)]]
    for moment in range(start - MINUTE, query.end + MINUTE, 5 * MINUTE):
        (found,) = explained(query, [calendars], moment)
        assert found.verdict is verdict(query, calendars, moment)


def test_no_members_have_no_explanations():
    assert explained(MORNING, [], NINE) == []


def test_the_first_moment_that_the_notice_allows_is_offered():
    nine = at("2026-11-20T09:00")
    query = Query(nine, nine + 3 * HOUR, HOUR, not_before=nine + HOUR)
    moments = (nine + HOUR - 1, nine + HOUR)
    assert [explained(query, [[]], moment)[0].verdict for moment in moments] == [
        Verdict.TOO_SOON,
        Verdict.OFFERED,
    ]

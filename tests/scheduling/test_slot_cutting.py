"""Slots cut from stretches, compared with a step-by-step count and with local times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.intervals import Intervals
from scheduling.query import Query
from scheduling.slot_cutting import cut, cut_to_clock
from scheduling.windows import MINUTE
from tests.scheduling import oracle
from tests.scheduling.strategies import ODD_SECONDS, ODD_TIMES, at, periods, ranges

HALF_MINUTE = MINUTE // 2
stretches = st.lists(periods(0, 60, 30).filter(lambda pair: pair[0] < pair[1]), max_size=6)


@given(stretches, st.integers(1, 12), st.integers(1, 20))
def test_a_stretch_is_cut_from_its_own_start(rows, duration, step):
    combs = cut(Intervals.of(rows), duration, step)
    query = Query(0, 1, duration, step=step)
    assert combs.starts(step).tolist() == [at for row in rows for at in oracle.slots(query, row)]
    assert combs.counts.all()
    assert [rows[row][0] for row in combs.rows] == combs.firsts.tolist()


@given(
    ranges(ODD_TIMES + ODD_SECONDS, 3000, HALF_MINUTE),
    st.integers(0, 1500),
    st.integers(1, 120),
    st.one_of(st.sampled_from([5, 15, 30, 60, 90, 240, 1440]), st.integers(1, 1500)),
)
def test_a_clock_slot_starts_where_the_clock_shows_a_multiple(where, gap, duration, step):
    zone, start, end = where
    middle = start + min(gap * HALF_MINUTE, (end - start) // MINUTE * HALF_MINUTE)
    rows = [(a, b) for a, b in ((start, middle), (middle, end)) if a < b]
    combs = cut_to_clock(Intervals.of(rows), duration * MINUTE, step * MINUTE, zone)
    query = Query(start, end, duration * MINUTE, zone=zone, step=step * MINUTE, align_clock=True)
    expected = [at for row in rows for at in oracle.slots(query, row, HALF_MINUTE)]
    assert combs.starts(step * MINUTE).tolist() == expected
    assert combs.counts.all()


def starts_in(zone, start, end, duration, step):
    combs = cut_to_clock(Intervals.of([(at(start), at(end))]), duration * MINUTE, step * MINUTE, zone)
    return [oracle.local(time, zone).strftime("%H:%M") for time in combs.starts(step * MINUTE).tolist()]


@pytest.mark.parametrize(
    ("zone", "start", "end", "step", "expected"),
    [
        ("Asia/Kathmandu", "2026-06-01T00:00", "2026-06-01T02:00", 30, ["06:00", "06:30", "07:00"]),
        ("UTC", "2026-06-01T09:00", "2026-06-01T09:30", 30, ["09:00"]),
        ("America/New_York", "2026-03-08T05:30", "2026-03-08T09:00", 60, ["01:00", "03:00", "04:00"]),
        ("America/New_York", "2026-11-01T04:30", "2026-11-01T08:00", 60, ["01:00", "01:00", "02:00"]),
        # 50 does not divide the day: 23:20 is the last of one day, 00:00 the first of the next.
        ("UTC", "2026-06-01T22:00", "2026-06-02T02:30", 50, ["22:30", "23:20", "00:00", "00:50", "01:40"]),
    ],
)
def test_clock_slots_by_example(zone, start, end, step, expected):
    assert starts_in(zone, start, end, 30, step) == expected

"""``resolve`` compared with the local time of every minute, and known irregularities of zones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.intervals import clip
from scheduling.windows import DAY, MINUTE, Window, clock, resolve, zone_exists
from tests.scheduling import oracle
from tests.scheduling.strategies import ODD_SECONDS, ODD_TIMES, at, ranges, schedules

HOUR = 60 * MINUTE
EVENING = at("9999-12-31T23:00")


def inside(times, intervals):
    return np.searchsorted(intervals.starts, times, "right") > np.searchsorted(intervals.ends, times, "right")


@given(schedules, ranges(ODD_TIMES + ODD_SECONDS, 4 * 1440), st.integers(0, MINUTE))
def test_an_instant_is_inside_exactly_when_its_local_time_is(windows, where, shift):
    zone, start, end = where
    start, end = start + shift, end + shift
    resolved = resolve(windows, zone, start, end)
    edges = np.concatenate((resolved.starts, resolved.ends))
    times = np.concatenate((np.arange(start, end, 7 * MINUTE), edges, edges - 1))
    times = times[(start <= times) & (times < end)]
    expected = [any(oracle.in_window(t, each, zone) for each in windows) for t in times.tolist()]
    assert inside(times, resolved).tolist() == expected


@given(schedules, ranges(ODD_TIMES + ODD_SECONDS, 4 * 1440))
def test_windows_come_sorted_apart_and_within_the_range(windows, where):
    zone, start, end = where
    edges = [edge for pair in resolve(windows, zone, start, end).pairs() for edge in pair]
    assert edges == sorted(set(edges))
    assert not edges or (start <= edges[0] and edges[-1] <= end)


@given(
    schedules, ranges([*ODD_TIMES, ("UTC", "2024-06-01")], 900, DAY), st.integers(0, DAY), st.integers(0, DAY)
)
def test_a_narrower_range_is_the_wider_one_clipped(windows, where, later, sooner):
    zone, start, end = where
    start, end = max(0, start), max(DAY, end)
    low, high = start + later, max(start + later + 1, end - sooner)
    narrow = resolve(windows, zone, low, high)
    assert narrow.pairs() == clip(resolve(windows, zone, start, end + 2 * DAY), low, high).pairs()


@given(ranges(ODD_TIMES + ODD_SECONDS, 500_000))
def test_the_clock_runs_over_the_range_without_a_gap(where):
    zone, start, end = where
    time = clock(zone, start, end)
    stretches = time.stretches.pairs()
    assert [start, *(b for _, b in stretches)] == [*(a for a, _ in stretches), end]
    for (a, b), offset in zip(stretches, time.offsets.tolist(), strict=True):
        for instant in (a, (a + b) // 2, b - 1):
            wall = oracle.local(instant, zone)
            assert (wall - oracle.local(instant, "UTC")).total_seconds() * 1000 == offset


@pytest.mark.parametrize(
    ("zone", "day", "window", "hours"),
    [
        ("America/New_York", "2026-03-08", (60, 240), [2]),
        ("America/New_York", "2026-03-08", (120, 180), []),
        ("America/New_York", "2026-11-01", (60, 240), [4]),
        ("America/New_York", "2026-11-01", (60, 90), [0.5, 0.5]),
        # From Saturday evening into the night in which the clock is set back.
        ("America/New_York", "2026-10-31", (1320, 120), [5]),
        ("Australia/Lord_Howe", "2026-10-04", (60, 240), [2.5]),
        ("America/Sao_Paulo", "2018-11-04", (0, 1440), [23]),
        ("Europe/London", "2026-10-25", (0, 1440), [25]),
        ("Antarctica/Troll", "2026-03-29", (60, 180), []),
    ],
)
def test_windows_on_days_of_clock_changes(zone, day, window, hours):
    noon = at(f"{day}T12:00")
    weekday = oracle.local(noon, "UTC").weekday()
    resolved = resolve((Window(frozenset([weekday]), *window),), zone, noon - DAY, noon + DAY)
    assert [(end - start) / HOUR for start, end in resolved.pairs()] == hours


def test_the_day_that_samoa_skipped_has_no_window():
    start, end = at("2011-12-28"), at("2012-01-03")
    friday = Window(frozenset([4]), 0, 1440)
    thursday_night = Window(frozenset([3]), 1320, 360)
    assert not len(resolve((friday,), "Pacific/Apia", start, end))
    ((opens, closes),) = resolve((thursday_night,), "Pacific/Apia", start, end).pairs()
    assert closes - opens == 2 * HOUR


def test_no_window_is_never():
    assert not len(resolve((), "UTC", 0, 366 * DAY))
    assert not len(resolve((Window(frozenset(), 0, 1440),), "UTC", 0, 366 * DAY))


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12", "America/New_York", "UTC"])
@pytest.mark.parametrize("start", [at("0001-01-01"), at("1800-01-01"), 0, EVENING])
def test_the_first_and_the_last_hour_of_time_resolve(zone, start):
    assert resolve((Window.daily(0, 1440),), zone, start, start + HOUR).pairs() == [(start, start + HOUR)]


@pytest.mark.parametrize(
    ("days", "earliest", "latest"),
    [({7}, 0, 60), ({-1}, 0, 60), ({0}, -1, 60), ({0}, 1440, 60), ({0}, 0, 1441), ({0}, 540, 540)],
)
def test_a_window_that_is_none_is_refused(days, earliest, latest):
    with pytest.raises(ValueError, match=r"days|minutes|empty"):
        Window(frozenset(days), earliest, latest)


@pytest.mark.parametrize(
    "name",
    [*dict(ODD_TIMES), "Etc/GMT-14", "GMT0", "EST5EDT", "America/Argentina/ComodRivadavia", "UTC", "Zulu"],
)
def test_every_iana_name_exists(name):
    assert zone_exists(name)


@pytest.mark.parametrize(
    "name",
    [
        "", " ", ".", "..", "/", "../UTC", "Europe/../UTC", "Europe//London", "/usr/share/zoneinfo/UTC",
        "Europe", "Europe/", "Europe/London/", "Europe/London\n", "Europe/London ", "UTC\0", "zone.tab",
        "leapseconds", "localtime", "posixrules", "posix/UTC", "right/UTC", "Nowhere/City", "Mars",
        "__init__", "W. Europe Standard Time", "a" * 5000, "Européa/London", "\u0661",
    ],
)  # fmt: skip
def test_nothing_but_a_zone_exists(name):
    assert not zone_exists(name)

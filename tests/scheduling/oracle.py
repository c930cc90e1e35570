"""A slow and simple implementation of the engine, which goes through single minutes and periods."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from scheduling.hours import Hours
from scheduling.query import Query
from scheduling.windows import MINUTE, DateOverride, Window

Pair = tuple[int, int]


@lru_cache(maxsize=200_000)
def local(time: int, zone: str) -> datetime:
    """The local time of an instant."""
    utc = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time)
    return utc.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)


def in_window(time: int, window: Window, zone: str) -> bool:
    return in_windows(time, (window,), (), zone)


def in_windows(time: int, windows: Iterable[Window], overrides: Iterable[DateOverride], zone: str) -> bool:
    """Whether a window of the local date, or an overnight window of the date before, has the time."""
    wall = local(time, zone)
    midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
    into_day = (wall - midnight) / timedelta(minutes=1)
    today = on_date(wall.date(), windows, overrides)
    yesterday = on_date(wall.date() - timedelta(days=1), windows, overrides)
    return any(
        earliest <= into_day < latest or (latest < earliest <= into_day) for earliest, latest in today
    ) or any(into_day < latest < earliest for earliest, latest in yesterday)


def on_date(
    day: date, windows: Iterable[Window], overrides: Iterable[DateOverride]
) -> Iterable[tuple[int, int]]:
    """The earliest and latest minutes of the windows that start on a local date."""
    for override in overrides:
        if override.day == day:
            return override.windows
    return [(each.earliest, each.latest) for each in windows if day.weekday() in each.days]


def runs(units: Iterable[int], unit: int) -> list[Pair]:
    """Maximal runs of units, each unit given by its start."""
    stretches: list[Pair] = []
    for start in sorted(set(units)):
        if stretches and stretches[-1][1] == start:
            stretches[-1] = (stretches[-1][0], start + unit)
        else:
            stretches.append((start, start + unit))
    return stretches


def merged(pairs: Iterable[Pair], unit: int) -> list[Pair]:
    return runs((at for start, end in pairs for at in range(start, end, unit)), unit)


def free(query: Query, calendars: list[list[Pair]], unit: int = MINUTE) -> list[Pair]:
    """One member's free stretches, if all times are whole units from the start of the range."""
    depth = dict.fromkeys(range(query.start, query.end, unit), 0)
    for calendar in calendars:
        for start, end in merged(calendar, unit):
            for at in range(start - query.padding_before, end + query.padding_after, unit):
                if at in depth:
                    depth[at] += 1
    return runs((at for at in depth if depth[at] <= query.max_overlaps and allowed(query, at)), unit)


def allowed(query: Query, time: int) -> bool:
    return inside(query, time) and (query.not_before is None or time >= query.not_before)


def inside(query: Query, time: int) -> bool:
    windows = (Window.daily(0, 1440),) if query.windows is None else query.windows
    scheduled = in_windows(time, windows, query.overrides, query.zone)
    daily = query.each_day is None or in_window(time, query.each_day, query.zone)
    return scheduled and daily and all(in_hours(time, each) for each in query.hours)


def in_hours(time: int, hours: Hours) -> bool:
    """Whether the hours have the time. Replaced dates are whole local days of their own zone."""
    windows = (Window.daily(0, 1440),) if hours.windows is None else hours.windows
    if hours.replaced is None:
        return in_windows(time, windows, hours.overrides, hours.zone)
    zone, dates = hours.replaced.zone, hours.replaced.overrides
    if in_windows(time, (), dates, zone):
        return True
    if local(time, zone).date() in [each.day for each in dates]:
        return False
    return in_windows(time, windows, hours.overrides, hours.zone)


def slots_of(query: Query, calendars: list[list[Pair]], unit: int = MINUTE) -> list[int]:
    """The starts of one member's slots."""
    starts = [start for stretch in free(query, calendars, unit) for start in slots(query, stretch, unit)]
    return starts if query.limit is None else starts[: query.limit]


def slots(query: Query, stretch: Pair, unit: int = MINUTE) -> list[int]:
    """The starts of the slots cut from one free stretch, without regard to the limit."""
    start, end = stretch
    if query.align_clock:
        fitting = range(start, end - query.duration + 1, unit)
        return [at for at in fitting if into_local_day(at, query.zone) % query.stride == 0]
    starts = []
    while start + query.duration <= end:
        starts.append(start)
        start += query.stride
    return starts


def into_local_day(time: int, zone: str) -> int:
    """Milliseconds of local time since midnight."""
    wall = local(time, zone)
    return (wall - wall.replace(hour=0, minute=0, second=0, microsecond=0)) // timedelta(milliseconds=1)

"""A slow and simple implementation of the engine, which goes through single minutes and periods."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from scheduling.query import Query
from scheduling.windows import MINUTE, Window

Pair = tuple[int, int]


@lru_cache(maxsize=200_000)
def local(time: int, zone: str) -> datetime:
    """The local time of an instant."""
    utc = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time)
    return utc.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)


def in_window(time: int, window: Window, zone: str) -> bool:
    wall = local(time, zone)
    midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
    into_day = (wall - midnight) / timedelta(minutes=1)
    if window.earliest < window.latest:
        return wall.weekday() in window.days and window.earliest <= into_day < window.latest
    yesterday = (wall - timedelta(days=1)).weekday()
    return (wall.weekday() in window.days and into_day >= window.earliest) or (
        yesterday in window.days and into_day < window.latest
    )


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
            for at in range(start - query.padding, end + query.padding, unit):
                if at in depth:
                    depth[at] += 1
    return runs((at for at in depth if depth[at] <= query.max_overlaps and allowed(query, at)), unit)


def allowed(query: Query, time: int) -> bool:
    scheduled = query.windows is None or any(in_window(time, each, query.zone) for each in query.windows)
    return scheduled and (query.each_day is None or in_window(time, query.each_day, query.zone))


def slots(query: Query, stretch: Pair, unit: int = MINUTE) -> list[int]:
    """The starts of the slots cut from one free stretch."""
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

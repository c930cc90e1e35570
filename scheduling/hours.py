"""The hours of people: windows in the zone of each, for one person or for many in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scheduling.intervals import (
    EMPTY,
    Groups,
    Indexes,
    Intervals,
    Times,
    common,
    free_parts,
    merge,
    merge_owned,
)
from scheduling.windows import (
    ALL_DAY,
    DAY,
    EPOCH_WEEKDAY,
    MINUTE,
    DateOverride,
    Window,
    clock,
    on_dates,
    resolve,
)

_WHOLE_DAY = ((0, 1440),)
# Whether a mask, one bit for each weekday, has the weekday.
_ON_DAYS = (np.arange(128)[:, np.newaxis] >> np.arange(7) & 1).astype(np.bool_)


@dataclass(frozen=True, slots=True)
class Dates:
    """Dates in a zone that replace what other hours have on them, from local midnight to local midnight."""

    zone: str
    overrides: tuple[DateOverride, ...]

    def whole(self) -> Hours:
        """All of the time of these dates."""
        return Hours(self.zone, (), tuple([DateOverride(each.day, _WHOLE_DAY) for each in self.overrides]))

    def opened(self) -> Hours:
        """The windows of these dates."""
        return Hours(self.zone, (), self.overrides)


@dataclass(frozen=True)
class Hours:
    """Weekly windows in a zone, and the dates that have windows of their own.

    ``windows`` are None where any time of the week counts. A date of ``overrides`` replaces the windows that
    start on it, a date of ``replaced`` whole local days: it is of another source, whose zone may differ.
    """

    zone: str
    windows: tuple[Window, ...] | None = None
    overrides: tuple[DateOverride, ...] = ()
    replaced: Dates | None = None

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def are_any(self) -> bool:
        """Whether any time is in these hours."""
        return self.windows is None and not self.overrides and self.replaced is None

    def within(self, start: int, end: int) -> Intervals:
        """The parts of ``[start, end)`` in these hours, merged and sorted."""
        if self.are_any:
            return Intervals(np.array((start,)), np.array((end,)))
        base = resolve(self._weekly, self.zone, start, end, self.overrides)
        if self.replaced is None:
            return base
        left = free_parts(self.replaced.whole().within(start, end), base)
        opened = self.replaced.opened().within(start, end)
        return merge(np.concatenate((left.starts, opened.starts)), np.concatenate((left.ends, opened.ends)))

    @property
    def _weekly(self) -> tuple[Window, ...]:
        return (ALL_DAY,) if self.windows is None else self.windows

    # A profile is asked for with every request, and has dozens of dates.
    @cached_property
    def _hash(self) -> int:
        return hash((self.zone, self.windows, self.overrides, self.replaced))

    @cached_property
    def _columns(self) -> _Columns:
        weekly = [
            (sum(1 << day for day in each.days), each.earliest * MINUTE, _latest(each))
            for each in self._weekly
        ]
        days, windows = on_dates(self.overrides)
        return _Columns(
            np.array(weekly, np.int64).reshape(-1, 3).T,
            days,
            np.array((windows.starts, windows.ends)),
        )


class _Columns(NamedTuple):
    """The windows of one person as arrays, in milliseconds of local time.

    ``weekly`` has a bit for each weekday, earliest and latest; ``days`` are the overridden dates since 1970,
    ``dated`` the starts and the ends of their windows.
    """

    weekly: npt.NDArray[np.int64]
    days: Times
    dated: npt.NDArray[np.int64]


def within_each(people: Sequence[Hours], start: int, end: int) -> Groups:
    """The parts of ``[start, end)`` in the hours of each person, merged and sorted, in one pass.

    People with the same object share its result.
    """
    distinct = {id(each): each for each in people}
    found = _within_distinct(list(distinct.values()), start, end)
    if len(distinct) == len(people):
        return found
    numbers = {each: number for number, each in enumerate(distinct)}
    return found.take(np.array([numbers[id(each)] for each in people], np.int64))


def within_all(people: Sequence[Sequence[Hours]], start: int, end: int) -> Groups:
    """As ``within_each``, for people who may have several hours, of which all count; none: any time."""
    any_time = Hours("UTC")
    found = None
    for number in range(max(map(len, people), default=0)):
        more = within_each([each[number] if number < len(each) else any_time for each in people], start, end)
        found = more if found is None else common(found, more)
    return within_each([any_time] * len(people), start, end) if found is None else found


def _within_distinct(people: Sequence[Hours], start: int, end: int) -> Groups:
    by_zone: dict[str, list[int]] = {}
    any_time: list[int] = []
    for number, each in enumerate(people):
        (any_time if each.are_any else by_zone.setdefault(each.zone, [])).append(number)
    count = len(any_time)
    parts = [_Owned(np.full(count, start), np.full(count, end), np.array(any_time, np.int64))]
    for zone, numbers in by_zone.items():
        found = _in_zone(zone, [people[number] for number in numbers], start, end)
        parts.append(found._replace(owners=np.array(numbers, np.int64)[found.owners]))
    merged = _merged(parts, len(people), start, end)
    replacing = [number for number, each in enumerate(people) if each.replaced is not None]
    return _replaced(merged, people, replacing, start, end) if replacing else merged


def _replaced(merged: Groups, people: Sequence[Hours], replacing: list[int], start: int, end: int) -> Groups:
    """The hours with their replaced dates; ``replacing`` are the people who have some."""
    dates = [each for number in replacing if (each := people[number].replaced) is not None]
    taken, opened = (
        within_each(hours, start, end)
        for hours in ([each.whole() for each in dates], [each.opened() for each in dates])
    )
    numbers = np.array(replacing, np.int64)
    # Each person's time in a lane of their own, so that one pass takes the days of each out of their hours.
    lane = end - start + 1
    base, days = merged.owners() * lane - start, numbers[taken.owners()] * lane - start
    left = free_parts(
        Intervals(taken.starts + days, taken.ends + days),
        Intervals(merged.starts + base, merged.ends + base),
    )
    owners = left.starts // lane
    back = owners * lane - start
    parts = [
        _Owned(left.starts - back, left.ends - back, owners),
        _Owned(opened.starts, opened.ends, numbers[opened.owners()]),
    ]
    return _merged(parts, len(people), start, end)


class _Owned(NamedTuple):
    """Intervals in any order, each with the number of its person."""

    starts: Times
    ends: Times
    owners: Indexes


def _merged(parts: Sequence[_Owned], people: int, start: int, end: int) -> Groups:
    starts, ends, owners = (np.concatenate(column) for column in zip(*parts, strict=True))
    return merge_owned(starts, ends, owners, people, (start, end))


def _in_zone(zone: str, people: Sequence[Hours], start: int, end: int) -> _Owned:
    """The windows of people in one zone, cut to ``[start, end)``; some rows end before they start."""
    columns = [each._columns for each in people]
    masks, earliest, latest = np.concatenate([each.weekly for each in columns], axis=1)
    owners = _owners([each.weekly.shape[1] for each in columns])
    closed_days = np.concatenate([each.days for each in columns])
    closed_of = _owners([each.days.size for each in columns])
    dated_starts, dated_ends = np.concatenate([each.dated for each in columns], axis=1)
    dated_of = _owners([each.dated.shape[1] for each in columns])
    time = clock(zone, start, end)
    parts = [_Owned(EMPTY, EMPTY, EMPTY)]
    for (low, high), offset in zip(time.stretches.pairs(), time.offsets.tolist(), strict=True):
        # Starts with the previous day, whose overnight windows may overlap the stretch.
        days = np.arange((low + offset) // DAY - 1, -(-(high + offset) // DAY))
        is_open = np.ones((len(people), days.size), np.bool_)
        near = ((closed_days >= days[0]) & (closed_days <= days[-1])).nonzero()[0]
        is_open[closed_of[near], closed_days[near] - days[0]] = False
        on_day = _ON_DAYS[:, (days + EPOCH_WEEKDAY) % 7].take(masks, axis=0)
        on_day &= is_open.take(owners, axis=0)
        window, day = on_day.nonzero()
        midnights = days[day] * DAY - offset
        starts = np.concatenate((midnights + earliest[window], dated_starts - offset))
        ends = np.concatenate((midnights + latest[window], dated_ends - offset))
        whose = np.concatenate((owners[window], dated_of))
        parts.append(_Owned(np.maximum(starts, low), np.minimum(ends, high), whose))
    starts, ends, whose = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Owned(starts, ends, whose)


def _owners(sizes: Sequence[int]) -> Indexes:
    return np.arange(len(sizes)).repeat(sizes)


def _latest(window: Window) -> int:
    """When a window ends: an overnight one on the next day."""
    return window.latest * MINUTE + (DAY if window.earliest > window.latest else 0)

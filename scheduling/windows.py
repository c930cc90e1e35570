"""Converts local time to UTC. No other module of the engine handles time zones."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from scheduling.intervals import EMPTY, Intervals, Times, intersect, merge

SECOND = 1_000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE
EVERY_DAY = frozenset(range(7))

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# 1970-01-01 was a Thursday, and Monday is 0.
EPOCH_WEEKDAY = 3
# In seconds. In every zone, two changes of offset are at least four days apart (Freetown, 1939; seven days
# since 1970), so there is at most one change between two probes.
_PROBE = 2 * DAY // SECOND
# datetime has no local times before year 1 or after 9999: the first and last days take the nearest offset.
_FIRST_PROBE = int((datetime(1, 1, 3, tzinfo=UTC) - _EPOCH).total_seconds())
_LAST_PROBE = int((datetime(9999, 12, 29, tzinfo=UTC) - _EPOCH).total_seconds())
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
# Files that zoneinfo would open but that are no IANA zones: the machine's local zone, and copies of zones
# (those in "right" count leap seconds).
_NOT_ZONES = re.compile(r"localtime|posixrules|posix/.*|right/.*")


@dataclass(frozen=True, slots=True)
class Window:
    """A window of local time on some days of the week.

    ``days``: 0 is Monday. ``earliest`` (included) and ``latest`` (excluded) are minutes of the local day;
    1440 is its end. If ``earliest > latest``, the window ends on the next day and belongs to the day on
    which it starts.
    """

    days: frozenset[int]
    earliest: int
    latest: int

    def __post_init__(self) -> None:
        if not self.days <= EVERY_DAY:
            raise ValueError(f"days are 0 (Monday) to 6, got {sorted(self.days)}")
        if not (0 <= self.earliest < 1440 and 0 <= self.latest <= 1440):
            raise ValueError(f"minutes of a day are 0 to 1440, got {self.earliest} to {self.latest}")
        if self.earliest == self.latest:
            raise ValueError(f"empty window from {self.earliest} to {self.latest}")

    @classmethod
    def daily(cls, earliest: int, latest: int) -> Window:
        """The same window on every day of the week."""
        return cls(EVERY_DAY, earliest, latest)


ALL_DAY = Window.daily(0, 1440)


@dataclass(frozen=True, slots=True)
class DateOverride:
    """The windows of one local date, which replace the weekly windows that start on it.

    ``windows`` are pairs of earliest and latest as in a ``Window``; without any, the date is closed, except
    for the end of an overnight window of the day before.
    """

    day: date
    windows: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        for earliest, latest in self.windows:
            # Raises for minutes that make no window.
            Window.daily(earliest, latest)


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """The UTC offsets of a zone over a range: in ``stretches[i]``, local time is UTC plus ``offsets[i]`` ms.

    The stretches are sorted and cover the range without gaps.
    """

    stretches: Intervals
    offsets: Times

    def days(self) -> tuple[Intervals, Times]:
        """The stretches cut at local midnights, and for each piece the instant of its local midnight.

        That instant is computed with the offset of the piece: it may lie before the piece, or at a local
        time that a change of offset skipped.
        """
        local = self.stretches.starts + self.offsets, self.stretches.ends + self.offsets
        days = np.arange(int(local[0].min()) // DAY, int(local[1].max() - 1) // DAY + 1) * DAY
        pieces, stretch, day = intersect(Intervals(*local), Intervals(days, days + DAY))
        offsets = self.offsets[stretch]
        return Intervals(pieces.starts - offsets, pieces.ends - offsets), days[day] - offsets


@lru_cache(maxsize=1024)
def zone_exists(name: str) -> bool:
    """Whether ``name`` is an IANA zone of the installed database. It opens no files except zones."""
    if not _NAME.fullmatch(name) or _NOT_ZONES.fullmatch(name):
        return False
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return False
    return True


def zone_named(text: str) -> str | None:
    """The IANA name of a zone, whatever the case of ``text``; None if there is no such zone."""
    if zone_exists(text):
        return text
    name = _names_by_lower_case().get(text.lower())
    return name if name is not None and zone_exists(name) else None


@lru_cache(maxsize=1)
def _names_by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def resolve(
    windows: tuple[Window, ...], zone: str, start: int, end: int, overrides: tuple[DateOverride, ...] = ()
) -> Intervals:
    """The parts of ``[start, end)`` whose local date and time lie in at least one window, merged.

    On a date of ``overrides``, only the windows of its override start. No date has two overrides.
    A window is shorter by an hour that is skipped in spring, longer by an hour that is repeated in autumn,
    and absent on a day that skips all of it.
    """
    first, last = _year(start), _year(end - 1)
    if first == last:
        return _cut(_resolve_year(windows, overrides, zone, first), start, end)
    years = range(first, last + 1)
    cuts = [_cut(_resolve_year(windows, overrides, zone, year), start, end) for year in years]
    # A window across the end of a UTC year has two touching pieces, which are merged.
    return merge(np.concatenate([cut.starts for cut in cuts]), np.concatenate([cut.ends for cut in cuts]))


def clock(zone: str, start: int, end: int) -> Clock:
    """The offsets of ``zone`` over the non-empty ``[start, end)``."""
    years = [_clock_year(zone, year) for year in range(_year(start), _year(end - 1) + 1)]
    edges = np.concatenate([year.stretches.starts for year in years])
    offsets = np.concatenate([year.offsets for year in years])
    inside = slice(np.searchsorted(edges, start, "right") - 1, np.searchsorted(edges, end, "left"))
    starts = np.maximum(edges[inside], start)
    return Clock(Intervals(starts, np.append(starts[1:], end)), offsets[inside])


def _cut(merged: Intervals, start: int, end: int) -> Intervals:
    """``clip`` for merged intervals, of which only the first and the last can change."""
    first, last = int(merged.ends.searchsorted(start, "right")), int(merged.starts.searchsorted(end, "left"))
    if first >= last:
        return Intervals(EMPTY, EMPTY)
    starts, ends = merged.starts[first:last].copy(), merged.ends[first:last].copy()
    starts[0], ends[-1] = max(start, int(starts[0])), min(end, int(ends[-1]))
    return Intervals(starts, ends)


# Requests repeat a few windows over many different ranges, so whole years are cached: about 6 kB each.
@lru_cache(maxsize=2048)
def _resolve_year(
    windows: tuple[Window, ...], overrides: tuple[DateOverride, ...], zone: str, year: int
) -> Intervals:
    """The windows over one UTC year, in one numpy pass: a request may have thousands of them."""
    time = _clock_year(zone, year)
    on_day = np.array([[day in window.days for day in range(7)] for window in windows]).reshape(-1, 7)
    earliest = np.array([window.earliest for window in windows], np.int64) * MINUTE
    latest = np.array([window.latest for window in windows], np.int64) * MINUTE
    # An overnight window ends on the next day.
    latest[earliest > latest] += DAY
    overridden, on_date = on_dates(overrides)
    opens = [EMPTY]
    closes = [EMPTY]
    for stretch, offset in zip(time.stretches.pairs(), time.offsets.tolist(), strict=True):
        # Starts with the previous day, whose overnight windows may overlap the stretch.
        days = np.arange((stretch[0] + offset) // DAY - 1, -(-(stretch[1] + offset) // DAY))
        days = days[~np.isin(days, overridden)] if overrides else days
        window, day = on_day[:, (days + EPOCH_WEEKDAY) % 7].nonzero()
        midnights = days[day] * DAY - offset
        opens.append(np.maximum(midnights + earliest[window], stretch[0]))
        closes.append(np.minimum(midnights + latest[window], stretch[1]))
        if overrides:
            # Windows outside of the stretch end before they start, and are dropped.
            opens.append(np.maximum(on_date.starts - offset, stretch[0]))
            closes.append(np.minimum(on_date.ends - offset, stretch[1]))
    return merge(np.concatenate(opens), np.concatenate(closes))


def on_dates(overrides: tuple[DateOverride, ...]) -> tuple[Times, Intervals]:
    """The overridden dates as days since 1970, and their windows in milliseconds of local time since then."""
    days = [override.day.toordinal() - _EPOCH.toordinal() for override in overrides]
    pairs = [
        (
            day * DAY + earliest * MINUTE,
            day * DAY + latest * MINUTE + (DAY if earliest > latest else 0),
        )
        for day, override in zip(days, overrides, strict=True)
        for earliest, latest in override.windows
    ]
    return np.array(days, np.int64), Intervals.of(pairs)


@lru_cache(maxsize=2048)
def _clock_year(zone: str, year: int) -> Clock:
    """The offsets of one UTC year."""
    start, end = _year_starts()[year - 1 : year + 1]
    starts, offsets = zip(*_changes(ZoneInfo(zone), start // SECOND, end // SECOND), strict=True)
    edges = np.array([*starts, end // SECOND]) * SECOND
    return Clock(Intervals(edges[:-1], edges[1:]), np.array(offsets) * SECOND)


def _changes(zone: tzinfo, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Changes of offset in ``[start, end)`` in seconds, each with the new offset; ``start`` comes first."""
    at, offset = start, _offset(zone, start)
    yield at, offset
    for probe in range(start + _PROBE, end + _PROBE, _PROBE):
        probe = min(probe, end - 1)
        if _offset(zone, probe) != offset:
            at = _bisect(zone, at, probe, offset)
            offset = _offset(zone, at)
            yield at, offset
        at = probe


def _bisect(zone: tzinfo, before: int, after: int, offset: int) -> int:
    """The first second in ``(before, after]`` whose offset is not ``offset``."""
    while after - before > 1:
        middle = (before + after) // 2
        if _offset(zone, middle) == offset:
            before = middle
        else:
            after = middle
    return after


def _offset(zone: tzinfo, second: int) -> int:
    """Local time minus UTC, in seconds."""
    instant = _EPOCH + timedelta(seconds=min(max(second, _FIRST_PROBE), _LAST_PROBE))
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


def _year(time: int) -> int:
    """The UTC year of an instant."""
    return bisect_right(_year_starts(), time)


@lru_cache(maxsize=1)
def _year_starts() -> list[int]:
    """The first instants of the years 1 to 10 000."""
    years = np.arange(1 - 1970, 10_001 - 1970).astype("M8[Y]")
    return years.astype("M8[ms]").astype(np.int64).tolist()

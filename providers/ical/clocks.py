"""Zones as clocks: from wall clocks to moments and back.

A wall clock is the milliseconds from 1970 to what it shows, as if it were in UTC. Sums need no calendar then,
and cannot leave the years that ``datetime`` knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from providers.ical.lines import UnreadableLine
from providers.timestamps import DAY, FIRST_MIDNIGHT

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock on purpose
_MILLISECOND = timedelta(milliseconds=1)
# The times that ``datetime`` knows.
_FIRST = (datetime(1, 1, 1) - _EPOCH) // _MILLISECOND  # noqa: DTZ001
_LAST = (datetime(9999, 12, 31, 23, 59, 59) - _EPOCH) // _MILLISECOND  # noqa: DTZ001

# Days whose offset is remembered. A calendar uses few of them often.
_DAYS = 40_000


def naive(wall: int) -> datetime:
    """The date and time on a wall clock, or the nearest that ``datetime`` can express."""
    return _EPOCH + timedelta(milliseconds=min(max(wall, _FIRST), _LAST))


def wall_of(shown: datetime) -> int:
    """The wall clock that shows this."""
    since = shown - _EPOCH
    return since.days * DAY + since.seconds * 1000


class Clock(ABC):
    """The clock of a zone; ``name`` is IANA's, empty for others."""

    name = ""

    def __init__(self) -> None:
        # The offset of days on which it does not change.
        self._days: dict[int, int] = {}

    def instant(self, wall: int) -> int:
        """The moment of a wall clock.

        A time that occurs twice means the first one, and a skipped time is read with the offset before the
        gap: https://www.rfc-editor.org/rfc/rfc5545#section-3.3.5.
        """
        day = wall // DAY
        offset = self._days.get(day)
        if offset is not None:
            return wall - offset
        begin = day * DAY
        offset = self._offset(begin)
        if offset == self._offset(begin + DAY):
            if len(self._days) >= _DAYS:
                self._days.clear()
            self._days[day] = offset
            return wall - offset
        return wall - self._offset(wall)

    def instants(self, walls: Sequence[int]) -> list[int]:
        """The moments of wall clocks."""
        known, instant = self._days.get, self.instant
        return [instant(wall) if (offset := known(wall // DAY)) is None else wall - offset for wall in walls]

    def later(self, wall: int) -> int:
        """The moment of a wall clock, the second one of a time that occurs twice."""
        return self.instant(wall)

    @abstractmethod
    def wall(self, moment: int) -> int:
        """The wall clock at a moment."""

    @abstractmethod
    def _offset(self, wall: int) -> int:
        """Milliseconds by which a wall clock is ahead of UTC."""


class ZoneClock(Clock):
    """The clock of a zone of the database."""

    def __init__(self, zone: tzinfo) -> None:
        super().__init__()
        self._zone = zone
        self.name = zone.key if isinstance(zone, ZoneInfo) else ""

    def later(self, wall: int) -> int:
        """As :meth:`Clock.later`."""
        return wall - self._of(naive(wall).replace(fold=1))

    def wall(self, moment: int) -> int:
        """As :meth:`Clock.wall`."""
        # Within them in any zone.
        known = min(max(moment, _FIRST + DAY), _LAST - DAY)
        shown = naive(known).replace(tzinfo=UTC).astimezone(self._zone)
        return moment + (shown.utcoffset() or timedelta()) // _MILLISECOND

    def _offset(self, wall: int) -> int:
        return self._of(naive(wall))

    def _of(self, shown: datetime) -> int:
        return (self._zone.utcoffset(shown) or timedelta()) // _MILLISECOND


class FileClock(Clock):
    """The clock of a ``VTIMEZONE``; https://www.rfc-editor.org/rfc/rfc5545#section-3.6.5.

    ``changes`` are the wall clock before each change, and the offsets before and after it.

    :raise Unreadable: when the clock changes again before a change is over
    """

    def __init__(self, changes: Iterable[tuple[int, int, int]]) -> None:
        super().__init__()
        ordered = sorted(changes, key=lambda change: change[0] - change[1])
        if not ordered:
            raise UnreadableLine
        self._before = ordered[0][1]
        self._after = [after for _, _, after in ordered]
        self._moments = [wall - before for wall, before, _ in ordered]
        # A skipped time has the offset before the change, and of a repeated one the first is meant.
        self._walls = [wall + max(0, after - before) for wall, before, after in ordered]
        if self._walls != sorted(self._walls):
            raise UnreadableLine

    def wall(self, moment: int) -> int:
        """As :meth:`Clock.wall`."""
        index = bisect_right(self._moments, moment)
        return moment + (self._after[index - 1] if index else self._before)

    def _offset(self, wall: int) -> int:
        index = bisect_right(self._walls, wall)
        return self._after[index - 1] if index else self._before


@lru_cache(maxsize=64)
def clock(zone: tzinfo) -> Clock:
    """The clock of a zone of the database, shared by all calendars."""
    return ZoneClock(zone)


IN_UTC = clock(UTC)


def unknown() -> Clock:
    """A clock for one zone that is not known: that where a day begins first on earth."""
    return ZoneClock(FIRST_MIDNIGHT)

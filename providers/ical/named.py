"""Which occurrences of a series the lines EXDATE and RECURRENCE-ID name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from providers.ical.clocks import Clock
from providers.ical.entries import Entry
from providers.ical.times import Edge
from providers.timestamps import DAY

# The unknown zone, or None for a known one; whether it is a date; the moment, or the number of the day.
Name = tuple[Clock | None, bool, int]


def name_of(edge: Edge, zone: Clock) -> Name:
    """The name that a line states; ``zone`` is that of floating times and whole days."""
    return edge.unknown, edge.is_date, edge.wall // DAY if edge.is_date else edge.instant(zone)


def names_of(wall: int, at: int, start: Edge) -> tuple[Name, Name]:
    """The names of an occurrence: its moment and its day. ``start`` states its zone."""
    return (start.unknown, False, at), (start.unknown, True, wall // DAY)


class NamedOccurrences:
    """The occurrences of a series that some lines name for certain. One that a line only may name stays.

    A time in an unknown zone and a time elsewhere are never the same for certain. Even if only one
    occurrence can be meant, the line may be left from a time of the series before it was moved.

    A date names the occurrences of its day. If the series has a zone of its own, this must be their day both
    in it and in the calendar's zone: the file does not say of which zone the date is. A floating time must be
    the same moment in both.

    ``first`` is the start of the series, ``zone`` the zone of floating times and whole days.
    """

    def __init__(self, edges: Iterable[Edge], first: Edge, zone: Clock) -> None:
        self._first, self._zone = first, zone
        self._names = {name_of(each, zone) for each in edges if self._is_one_moment(each)}

    def _is_one_moment(self, edge: Edge) -> bool:
        own = self._first.zone
        if edge.zone is not None or edge.is_date or own is None or self._first.vague:
            return True
        return own.instant(edge.wall) == self._zone.instant(edge.wall)

    def has(self, wall: int, at: int, start: Edge) -> bool:
        """Whether an occurrence is named, given as in :func:`names_of`."""
        moment, day = names_of(wall, at, start)
        if moment in self._names:
            return True
        if day not in self._names:
            return False
        if start.vague or self._first.vague:
            # The date is in the zone of the occurrence. There is no other one if the series is in it too.
            return start.zone is self._first.zone
        return self._zone.wall(at) // DAY == wall // DAY

    def __bool__(self) -> bool:
        return bool(self._names)


def removed(master: Entry) -> Iterator[Edge]:
    """The occurrences that EXDATE states, by their times.

    In an all-day series, a floating time means its day, and one with a zone only if it is midnight there:
    others in UTC are, at most, the midnight of the calendar's zone, which is the moment of an occurrence.
    """
    for each in master.removed:
        yield each
        start = master.span.start if master.span else None
        if start is not None and start.is_date and (each.zone is start.zone or _is_midnight(each)):
            yield start._replace(wall=each.wall // DAY * DAY)


def _is_midnight(edge: Edge) -> bool:
    return not edge.vague and edge.wall % DAY == 0

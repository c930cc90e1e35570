"""Dates, times and durations as iCalendar writes them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple, Protocol

from providers.ical.clocks import IN_UTC, Clock, wall_of
from providers.ical.lines import UnreadableLine, divide
from providers.timestamps import DAY

_VALUE = re.compile(r"(\d{8})(T\d{6})?(Z)?", re.ASCII | re.IGNORECASE)
# Parameters without quotes and a value: nearly all lines of times.
_LINE = re.compile(r'((?:;[^:"]*)?):(\d{8})(T\d{6})?(Z)?\s*', re.ASCII | re.IGNORECASE)
_DURATION = re.compile(
    r"\+?P(?:(\d{1,6})W)?(?:(\d{1,7})D)?(?:T(?:(\d{1,8})H)?(?:(\d{1,8})M)?(?:(\d{1,9})S)?)?",
    re.ASCII | re.IGNORECASE,
)


class Edge(NamedTuple):
    """A start or an end as it is stated.

    ``wall`` is a wall clock (see ``clocks``), midnight for a date. Without ``zone`` it is that of the
    calendar, whose zone the reader decides. ``vague``: the file does not say what its zone is. ``zone`` is
    then the clock where a day begins first, one for each name.
    """

    wall: int
    zone: Clock | None
    is_date: bool = False
    vague: bool = False

    @property
    def unknown(self) -> Clock | None:
        """Its zone if it is not known: two times in one are apart as they are stated."""
        return self.zone if self.vague else None

    def instant(self, zone: Clock) -> int:
        """Its moment, in ``zone`` if it has none."""
        return (self.zone or zone).instant(self.wall)


class Length(NamedTuple):
    """A stated duration: whole days of the calendar, then exact milliseconds."""

    days: int
    milliseconds: int


class ZoneReader(Protocol):
    """Reads the parameters of a time."""

    def of(self, parameters: str) -> tuple[Clock | None, bool, bool]:
        """The zone, whether the value is declared to be a date, and whether the zone is vague."""
        ...


class NoZones:
    """For values that have no parameters."""

    @staticmethod
    def of(_: str) -> tuple[None, bool, bool]:
        """No zone, which is not vague, and no date by declaration."""
        return None, False, False


def moment(parameters: str, value: str, zones: ZoneReader) -> Edge:
    """A DATE or DATE-TIME value; https://www.rfc-editor.org/rfc/rfc5545#section-3.3.5.

    A value without a time is a date, also if ``VALUE=DATE`` is missing.

    :raise Unreadable: for any other value
    """
    found = _VALUE.fullmatch(value)
    if found is None:
        raise UnreadableLine
    return _edge(zones, parameters, *found.groups())


def moment_of(rest: str, zones: ZoneReader) -> Edge:
    """The same of a content line; ``rest`` is what follows its name."""
    found = _LINE.fullmatch(rest)
    if found is None:
        return moment(*divide(rest), zones)
    return _edge(zones, *found.groups())


def _edge(
    zones: ZoneReader, parameters: str, day: str, time: str | None = None, in_utc: str | None = None
) -> Edge:
    zone, is_date, vague = zones.of(parameters)
    try:
        if time is None or is_date:
            if time is None and in_utc:
                raise UnreadableLine
            # A date has no zone of its own: RFC 5545, 3.2.19.
            zone, _, vague = zones.of("")
            return Edge(wall_of(datetime.fromisoformat(day)), zone, True, vague)
        if time.endswith("60"):
            # A leap second.
            time = time[:5] + "59"
        if time[1:] == "240000":
            # ISO 8601: the end of the day.
            wall = wall_of(datetime.fromisoformat(day)) + DAY
        else:
            wall = wall_of(datetime.fromisoformat(day + time))
    except ValueError:
        raise UnreadableLine from None
    return Edge(wall, IN_UTC) if in_utc else Edge(wall, zone, False, vague)


def duration(value: str) -> Length:
    """A DURATION value; https://www.rfc-editor.org/rfc/rfc5545#section-3.3.6. Days and weeks are nominal.

    :raise Unreadable: for any other value, also a negative one
    """
    found = _DURATION.fullmatch(value)
    if found is None or not any(each is not None for each in found.groups()):
        raise UnreadableLine
    weeks, days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return Length(7 * weeks + days, ((hours * 60 + minutes) * 60 + seconds) * 1000)

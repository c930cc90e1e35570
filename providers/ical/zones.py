"""The zones that a calendar names: IANA's and Windows' by name, others by the definitions of the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

from providers.ical.bounds import Budget
from providers.ical.clocks import Clock, FileClock, clock, unknown, wall_of
from providers.ical.components import Component
from providers.ical.lines import UnreadableLine, divide, parameters
from providers.ical.rules import parse_rule, starts
from providers.ical.times import Edge, NoZones, moment
from providers.timestamps import DAY
from scheduling.zones import iana_zone

# The years whose changes of the clock are read from a definition.
_FIRST = wall_of(datetime(1970, 1, 1))  # noqa: DTZ001 - wall clocks
_LAST = wall_of(datetime(2100, 1, 1))  # noqa: DTZ001

# Offsets at IANA, and places with summer time in files.
_ABBREVIATIONS = frozenset({"EST", "MST", "HST", "GMT"})
_OFFSET = re.compile(r"([+-])([01]\d|2[0-3])([0-5]\d)([0-5]\d)?", re.ASCII)


class Zones:
    """The zones of one calendar by the parameters of its times; each is resolved once."""

    def __init__(self, definitions: Mapping[str, Component], budget: Budget) -> None:
        self._definitions = definitions
        self._budget = budget
        # The zone of times without one, and whether it is vague.
        self._floating: tuple[Clock | None, bool] = (None, False)
        self._by_parameters: dict[str, tuple[Clock | None, bool, bool]] = {"": (None, False, False)}
        self._by_name: dict[str, Clock | None] = {}
        self._unknown_by_name: dict[str, Clock] = {}

    def of(self, text: str) -> tuple[Clock | None, bool, bool]:
        """See :class:`providers.ical.times.ZoneReader`.

        A vague zone is the one where a day begins first. Who uses it must widen the time to where it ends
        last.
        """
        found = self._by_parameters.get(text)
        if found is None:
            given = parameters(text)
            is_date = given.get("VALUE", "").upper() == "DATE"
            name = given.get("TZID")
            if not name:
                zone, vague = self._floating
            else:
                zone = self.named(name)
                zone, vague = zone or self._unknown(name), zone is None
            found = (zone, is_date, vague)
            self._by_parameters[text] = found
        return found

    def float_in_unknown(self, name: str) -> None:
        """Read floating times and days as those of an unknown zone, which has this name, or none."""
        zone = self._unknown(name)
        self._floating = (zone, True)
        self._by_parameters = {"": (zone, False, True)}

    def _unknown(self, name: str) -> Clock:
        return self._unknown_by_name.setdefault(name, unknown())

    def named(self, name: str) -> Clock | None:
        """The zone of a name: IANA's, Windows', or one that the file defines; None if it is unknown.

        The definition of the file counts for abbreviations that have no summer time at IANA.
        """
        if name not in self._by_name:
            first, second = self._known, self._defined
            if name.upper() in _ABBREVIATIONS:
                first, second = second, first
            self._by_name[name] = first(name) or second(name)
        return self._by_name[name]

    @staticmethod
    def _known(name: str) -> Clock | None:
        # "/freeassociation.sourceforge.net/Europe/Berlin" and "/mozilla.org/20050126_1/Europe/Berlin": a
        # globally unique name ends with IANA's. https://www.rfc-editor.org/rfc/rfc5545#section-3.2.19
        parts = name.strip().split("/")
        tails = ["/".join(parts[-count:]) for count in (3, 2, 1)] if name.startswith("/") else [name]
        zone = next((each for each in map(iana_zone, tails) if each), None)
        return clock(ZoneInfo(zone)) if zone else None

    def _defined(self, name: str) -> Clock | None:
        definition = self._definitions.get(name)
        if definition is None:
            return None
        try:
            return FileClock(change for part in definition.parts for change in _changes(part, self._budget))
        except UnreadableLine:
            return None


def _changes(part: Component, budget: Budget) -> list[tuple[int, int, int]]:
    """The changes of the clock that one part of a definition states, as ``FileClock`` takes them."""
    first = moment("", part.single("DTSTART"), NoZones)
    before, after = _offset(part.single("TZOFFSETFROM")), _offset(part.single("TZOFFSETTO"))
    walls = {first.wall}
    for rest in part.every("RRULE"):
        rule = parse_rule(divide(rest)[1])
        last = _LAST if rule.until is None else min(_LAST, _wall(rule.until, before))
        walls.update(starts(rule, first.wall, _FIRST, last, budget))
    for rest in part.every("RDATE"):
        walls.update(moment("", each.strip(), NoZones).wall for each in divide(rest)[1].split(","))
    return [(wall, before, after) for wall in walls]


def _wall(until: Edge, before: int) -> int:
    """The wall clock of an UNTIL, which is in UTC: the offset is the one before the change."""
    if until.is_date:
        return until.wall + DAY
    return until.wall + before if until.zone is not None else until.wall


def _offset(value: str) -> int:
    """A UTC-OFFSET value in milliseconds; https://www.rfc-editor.org/rfc/rfc5545#section-3.3.14."""
    found = _OFFSET.fullmatch(value)
    if found is None:
        raise UnreadableLine
    sign, hours, minutes, seconds = found.groups()
    offset = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)) * 1000
    return -offset if sign == "-" else offset

"""A calendar that was read: its zone, its name, and its entries by series."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from itertools import accumulate

from providers.ical import entries
from providers.ical.bounds import Budget, InvalidCalendar, Limits
from providers.ical.clocks import IN_UTC, Clock, clock
from providers.ical.components import Component, parse
from providers.ical.entries import Entry
from providers.ical.lines import UnreadableLine, divide, plain, unfold
from providers.ical.zones import Zones

DEFAULT_LIMITS = Limits()


@dataclass(slots=True, eq=False)
class Series:
    """Events of one UID in one ``VCALENDAR``.

    ``masters`` recur, or are a single event; ``exceptions`` replace occurrences.
    """

    masters: list[Entry] = field(default_factory=list)
    exceptions: list[Entry] = field(default_factory=list)

    @property
    def unknown_zones(self) -> set[Clock | None]:
        """The unknown zones of the starts of its masters; None stands for every known zone."""
        spans = (span for each in self.masters if each.span for span in (each.span, *each.added))
        return {each.start.unknown for each in spans}

    def refuse_incomparable(self) -> None:
        """Give exceptions for all later occurrences a problem if an unknown zone hides which these are."""
        later = [each for each in self.exceptions if each.later_too]
        of_masters = self.unknown_zones if later else set()
        for each in later:
            starts = (each.span.start if each.span else None, each.replaces)
            if len(of_masters | {start.unknown for start in starts if start is not None}) > 1:
                each.problem = entries.UNKNOWN_CHANGE


@dataclass(slots=True, eq=False)
class CalendarText:
    """A calendar. ``zone`` is the one that it states, None without a known one; ``name`` is empty without.

    ``singles`` are events that do not recur, and busy times. ``series`` are by the number of their
    ``VCALENDAR`` and their UID: an exception in one says nothing about a copy in another. ``text`` is
    unfolded; components have their places in it, and so have the contents that were read, in ``begins``.
    """

    zone: Clock | None
    name: str
    singles: list[Entry]
    series: dict[tuple[int, str], Series]
    text: str = field(repr=False)
    begins: Sequence[int] = (0,)
    limits: Limits = DEFAULT_LIMITS

    def zone_or(self, other: tzinfo | None) -> Clock:
        """The zone of floating times and whole days: the calendar's, or ``other``, or UTC."""
        return self.zone or (clock(other) if other is not None else IN_UTC)

    def content_of(self, entry: Entry) -> int:
        """The number of the content in which an entry is, from 0."""
        return bisect_right(self.begins, entry.component.begin) - 1

    def only(self, uid: str) -> CalendarText:
        """The calendar with the series of one UID."""
        return replace(
            self, singles=[], series={key: each for key, each in self.series.items() if key[1] == uid}
        )

    def masters(self, uid: str) -> list[Entry]:
        """The masters of all series of one UID."""
        return [master for each in self.only(uid).series.values() for master in each.masters]

    def exceptions(self, uid: str) -> list[Entry]:
        """The exceptions of all series of one UID."""
        return [exception for each in self.only(uid).series.values() for exception in each.exceptions]


def read(
    *contents: bytes, limits: Limits = DEFAULT_LIMITS, states_zone: bool = True, deadline: float
) -> CalendarText:
    """Parse a calendar; several ``VCALENDAR`` after each other are one, each with zones of its own.

    Several contents are too, under the limits of one.

    ``states_zone``: a zone that the text states counts. ``deadline`` is a value of ``time.monotonic()``.

    :raise InvalidCalendar: when it cannot be parsed as a whole, or exceeds a limit
    :raise Unavailable: when the deadline has passed
    """
    if sum(map(len, contents)) > limits.size:
        raise InvalidCalendar(f"The calendar is larger than {limits.size:,} bytes")
    texts = [unfold(each) for each in contents]
    text = "\n".join(texts)
    budget = Budget(limits, deadline)
    budget.look()
    calendars = parse(text, limits)
    zones = _zones(calendars, text, budget)
    zone = _zone(calendars, zones) if states_zone else None
    singles: list[Entry] = []
    series: dict[tuple[int, str], Series] = {}
    for number, (one, own) in enumerate(zip(calendars, zones, strict=True)):
        found: list[Entry] = []
        for each in one.parts:
            budget.spend()
            if each.name == "VEVENT":
                entry = entries.event(each, own)
                if entry.is_series or entry.replaces is not None:
                    # Without a UID it has nothing to do with other events.
                    of_uid = series.setdefault((number, entry.uid or f"{len(series)} without"), Series())
                    (of_uid.masters if entry.replaces is None else of_uid.exceptions).append(entry)
                else:
                    found.append(entry)
            elif each.name == "VFREEBUSY":
                found.extend(entries.free_busy(each, own))
        singles += _grouped(found, series, number)
    for group in series.values():
        group.refuse_incomparable()
    return CalendarText(
        zone=zone,
        name=_first(calendars, "X-WR-CALNAME") or _first(calendars, "NAME"),
        singles=singles,
        series=series,
        text=text,
        begins=[0, *accumulate(len(each) + 1 for each in texts[:-1])],
        limits=limits,
    )


def _grouped(singles: list[Entry], series: dict[tuple[int, str], Series], number: int) -> list[Entry]:
    """The singles of a ``VCALENDAR``, without events of which it has exceptions.

    These are moved to their series.
    """
    left = []
    for each in singles:
        group = series.get((number, each.uid))
        if group is not None and each.component.name == "VEVENT":
            group.masters.append(each)
        else:
            left.append(each)
    return left


def _zones(calendars: list[Component], text: str, budget: Budget) -> list[Zones]:
    """The zones of each ``VCALENDAR``: two may define different zones by one name, as Outlook does.

    Calendars with the same stated zone and equal definitions share them, as each zone takes time to resolve.
    """
    known: dict[tuple[str, ...], Zones] = {}
    found = []
    for calendar in calendars:
        definitions = [each for each in calendar.parts if each.name == "VTIMEZONE"]
        stated = _first([calendar], "X-WR-TIMEZONE")
        key = (stated, *(text[each.begin : each.end] for each in definitions))
        if key not in known:
            known[key] = Zones(_definitions(definitions), budget)
        found.append(known[key])
    return found


def _definitions(zones: list[Component]) -> dict[str, Component]:
    found: dict[str, Component] = {}
    for each in zones:
        try:
            found.setdefault(each.single("TZID"), each)
        except UnreadableLine:
            continue
    return found


def _zone(calendars: list[Component], zones: list[Zones]) -> Clock | None:
    """The first zone that a ``VCALENDAR`` states and that is known.

    If a ``VCALENDAR`` states a zone that is not known, its floating times and days are in an unknown zone.
    If no stated zone is known, this holds for every ``VCALENDAR``.
    """
    names = [_first([each], "X-WR-TIMEZONE") for each in calendars]
    stated = [own.named(name) if name else None for name, own in zip(names, zones, strict=True)]
    zone = next(filter(None, stated), None)
    for name, known, own in zip(names, stated, zones, strict=True):
        if known is None and (name or (zone is None and any(names))):
            own.float_in_unknown(name)
    return zone


def _first(calendars: list[Component], name: str) -> str:
    for each in calendars:
        for rest in each.every(name):
            try:
                return plain(divide(rest)[1])
            except UnreadableLine:
                continue
    return ""

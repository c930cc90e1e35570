"""One ``VEVENT`` or ``VFREEBUSY``: its times, its series, and whether it makes busy."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from providers.ical.components import Component
from providers.ical.lines import UnreadableLine, divide, parameters
from providers.ical.rules import Rule, possible_rules
from providers.ical.times import Edge, Length, ZoneReader, duration, moment, moment_of
from providers.timestamps import FIRST_MIDNIGHT, LAST_MIDNIGHT

# A time in an unknown zone is by this much longer than stated: it may begin where a day begins first, and
# end where one ends last.
WIDENED = round((FIRST_MIDNIGHT.utcoffset(None) - LAST_MIDNIGHT.utcoffset(None)).total_seconds() * 1000)

_ONE_DAY = Length(1, 0)
_NONE = Length(0, 0)

# https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxcical: what Outlook calls an event.
_MICROSOFT_FREE = frozenset({"FREE", "WORKINGELSEWHERE"})
_MICROSOFT_BUSY = frozenset({"BUSY", "TENTATIVE", "OOF"})

UNKNOWN_CHANGE = "The calendar has an event that changes a series in a way that is not known"


class Span(NamedTuple):
    """A stated time: to ``end``, or else for ``length``."""

    start: Edge
    end: Edge | None
    length: Length = _NONE

    @property
    def is_vague(self) -> bool:
        """Whether a zone of it is not known."""
        return self.start.vague or (self.end is not None and self.end.vague)


@dataclass(slots=True, eq=False)
class Entry:
    """An event, or exceptions to one, as the file states it.

    ``problem`` says why it cannot be understood; a reader that needs it fails. ``span`` is None when it
    states no time. ``declined`` are the addresses of those who have declined, in lower case.
    ``later_too``: it replaces an occurrence and all later ones. ``component`` is where its other properties
    are.
    """

    uid: str
    component: Component
    span: Span | None = None
    rules: tuple[Rule, ...] = ()
    added: tuple[Span, ...] = ()
    removed: tuple[Edge, ...] = ()
    replaces: Edge | None = None
    later_too: bool = False
    cancelled: bool = False
    transparent: bool = False
    declined: frozenset[str] = field(default=frozenset())
    problem: str | None = None

    @property
    def is_series(self) -> bool:
        """Whether it recurs by itself."""
        return bool(self.rules or self.added)

    def blocks(self, own: Set[str]) -> bool:
        """Whether a person with these addresses, in lower case, is busy during it."""
        return not (self.cancelled or self.transparent or (self.declined and self.declined & own))


def event(component: Component, zones: ZoneReader) -> Entry:
    """The entry of a ``VEVENT``."""
    entry = Entry(_text(component, "UID"), component)
    properties = component.properties
    if "STATUS" in properties:
        entry.cancelled = _values(component, "STATUS") == {"CANCELLED"}
    entry.transparent = _is_transparent(component)
    if "ATTENDEE" in properties:
        entry.declined = frozenset(_declined(component))
    try:
        entry.span = _span(component, zones)
    except UnreadableLine:
        entry.problem = "The calendar has an event whose time cannot be read"
        if entry.cancelled and "DTSTART" not in properties and "RECURRENCE-ID" in properties:
            # It says which occurrence is cancelled, and needs no time of its own.
            _read_exception(entry, zones)
        return entry
    if "RECURRENCE-ID" in properties:
        _read_exception(entry, zones)
    if "RRULE" in properties or "RDATE" in properties:
        _read_series(entry, zones)
        if entry.replaces is not None:
            # RFC 5545 does not say what a series in place of an occurrence is.
            entry.problem = UNKNOWN_CHANGE
    return entry


def _read_exception(entry: Entry, zones: ZoneReader) -> None:
    try:
        found = entry.component.property("RECURRENCE-ID")
        assert found is not None
        entry.replaces = moment(*found, zones)
    except UnreadableLine:
        # The occurrence that it replaces stays, beside it.
        return
    scope = parameters(found[0]).get("RANGE", "").upper()
    entry.later_too = scope == "THISANDFUTURE"
    if scope not in ("", "THISANDFUTURE"):
        entry.problem = UNKNOWN_CHANGE


def _read_series(entry: Entry, zones: ZoneReader) -> None:
    """The parts of a series. An EXDATE that cannot be read removes nothing."""
    try:
        entry.rules = tuple(
            rule for rest in entry.component.every("RRULE") for rule in possible_rules(divide(rest)[1])
        )
        entry.added = tuple(
            each for rest in entry.component.every("RDATE") for each in _added(entry, rest, zones)
        )
    except UnreadableLine:
        entry.problem = "The calendar has an event whose recurrence cannot be read"
        return
    entry.removed = tuple(each for rest in entry.component.every("EXDATE") for each in _removed(rest, zones))


def _added(entry: Entry, rest: str, zones: ZoneReader) -> Iterator[Span]:
    given, value = divide(rest)
    assert entry.span is not None
    for each in filter(None, map(str.strip, value.split(","))):
        if "/" in each:
            yield _period(given, each, zones)
        else:
            yield Span(moment(given, each, zones), entry.span.end, entry.span.length)


def _removed(rest: str, zones: ZoneReader) -> Iterator[Edge]:
    try:
        given, value = divide(rest)
    except UnreadableLine:
        return
    for each in value.split(","):
        try:
            yield moment(given, each.strip(), zones)
        except UnreadableLine:
            continue


def _span(component: Component, zones: ZoneReader) -> Span:
    """The time of an event; https://www.rfc-editor.org/rfc/rfc5545#section-3.6.1."""
    first, last = component.line("DTSTART"), component.line("DTEND")
    if first is None:
        raise UnreadableLine
    start = moment_of(first, zones)
    if last is not None:
        return Span(start, moment_of(last, zones))
    length = component.property("DURATION")
    if length is not None:
        return Span(start, None, duration(length[1]))
    return Span(start, None, _ONE_DAY if start.is_date else _NONE)


def _period(given: str, value: str, zones: ZoneReader) -> Span:
    """A PERIOD value; https://www.rfc-editor.org/rfc/rfc5545#section-3.3.9."""
    start, _, last = value.strip().partition("/")
    begin = moment(given, start, zones)
    if last[:1] in "Pp+":
        return Span(begin, None, duration(last))
    return Span(begin, moment(given, last, zones))


def free_busy(component: Component, zones: ZoneReader) -> list[Entry]:
    """The busy periods of a ``VFREEBUSY``; https://www.rfc-editor.org/rfc/rfc5545#section-3.2.9.

    A type that is not known means busy. If a period cannot be read, all the time that the component is about
    counts.
    """
    try:
        spans = list(_busy_spans(component, zones))
    except UnreadableLine:
        return [_whole(component, zones)]
    return [Entry(_text(component, "UID"), component, each) for each in spans]


def _busy_spans(component: Component, zones: ZoneReader) -> Iterator[Span]:
    for rest in component.every("FREEBUSY"):
        given, value = divide(rest)
        if parameters(given).get("FBTYPE", "").upper() != "FREE":
            for each in filter(None, map(str.strip, value.split(","))):
                yield _period(given, each, zones)


def _whole(component: Component, zones: ZoneReader) -> Entry:
    entry = Entry(_text(component, "UID"), component)
    try:
        entry.span = _span(component, zones)
    except UnreadableLine:
        entry.span = None
    if entry.span is None or entry.span.end is None:
        entry.problem = "The calendar has busy time that cannot be read"
    return entry


def _text(component: Component, name: str) -> str:
    """The first value of a property, empty when there is none that can be read."""
    rest = component.properties.get(name)
    if rest is None:
        return ""
    return _value(rest if isinstance(rest, str) else rest[0])


def _value(rest: str) -> str:
    try:
        return divide(rest)[1]
    except UnreadableLine:
        return ""


def _values(component: Component, name: str) -> set[str]:
    """The different values of a property in capitals; one that cannot be read is empty.

    RFC 5545, 3.6.1 allows STATUS and TRANSP once. A file with several lines contradicts itself if the values
    differ: an event is cancelled or free only if all of them say so.
    """
    return {_value(rest).upper() for rest in component.every(name)}


def _is_transparent(component: Component) -> bool:
    """Whether the event is shown as free: one property says so, and the other does not contradict."""
    says = _values(component, "TRANSP")
    if says == {"OPAQUE"}:
        return False
    microsoft = _values(component, "X-MICROSOFT-CDO-BUSYSTATUS")
    if says == {"TRANSPARENT"}:
        return not microsoft & _MICROSOFT_BUSY
    return says <= {""} and bool(microsoft) and microsoft <= _MICROSOFT_FREE


def _declined(component: Component) -> Iterator[str]:
    for rest in component.every("ATTENDEE"):
        if "DECLINED" not in rest.upper():
            continue
        try:
            given, value = divide(rest)
        except UnreadableLine:
            continue
        if parameters(given).get("PARTSTAT", "").upper() == "DECLINED":
            yield address(value)


def address(value: str) -> str:
    """The address of a CAL-ADDRESS value, in lower case."""
    lower = value.strip().lower()
    return lower.removeprefix("mailto:")

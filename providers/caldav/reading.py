"""Events in calendar objects; pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from providers import etags
from providers.caldav import lines
from providers.caldav.collection import Collection, StoredObject
from providers.caldav.errors import PROVIDER
from providers.caldav.lines import Component
from providers.caldav.writing import Times
from providers.errors import Unreadable
from providers.events import Day, Event, Moment, When
from providers.http.calls import unreadable
from providers.http.json_validation import SHAPE_ERRORS
from providers.ical.bounds import Budget
from providers.ical.calendar import CalendarText
from providers.ical.clocks import Clock, naive
from providers.ical.entries import Entry
from providers.ical.events import Reader
from providers.ical.occurrences import Occurrence, occurrence_id, occurrences, period
from providers.ical.times import NoZones, moment
from providers.timestamps import DAY

# The id of an occurrence of a series; a UID may look like one.
_OCCURRENCE = re.compile(r"(?P<uid>.+)_(?P<start>\d{8}(?:T\d{6}Z)?)", re.ASCII | re.DOTALL)


@dataclass(slots=True)
class FoundEvent:
    """An event that was found: in its object, and as it is now. ``part``: it is an occurrence of a series."""

    stored: StoredObject
    text: CalendarText
    zone: Clock
    found: Occurrence
    part: bool
    event: Event


def uid_in(event_id: str) -> str:
    """A part of the UID of the event with this id; the whole UID if it is an occurrence."""
    found = _OCCURRENCE.fullmatch(event_id)
    return found["uid"] if found else event_id


def is_shown(entry: Entry) -> bool:
    """Whether a list has the event."""
    return not entry.cancelled and entry.component.name == "VEVENT" and bool(entry.uid)


def find(collection: Collection, stored: StoredObject, event_id: str) -> FoundEvent | None:
    """The event, or the occurrence, with this id in an object; None when it has none.

    :raise Unreadable: when the event cannot be understood
    """
    text = collection.read([stored])
    zone = collection.zone_of(text)
    for entry in entries(text):
        if entry.uid == event_id and entry.replaces is None and is_shown(entry):
            return _known(collection, stored, text, zone, _first(collection, entry, zone), part=False)
    parts = _OCCURRENCE.fullmatch(event_id)
    if parts is None or not (series := text.only(parts["uid"])).series:
        return None
    try:
        at = moment("", parts["start"], NoZones).instant(zone)
    except ValueError:
        return None
    budget = Budget(text.limits, collection.server.deadline)
    for each in occurrences(series, at - DAY, at + DAY, zone, budget, is_shown):
        if each.original is not None and occurrence_id(each, zone) == event_id:
            return _known(collection, stored, text, zone, each, part=True)
    return None


def named(collection: Collection, stored: StoredObject, meta_id: str) -> Event | None:
    """The event in an object that has a metaId."""
    text = collection.read([stored])
    zone = collection.zone_of(text)
    for entry in filter(is_shown, entries(text)):
        found = _first(collection, entry, zone)
        known = _known(collection, stored, text, zone, found, part=entry.replaces is not None)
        if known.event.meta_id == meta_id:
            return known.event
    return None


def entries(text: CalendarText) -> Iterator[Entry]:
    """Every event of some objects."""
    yield from text.singles
    for each in text.series.values():
        yield from each.masters
        yield from each.exceptions


def event(
    collection: Collection,
    text: CalendarText,
    zone: Clock,
    found: Occurrence,
    etag: str | None,
    *,
    part: bool,
) -> Event:
    """The event of an occurrence; ``part``: it stands for itself, not for its series.

    :raise Unreadable: when it has properties that cannot be parsed
    """
    reader = Reader("caldav", collection.calendar_id, collection.own)
    try:
        made = reader.event(text, found, zone, series=found.entry.is_series and not part)
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, collection.operation) from None
    days = {"start": {"date": _day(made.start, zone).date}, "end": {"date": _day(made.end, zone).date}}
    return replace(made, etag=etags.weak(etag), original=made.original | days)


def _known(
    collection: Collection,
    stored: StoredObject,
    text: CalendarText,
    zone: Clock,
    found: Occurrence,
    *,
    part: bool,
) -> FoundEvent:
    made = event(collection, text, zone, found, stored.etag, part=part)
    return FoundEvent(stored, text, zone, found, part, made)


def _first(collection: Collection, entry: Entry, zone: Clock) -> Occurrence:
    """The first occurrence of an event, or the only one."""
    if entry.problem is not None or entry.span is None:
        raise unreadable(PROVIDER, collection.operation)
    original = None if entry.replaces is None else entry.replaces.instant(zone)
    return Occurrence(entry, *period(entry.span, zone), original)


def times_of(known: FoundEvent, entry: Entry, component: Component) -> Times:
    """When a known event is, in the form in which ``entry`` states times; ``component`` are its lines."""
    if entry.span is None:
        raise Unreadable(f"{PROVIDER} gave an event without a time")
    start, end = known.event.start, known.event.end
    edge = entry.span.start
    if edge.is_date:
        return Times(_day(start, known.zone), _day(end, known.zone), None, known.zone)
    first = component.first("DTSTART")
    tzid = lines.parts(first)[0].get("TZID") if first else None
    if tzid is None:
        floats = edge.zone is None
        return Times(Moment(start), Moment(end), None, known.zone if floats else None, floats=floats)
    zone = None if edge.vague else edge.zone
    return Times(Moment(start), Moment(end), None if zone is None else str(tzid), zone)


def original_of(known: FoundEvent, *, of_days: bool) -> When:
    """The start that the series gives to a known occurrence."""
    at = known.found.original
    if at is None:
        raise Unreadable(f"{PROVIDER} gave an event that belongs to no series")
    return _day(at, known.zone) if of_days else Moment(at)


def _day(at: int, zone: Clock) -> Day:
    return Day(naive(zone.wall(at)).date().isoformat())

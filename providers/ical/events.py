"""The events of a calendar in the neutral form; properties that only these need are parsed here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import tzinfo
from urllib.parse import unquote

from providers import markup
from providers.events import (
    Attendee,
    Event,
    EventStatus,
    Organizer,
    Reminders,
    ResponseStatus,
    ShowAs,
    Visibility,
    overlaps,
)
from providers.http.calls import Json
from providers.ical.alarms import minutes_before
from providers.ical.bounds import Budget
from providers.ical.calendar import CalendarText
from providers.ical.clocks import IN_UTC, Clock
from providers.ical.components import Component
from providers.ical.entries import Entry, address
from providers.ical.lines import UnreadableLine, divide, parameters, plain
from providers.ical.occurrences import Occurrence, occurrence_id, occurrences, period
from providers.ical.times import Edge, NoZones, moment
from providers.timestamps import DAY

# Properties of Almanac in the events that it writes. Stored events have them, so they must never change. The
# first links the copies of a unified event, and is percent-encoded: it may begin or end with a space. The
# others are the URL of a meeting elsewhere, as a text, and the create that made the event.
META_ID = "X-ALMANAC-META-ID"
MEETING_URL = "X-ALMANAC-MEETING-URL"
REQUEST = "X-ALMANAC-REQUEST"

# Outlook's property for how an event is shown, and its words.
BUSY_STATUS = "X-MICROSOFT-CDO-BUSYSTATUS"
SHOWN = {
    "FREE": ShowAs.FREE,
    "TENTATIVE": ShowAs.TENTATIVE,
    "BUSY": ShowAs.BUSY,
    "OOF": ShowAs.OUT_OF_OFFICE,
    "WORKINGELSEWHERE": ShowAs.WORKING_ELSEWHERE,
}

# Where others put the address of a meeting: RFC 7986, Google, Outlook.
_MEETING_URLS = (MEETING_URL, "CONFERENCE", "X-GOOGLE-CONFERENCE", "X-MICROSOFT-SKYPETEAMSMEETINGURL")

_NAME = re.compile(r"([A-Za-z0-9-]+)([;:].*)", re.DOTALL)
_RESPONSES = {each.value.upper(): each for each in ResponseStatus}
_STATUSES = frozenset(EventStatus)
# The end of the id of an occurrence.
_OCCURRENCE = re.compile(r"(.+)_(\d{8}(?:T\d{6}Z)?)", re.ASCII | re.DOTALL)

# Parameters and value of each line of a name.
Properties = dict[str, list[tuple[str, str]]]


def is_optional(stated: Mapping[str, object]) -> bool:
    """Whether an attendee with these parameters need not come."""
    return str(stated.get("ROLE")).upper() == "OPT-PARTICIPANT"


def is_resource(stated: Mapping[str, object]) -> bool:
    """Whether an attendee with these parameters is a room, or another resource."""
    return str(stated.get("CUTYPE")).upper() in ("RESOURCE", "ROOM")


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes events of one calendar; ``own`` are the person's addresses in lower case."""

    provider: str
    calendar_id: str
    own: Set[str] = frozenset()

    def event(self, calendar: CalendarText, found: Occurrence, zone: Clock, *, series: bool = False) -> Event:
        """One occurrence; ``series``: it stands for the whole series."""
        entry = found.entry
        given = properties(calendar.text, entry.component)
        shown = _shown_as(given, entry)
        edge = entry.span.start if entry.span else None
        status = _value(given, "STATUS").lower()
        contradicts = status == EventStatus.CANCELLED and not entry.cancelled
        in_series = found.original is not None and not series
        return Event(
            id=occurrence_id(found, zone) if in_series else entry.uid,
            calendar_id=self.calendar_id,
            provider=self.provider,
            meta_id=unquote(_value(given, META_ID)) or None,
            subject=plain(_value(given, "SUMMARY")),
            description=plain(_value(given, "DESCRIPTION")),
            location=plain(_value(given, "LOCATION")),
            start=found.start,
            end=found.end,
            all_day=edge is not None and edge.is_date,
            meeting_url=next((url for name in _MEETING_URLS if (url := _url(given, name))), None),
            mark=_value(given, REQUEST) or None,
            attendees=tuple(self._attendee(*each) for each in given.get("ATTENDEE", ())),
            original=original(calendar.text, entry),
            status=EventStatus(status) if status in _STATUSES and not contradicts else None,
            show_as=shown.as_before,
            shown_as=shown,
            visibility=_visibility(given),
            reminders=_reminders(calendar.text, entry),
            original_start=found.original if in_series else None,
            time_zone=None if edge is None else _zone_name(edge),
            organizer=self._organizer(given),
            web_link=_url(given, "URL"),
            recurring_event_id=entry.uid if in_series else None,
            updated_at=_updated_at(given),
            is_series=series,
            recurrence=_recurrence(given) if series else None,
            description_html=_html(given),
        )

    def _attendee(self, given: str, value: str) -> Attendee:
        stated = parameters(given)
        email = address(stated.get("EMAIL") or value)
        answer = _RESPONSES.get(stated.get("PARTSTAT", "").upper(), ResponseStatus.NEEDS_ACTION)
        return Attendee(
            email=email if "@" in email else "",
            is_self=email in self.own,
            response_status=answer,
            original={"value": value, "parameters": dict(stated)},
            name=stated.get("CN") or None,
            optional=is_optional(stated),
            resource=is_resource(stated),
        )

    def _organizer(self, given: Properties) -> Organizer | None:
        if not (found := given.get("ORGANIZER")):
            return None
        stated, value = parameters(found[0][0]), found[0][1]
        email = address(stated.get("EMAIL") or value)
        return Organizer(email if "@" in email else "", email in self.own, stated.get("CN") or None)


def events(
    calendar: CalendarText,
    reader: Reader,
    start: int,
    end: int,
    *,
    zone: tzinfo | None = None,
    deadline: float,
) -> list[Event]:
    """The events that overlap ``[start, end)``, by start; cancelled ones and ``VFREEBUSY`` are left out.

    Parameters and errors are those of :func:`providers.ical.busy.busy_periods`.
    """
    own = calendar.zone_or(zone)
    budget = Budget(calendar.limits, deadline)
    found = [
        reader.event(calendar, each, own)
        for each in occurrences(calendar, start, end, own, budget, _is_shown)
        if each.start < end and (each.end > start or each.start == each.end == start)
    ]
    return sorted((each for each in found if overlaps(each, start, end)), key=lambda each: each.start)


def event(
    calendar: CalendarText, reader: Reader, event_id: str, *, zone: tzinfo | None = None, deadline: float
) -> Event | None:
    """The event, the series or the occurrence with this id; None when the calendar has none.

    :raise InvalidCalendar, Unavailable: as there
    """
    own = calendar.zone_or(zone)
    budget = Budget(calendar.limits, deadline)
    if (entry := _entry(calendar, event_id)) is not None and entry.span is not None:
        series = entry.is_series
        found = Occurrence(entry, *period(entry.span, own))
        return reader.event(calendar, found, own, series=series)
    parts = _OCCURRENCE.fullmatch(event_id)
    if parts is None or not (series_of := calendar.only(parts[1])).series:
        return None
    try:
        at = moment("", parts[2].upper(), NoZones).instant(own)
    except UnreadableLine:
        return None
    for each in occurrences(series_of, at - DAY, at + DAY, own, budget, _is_shown):
        if each.original is not None and occurrence_id(each, own) == event_id:
            return reader.event(calendar, each, own)
    return None


def find(calendar: CalendarText, reader: Reader, meta_id: str, *, zone: tzinfo | None = None) -> Event | None:
    """The event or series with a metaId, compared case-sensitively; None when there is none."""
    if META_ID not in calendar.text.upper():
        return None
    own = calendar.zone_or(zone)
    masters = (each for series in calendar.series.values() for each in series.masters)
    for entry in filter(_is_shown, (*calendar.singles, *masters)):
        given = properties(calendar.text, entry.component)
        if entry.span is not None and unquote(_value(given, META_ID)) == meta_id:
            found = Occurrence(entry, *period(entry.span, own))
            return reader.event(calendar, found, own, series=entry.is_series)
    return None


def properties(text: str, component: Component) -> Properties:
    """The properties of a component, not of those inside; lines that are none are left out."""
    found: Properties = {}
    depth = 0
    for line in text[component.begin : component.end].split("\n"):
        parts = _NAME.fullmatch(line.rstrip("\r"))
        if parts is None:
            continue
        name = parts[1].upper()
        if name in ("BEGIN", "END"):
            depth += 1 if name == "BEGIN" else -1
        elif depth == 1:
            try:
                found.setdefault(name, []).append(divide(parts[2]))
            except UnreadableLine:
                continue
    return found


def original(text: str, entry: Entry) -> Json:
    """The record of an event: its text, unfolded."""
    return {"icalendar": text[entry.component.begin : entry.component.end]}


def _html(given: Properties) -> str | None:
    """The description as HTML, which Outlook and Exchange write beside the text.

    https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxcical (X-ALT-DESC)
    """
    for stated, value in given.get("X-ALT-DESC", ()):
        if parameters(stated).get("FMTTYPE", "").lower() == "text/html":
            return markup.sanitized(plain(value)) or None
    return None


def _recurrence(given: Properties) -> tuple[str, ...] | None:
    names = ("RRULE", "RDATE", "EXDATE", "EXRULE")
    found = (f"{name}{stated}:{value}" for name in names for stated, value in given.get(name, ()))
    return tuple(found) or None


def _zone_name(edge: Edge) -> str | None:
    """The IANA name of the zone of a time; None for a day, and where the zone is not stated or not known."""
    if edge.zone is None or edge.is_date or edge.vague:
        return None
    return "UTC" if edge.zone is IN_UTC else edge.zone.name or None


def _shown_as(given: Properties, entry: Entry) -> ShowAs:
    """The word of Outlook, unless ``TRANSP`` contradicts it.

    https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxcical
    """
    word = SHOWN.get(_value(given, BUSY_STATUS).upper())
    if word is not None and word.blocks != entry.transparent:
        return word
    return ShowAs.FREE if entry.transparent else ShowAs.BUSY


def _visibility(given: Properties) -> Visibility:
    """RFC 5545, 3.8.1.3: a class that is not known is private."""
    word = _value(given, "CLASS").upper()
    if not word:
        return Visibility.DEFAULT
    return Visibility.PUBLIC if word == "PUBLIC" else Visibility.PRIVATE


def _reminders(text: str, entry: Entry) -> Reminders:
    alarms = (properties(text, each) for each in entry.component.parts if each.name == "VALARM")
    minutes = (minutes_before(*each["TRIGGER"][0]) for each in alarms if "TRIGGER" in each)
    return Reminders(tuple(sorted({each for each in minutes if each is not None})))


def _is_shown(entry: Entry) -> bool:
    return not entry.cancelled and entry.component.name == "VEVENT"


def _entry(calendar: CalendarText, uid: str) -> Entry | None:
    singles = (each for each in calendar.singles if each.uid == uid)
    return next(filter(_is_shown, (*calendar.masters(uid), *singles)), None)


def _value(given: Properties, name: str) -> str:
    found = given.get(name)
    return found[0][1] if found else ""


def _url(given: Properties, name: str) -> str | None:
    value = _value(given, name)
    if name == MEETING_URL:
        # Radicale cuts the value of a property that it does not know at a comma that is not escaped.
        value = plain(value)
    return value if value.lower().startswith(("https://", "http://")) else None


def _updated_at(given: Properties) -> int | None:
    found = given.get("LAST-MODIFIED")
    if not found:
        return None
    try:
        edge = moment("", found[0][1], NoZones)
    except UnreadableLine:
        return None
    return edge.wall if edge.zone is not None else None

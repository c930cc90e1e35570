"""Parses Google Calendar's events; pure functions.

https://developers.google.com/workspace/calendar/api/v3/reference/events#resource
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta, tzinfo
from typing import cast
from zoneinfo import ZoneInfo

from providers import etags, markup
from providers.base import Period
from providers.events import (
    Attendee,
    Event,
    EventStatus,
    Organizer,
    Reminders,
    ResponseStatus,
    ShowAs,
    Visibility,
)
from providers.google.errors import PROVIDER
from providers.google.parse import canonical
from providers.google.payloads import EventAttendee, EventEdge, EventOrganizer, EventRecord
from providers.http.calls import Json, unreadable
from providers.http.json_validation import (
    SHAPE_ERRORS,
    identifier,
    object_or_empty,
    objects,
    optional_text,
    original,
    shown,
    shown_or_none,
    text,
)
from providers.timestamps import (
    FIRST_MIDNIGHT,
    LAST_MIDNIGHT,
    instant,
    ordered,
    shown_instant,
    wall_instant,
)
from scheduling.zones import iana_zone

# Names of our private extended properties. Stored events have them, so they must never change. metaId
# links the copies of a unified event; the others are the URL of a meeting elsewhere, and the create that
# made the event (see events.py).
META_ID = "metaId"
MEETING_URL = "meetingUrl"
REQUEST = "almanacRequest"

_ANSWERS = frozenset(ResponseStatus)
_STATUSES = frozenset(EventStatus)
_VISIBILITIES = frozenset(Visibility)


@dataclass(frozen=True, slots=True)
class Reader:
    """Parses the events of one calendar; ``own`` are the account's addresses, as of :func:`canonical`."""

    calendar_id: str
    own: frozenset[str]
    operation: str

    def event(self, record: Json, zone: str) -> Event:
        """One event; ``zone`` is the calendar's, in which all-day events begin.

        Its id, its time, and what decides about a write must be readable: the etag, the id of its series, and
        our own properties. Any other field of another type counts as missing.

        :raise Unavailable: when the record is not an event
        """
        try:
            return self._event(cast("EventRecord", record), zone)
        except SHAPE_ERRORS:
            raise unreadable(PROVIDER, self.operation) from None

    def _event(self, record: EventRecord, zone: str) -> Event:
        edges = record["start"], _after_its_day(record["start"], _end(record))
        start, end = ordered(_instant(edges[0], zone), _instant(edges[1], zone, up=True))
        return Event(
            id=identifier(record["id"]),
            calendar_id=self.calendar_id,
            provider="google",
            meta_id=private(record, META_ID),
            subject=shown(record.get("summary")),
            description=shown(record.get("description")),
            location=shown(record.get("location")),
            start=start,
            end=end,
            all_day=is_all_day(record),
            meeting_url=meeting_url(record),
            mark=private(record, REQUEST),
            attendees=tuple(self._attendee(each) for each in objects(record.get("attendees"))),
            original=original(record),
            status=_status(record),
            show_as=_show_as(record),
            shown_as=_show_as(record),
            visibility=_visibility(record),
            reminders=_reminders(record),
            original_start=_original_start(record, zone),
            time_zone=iana_zone(shown(edges[0].get("timeZone"))),
            organizer=self._organizer(record.get("organizer")),
            web_link=shown_or_none(record.get("htmlLink")),
            recurring_event_id=optional_text(record.get("recurringEventId")),
            updated_at=shown_instant(record.get("updated")),
            etag=etags.weak(optional_text(record.get("etag"))),
            is_series=bool(record.get("recurrence")),
            recurrence=_recurrence(record),
            # "Can contain HTML": https://developers.google.com/workspace/calendar/api/v3/reference/events
            description_html=markup.if_any(shown(record.get("description"))),
        )

    def _organizer(self, given: object) -> Organizer | None:
        # "organizer": {"email": "c_1a2b@group.calendar.google.com", "displayName": "Team", "self": true}
        # One that is no object is another, unknown organizer: only the organizer may split a series.
        if not given:
            return None
        entry = cast("EventOrganizer", object_or_empty(given))
        email = shown(entry.get("email"))
        return Organizer(email, self._is_self(entry, email), shown_or_none(entry.get("displayName")))

    def _is_self(self, entry: EventAttendee | EventOrganizer, email: str) -> bool:
        return entry.get("self") is True or canonical(email) in self.own

    def _attendee(self, entry: EventAttendee) -> Attendee:
        # A guest known only by a profile has no address.
        email = shown(entry.get("email"))
        answer = shown(entry.get("responseStatus"))
        return Attendee(
            email=email,
            is_self=self._is_self(entry, email),
            response_status=ResponseStatus(answer) if answer in _ANSWERS else ResponseStatus.NEEDS_ACTION,
            original=cast("Json", entry),
            name=shown_or_none(entry.get("displayName")),
            optional=entry.get("optional") is True,
            resource=entry.get("resource") is True,
        )


def busy(records: Sequence[Json], zone: str | None, operation: str, *, without: str) -> list[Period]:
    """The times of the events that make the calendar's owner busy, but for the event with the id ``without``.

    The rules are those of Google's freeBusy: an event does not count if it is shown as free, or if its
    calendar, as a guest, has declined it. Without ``zone``, the calendar's, an all-day event covers its days
    in every zone.

    :raise Unavailable: when an event that counts has no readable time
    """
    first, last = (FIRST_MIDNIGHT, LAST_MIDNIGHT) if zone is None else (zone, zone)
    try:
        blocking = [
            each
            for each in cast("Sequence[EventRecord]", records)
            if each.get("id") != without and _blocks(each)
        ]
        return [
            ordered(
                _instant(each["start"], first),
                _instant(_after_its_day(each["start"], each["end"]), last, up=True),
            )
            for each in blocking
        ]
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, operation) from None


def _blocks(record: EventRecord) -> bool:
    # Only the guest that Google itself marks is the calendar's owner. The account's own address is not: in a
    # shared calendar it is a guest like any other.
    declined = any(
        each.get("self") is True and each.get("responseStatus") == ResponseStatus.DECLINED
        for each in record.get("attendees") or ()
    )
    return not (is_cancelled(record) or _show_as(record) is ShowAs.FREE or declined)


def is_cancelled(record: EventRecord) -> bool:
    """Whether the event was deleted, or is an occurrence removed from its series."""
    return record.get("status") == "cancelled"


def _recurrence(record: EventRecord) -> tuple[str, ...] | None:
    # "recurrence": ["EXDATE;TZID=Europe/Berlin:20261105T090000", "RRULE:FREQ=WEEKLY;COUNT=4"]
    found = record.get("recurrence")
    return tuple(map(shown, found)) or None if isinstance(found, list) else None


def _status(record: EventRecord) -> EventStatus | None:
    word = shown(record.get("status"))
    return EventStatus(word) if word in _STATUSES else None


def _show_as(record: EventRecord) -> ShowAs:
    """Google leaves "opaque" out, which is the default.

    https://developers.google.com/workspace/calendar/api/v3/reference/events#transparency
    """
    return ShowAs.FREE if record.get("transparency") == "transparent" else ShowAs.BUSY


def _visibility(record: EventRecord) -> Visibility:
    """Google leaves "default" out; "confidential" and future words are private.

    https://developers.google.com/workspace/calendar/api/v3/reference/events#visibility
    """
    word = shown(record.get("visibility", "default"))
    return Visibility(word) if word in _VISIBILITIES else Visibility.PRIVATE


def _reminders(record: EventRecord) -> Reminders | None:
    # "reminders": {"useDefault": false, "overrides": [{"method": "popup", "minutes": 10}]}
    found = record.get("reminders")
    if not isinstance(found, dict):
        return None
    if found.get("useDefault"):
        return Reminders()
    minutes = (each.get("minutes") for each in objects(found.get("overrides")))
    return Reminders(tuple(sorted({each for each in minutes if type(each) is int})))


def _original_start(record: EventRecord, zone: str) -> int | None:
    begun = record.get("originalStartTime")
    try:
        return _instant(begun, zone) if begun else None
    except SHAPE_ERRORS:
        # It is only shown. A write that needs it reads it again.
        return None


def is_all_day(record: EventRecord) -> bool:
    """Whether the calendar's zone is needed to parse the event."""
    return object_or_empty(record.get("start")).get("date") is not None


def private(record: EventRecord, name: str) -> str | None:
    """The value of one of our properties; None when missing or emptied."""
    found = ((record.get("extendedProperties") or {}).get("private") or {}).get(name)
    return text(found) or None if found is not None else None


def kept_url(record: EventRecord) -> str | None:
    """The address of an external meeting."""
    return private(record, MEETING_URL)


def has_meeting(record: EventRecord) -> bool:
    """Whether the event has a Google meeting, or will have one; not when its creation failed."""
    entries = (record.get("conferenceData") or {}).get("entryPoints")
    return bool(record.get("hangoutLink") or entries) or is_pending(record)


def is_pending(record: EventRecord) -> bool:
    """Whether Google has yet to create the requested meeting.

    https://developers.google.com/workspace/calendar/api/guides/create-events#conferencing
    """
    request = object_or_empty(object_or_empty(record.get("conferenceData")).get("createRequest"))
    return object_or_empty(request.get("status")).get("statusCode") == "pending"


def meeting_url(record: EventRecord) -> str | None:
    """The address of the online meeting; an external one takes precedence, because it was written last."""
    entries = objects(object_or_empty(record.get("conferenceData")).get("entryPoints"))
    video = (shown_or_none(each.get("uri")) for each in entries if each.get("entryPointType") == "video")
    return kept_url(record) or shown_or_none(record.get("hangoutLink")) or next(filter(None, video), None)


def _end(record: EventRecord) -> EventEdge:
    """The end; that of an event whose end is unspecified, and left out, is its start.

    Google says that it gives an end all the same (``endTimeUnspecified``):
    https://developers.google.com/workspace/calendar/api/v3/reference/events#endTimeUnspecified
    """
    if record.get("endTimeUnspecified") is True and record.get("end") is None:
        return record["start"]
    return record["end"]


def _after_its_day(start: EventEdge, end: EventEdge) -> EventEdge:
    """The end of an event; that of an all-day event that ends on its first day is the day after it."""
    day = end.get("date")
    if day is None or day != start.get("date"):
        return end
    return {"date": str(date.fromisoformat(day) + timedelta(days=1))}


def _instant(edge: EventEdge, zone: str | tzinfo, *, up: bool = False) -> int:
    """A date begins in ``zone``. The offset of a ``dateTime`` counts; without one its ``timeZone`` does.

    "A time zone offset is required unless a time zone is explicitly specified in timeZone":
    https://developers.google.com/workspace/calendar/api/v3/reference/events#start.dateTime
    """
    if (day := edge.get("date")) is not None:
        return wall_instant(day, ZoneInfo(zone) if isinstance(zone, str) else zone, up=up)
    stated = iana_zone(shown(edge.get("timeZone")))
    if stated is None:
        return instant(edge["dateTime"], up=up)
    return wall_instant(edge["dateTime"], ZoneInfo(stated), up=up)

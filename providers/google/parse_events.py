"""Google Calendar's events read into our own words; pure functions.

https://developers.google.com/workspace/calendar/api/v3/reference/events#resource
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from zoneinfo import ZoneInfo

from providers import busy_periods
from providers.events import Attendee, Event, ResponseStatus
from providers.google.errors import PROVIDER
from providers.google.payloads import EventAttendee, EventEdge, EventRecord
from providers.http.json_validation import SHAPE_ERRORS, flag, identifier, original, text
from providers.http.send import Json, unreadable
from providers.names import ProviderName
from providers.timestamps import instant, wall_instant

# Our own properties, private to the copy in one calendar. Events in people's calendars carry these names:
# they must never change. What ties the copies of a unified event together; where it is held online, when not
# by Google; which create has made it (see events.py).
META_ID = "metaId"
MEETING_URL = "meetingUrl"
REQUEST = "almanacRequest"

_ANSWERS = frozenset(ResponseStatus)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the events of one calendar; ``email`` is the account's address, when it is known."""

    calendar_id: str
    email: str | None
    operation: str

    def event(self, record: Json, zone: str) -> Event:
        """One event; ``zone`` is the calendar's, in which its days begin.

        :raise Unavailable: for what is no event
        """
        try:
            return self._event(cast("EventRecord", record), zone)
        except SHAPE_ERRORS:
            raise unreadable(PROVIDER, self.operation) from None

    def _event(self, record: EventRecord, zone: str) -> Event:
        edges = record["start"], record["end"]
        start, end = busy_periods.ordered(_instant(edges[0], zone), _instant(edges[1], zone, up=True))
        return Event(
            id=identifier(record["id"]),
            calendar_id=self.calendar_id,
            provider=ProviderName.GOOGLE,
            meta_id=private(record, META_ID),
            subject=text(record.get("summary", "")),
            description=text(record.get("description", "")),
            location=text(record.get("location", "")),
            start=start,
            end=end,
            all_day="date" in edges[0],
            meeting_url=meeting_url(record),
            mark=private(record, REQUEST),
            attendees=tuple(self._attendee(each) for each in record.get("attendees") or ()),
            original=original(record),
        )

    def _attendee(self, entry: EventAttendee) -> Attendee:
        # A guest who is known by a profile alone has no address.
        email = text(entry.get("email", ""))
        answer = entry.get("responseStatus")
        own = bool(email) and email.lower() == (self.email or "").lower()
        return Attendee(
            email=email,
            is_self=flag(entry.get("self")) or own,
            response_status=ResponseStatus(answer) if answer in _ANSWERS else ResponseStatus.NEEDS_ACTION,
            original=cast("Json", entry),
        )


def is_cancelled(record: EventRecord) -> bool:
    """Whether it is what deleting has left, or an occurrence that was taken out of its series."""
    return record.get("status") == "cancelled"


def is_all_day(record: EventRecord) -> bool:
    """Whether the zone of its calendar is needed to read it."""
    return "date" in _object(record.get("start"))


def private(record: EventRecord, name: str) -> str | None:
    """What an event has for a property of ours; nothing is also what it was emptied to."""
    found = ((record.get("extendedProperties") or {}).get("private") or {}).get(name)
    return text(found) or None if found is not None else None


def kept_url(record: EventRecord) -> str | None:
    """The address of a meeting elsewhere."""
    return private(record, MEETING_URL)


def has_meeting(record: EventRecord) -> bool:
    """Whether Google holds it online, or is about to; not when it has failed to make the meeting."""
    entries = (record.get("conferenceData") or {}).get("entryPoints")
    return bool(record.get("hangoutLink") or entries) or is_pending(record)


def is_pending(record: EventRecord) -> bool:
    """Whether Google has yet to make the meeting that was asked for.

    https://developers.google.com/workspace/calendar/api/guides/create-events#conferencing
    """
    request = _object(_object(record.get("conferenceData")).get("createRequest"))
    return _object(request.get("status")).get("statusCode") == "pending"


def meeting_url(record: EventRecord) -> str | None:
    """Where the event is held online: what was written last, so the address of another's meeting first."""
    entries = (record.get("conferenceData") or {}).get("entryPoints") or ()
    video = (each.get("uri") for each in entries if each.get("entryPointType") == "video")
    found = kept_url(record) or record.get("hangoutLink") or next(video, None)
    return None if found is None else text(found)


def _instant(edge: EventEdge, zone: str, *, up: bool = False) -> int:
    """A day begins in ``zone``; a moment has its offset, and the zone it was written in does not matter."""
    if "date" in edge:
        return wall_instant(edge["date"], ZoneInfo(zone), up=up)
    return instant(edge["dateTime"], up=up)


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}

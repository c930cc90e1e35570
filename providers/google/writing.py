"""Builds Google Calendar's JSON for events; pure functions.

https://developers.google.com/workspace/calendar/api/v3/reference/events#resource
"""

from __future__ import annotations

from collections.abc import Sequence

from providers.events import Changes, Day, Draft, Moment, When
from providers.google import parse_events
from providers.google.payloads import EventAttendee, EventRecord
from providers.http.send import Json
from providers.timestamps import utc_text


def create_payload(draft: Draft, request_id: str) -> Json:
    """A new event; ``request_id`` is that of its meeting.

    Google ignores a request for a meeting whose id was used before. So it is never derived from the draft:
    the event may have existed with another meeting, and been deleted.
    """
    content = draft.content
    private = {parse_events.META_ID: content.meta_id, parse_events.MEETING_URL: content.meeting_url}
    return _given(
        {
            "id": draft.id or draft.key,
            # This also restores a deleted event with the same id.
            "status": "confirmed",
            "summary": content.subject,
            "description": content.description,
            "location": content.meeting_url if content.location is None else content.location,
            "start": _new_edge(content.start),
            "end": _new_edge(content.end),
            "attendees": _attendees(content.attendees, ()),
            "conferenceData": _meet(request_id) if content.meeting else None,
            "extendedProperties": {"private": _given({**private, parse_events.REQUEST: draft.mark})},
        }
    )


def restore_payload(body: Json, tombstone: EventRecord) -> Json:
    """A new event that replaces a deleted one.

    The sequence grows with every move and may not decrease; a missing one counts as 0:
    https://developers.google.com/workspace/calendar/api/v3/reference/events#sequence
    """
    return body | {"sequence": tombstone.get("sequence", 0)}


def needs_the_event(changes: Changes) -> bool:
    """Whether the JSON to write depends on the existing event."""
    return changes.attendees is not None or changes.meeting or changes.meeting_url is not None


def update_payload(changes: Changes, known: EventRecord, request_id: str) -> Json:
    """The JSON that writes ``changes`` to ``known``, which may be empty unless :func:`needs_the_event`.

    Objects merge and arrays replace, so every field that is left out stays unchanged:
    https://developers.google.com/workspace/calendar/api/guides/performance#patch
    """
    private = _private(changes, known)
    meets = changes.meeting and not parse_events.has_meeting(known)
    return _given(
        {
            "summary": changes.subject,
            "description": changes.description,
            "location": _moved(changes, known),
            "start": _changed_edge(changes.start),
            "end": _changed_edge(changes.end),
            "attendees": _attendees(changes.attendees, known.get("attendees") or ()),
            "conferenceData": _meet(request_id) if meets else None,
            "extendedProperties": {"private": private} if private else None,
        }
    )


def send_updates(notify: bool | None) -> dict[str, str]:
    """The query parameter that decides whether Google notifies guests."""
    return {} if notify is None else {"sendUpdates": "all" if notify else "none"}


def _given(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _meet(request_id: str) -> Json:
    """https://developers.google.com/workspace/calendar/api/guides/create-events#conferencing"""
    return {
        "createRequest": {
            "requestId": request_id,
            "conferenceSolutionKey": {"type": "hangoutsMeet"},
        }
    }


def _moved(changes: Changes, known: EventRecord) -> str | None:
    """The location. Without one, it follows the meeting URL: guests have no other way to see that."""
    if changes.location is not None:
        return changes.location
    kept = parse_events.kept_url(known)
    present = known.get("location") or ""
    if changes.meeting_url is not None and present in ("", kept):
        return changes.meeting_url
    return "" if changes.meeting and present and present == kept else None


def _private(changes: Changes, known: EventRecord) -> Json:
    """Our own properties. A Google meeting replaces an external one: the last one written counts."""
    private = _given({parse_events.META_ID: changes.meta_id, parse_events.MEETING_URL: changes.meeting_url})
    if changes.meeting and changes.meeting_url is None and parse_events.kept_url(known):
        private[parse_events.MEETING_URL] = None
    return private


def _attendees(emails: Sequence[str] | None, known: Sequence[EventAttendee]) -> list[Json] | None:
    """The new list in its order; attendees on both lists keep their entry, and with it their response."""
    if emails is None:
        return None
    entries = {(entry.get("email") or "").lower(): dict(entry) for entry in known}
    spelt = {email.lower(): email for email in reversed(emails)}
    return [
        entries.get(folded) or {"email": spelt[folded]}
        for folded in dict.fromkeys(email.lower() for email in emails)
    ]


def _new_edge(when: When | None) -> Json | None:
    match when:
        case None:
            return None
        case Day(date):
            return {"date": date}
        case Moment(at, zone):
            return {"dateTime": utc_text(at), "timeZone": zone or "UTC"}


def _changed_edge(when: When | None) -> Json | None:
    """``date`` and ``dateTime`` exclude each other; the zone stays unchanged when none is given."""
    match when:
        case None:
            return None
        case Day(date):
            return {"date": date, "dateTime": None, "timeZone": None}
        case Moment(at, None):
            return {"date": None, "dateTime": utc_text(at)}
        case Moment(at, zone):
            return {"date": None, "dateTime": utc_text(at), "timeZone": zone}

"""Events in our own words written as Google Calendar's JSON; pure functions.

https://developers.google.com/workspace/calendar/api/v3/reference/events#resource
"""

from __future__ import annotations

from collections.abc import Sequence

from providers.events import Changes, Day, Draft, Moment, When
from providers.google import parse_events
from providers.google.payloads import EventAttendee, EventRecord
from providers.http.send import Json
from providers.timestamps import utc_text


def new(draft: Draft, request_id: str) -> Json:
    """A new event; ``request_id`` is that of its meeting.

    A request for a meeting is passed over when its id was used before, so it is never that of the draft:
    the event may have been there, with another meeting, and been deleted.
    """
    content = draft.content
    private = {parse_events.META_ID: content.meta_id, parse_events.MEETING_URL: content.meeting_url}
    return _given(
        {
            "id": draft.id or draft.key,
            # Also what brings a deleted event of the same id back to life.
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


def revived(body: Json, tombstone: EventRecord) -> Json:
    """A new event in the place of what deleting has left of one.

    The sequence grows with every move and may not fall; one that is not sent counts as 0:
    https://developers.google.com/workspace/calendar/api/v3/reference/events#sequence
    """
    return body | {"sequence": tombstone.get("sequence", 0)}


def needs_the_event(changes: Changes) -> bool:
    """Whether what is to be written depends on what is there."""
    return changes.attendees is not None or changes.meeting or changes.meeting_url is not None


def changed(changes: Changes, known: EventRecord, request_id: str) -> Json:
    """What is sent to write ``changes`` to ``known``, which may be empty unless :func:`needs_the_event`.

    Objects merge and arrays replace, so that everything that is not named stays as it is:
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
    """The part of a query that says whether guests are told."""
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
    """The location. It follows the meeting URL when none is sent: guests see no other trace of that."""
    if changes.location is not None:
        return changes.location
    kept = parse_events.kept_url(known)
    present = known.get("location") or ""
    if changes.meeting_url is not None and present in ("", kept):
        return changes.meeting_url
    return "" if changes.meeting and present and present == kept else None


def _private(changes: Changes, known: EventRecord) -> Json:
    """Our own properties. Google's meeting takes the place of another's: what was written last is read."""
    private = _given({parse_events.META_ID: changes.meta_id, parse_events.MEETING_URL: changes.meeting_url})
    if changes.meeting and changes.meeting_url is None and parse_events.kept_url(known):
        private[parse_events.MEETING_URL] = None
    return private


def _attendees(emails: Sequence[str] | None, known: Sequence[EventAttendee]) -> list[Json] | None:
    """The new list in its order; who was on the old one keeps their entry, and with it their answer."""
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
    """A date and a time shut each other out; the zone stays as it is when none is given."""
    match when:
        case None:
            return None
        case Day(date):
            return {"date": date, "dateTime": None, "timeZone": None}
        case Moment(at, None):
            return {"date": None, "dateTime": utc_text(at)}
        case Moment(at, zone):
            return {"date": None, "dateTime": utc_text(at), "timeZone": zone}

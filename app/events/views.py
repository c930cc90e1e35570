"""Events as they are answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.accounts.calendar_names import calendar_name
from providers.events import Attendee, Event, Organizer
from scheduling.json_render import timestamp
from store.sql.queries.connection_rows import ConnectionRef


def event_view(event: Event, calendar_id: str) -> dict[str, Any]:
    """An event for ``EventSchema``; ``calendar_id`` is what the answer calls its calendar."""
    meta_id = {} if event.meta_id is None else {"metaId": event.meta_id}
    return {
        **_copy(event, calendar_id),
        **meta_id,
        **_fields(event),
        "attendees": [_attendee(each) for each in event.attendees],
        "original": event.original,
    }


def unified_view(meta_id: str, copies: Sequence[tuple[ConnectionRef, Event]]) -> dict[str, Any]:
    """A unified event for ``UnifiedEventSchema``, out of at least one copy."""
    events = [event for _, event in copies]
    return {
        "metaId": meta_id,
        **_fields(events[0]),
        "attendees": _together(events),
        "originals": [event.original for event in events],
        "events": [_copy(event, calendar_name(ref, event.calendar_id)) for ref, event in copies],
    }


def _copy(event: Event, calendar_id: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": event.id,
        "calendarId": calendar_id,
        "provider": event.provider,
        "organizer": None if event.organizer is None else _organizer(event.organizer),
        "webLink": event.web_link,
        "recurringEventId": event.recurring_event_id,
        "updatedAt": None if event.updated_at is None else timestamp(event.updated_at),
        "etag": event.etag,
    }
    return _known(fields)


def _organizer(organizer: Organizer) -> dict[str, Any]:
    return _known({"email": organizer.email, "self": organizer.is_self, "name": organizer.name})


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that the provider has given."""
    return {name: value for name, value in fields.items() if value is not None}


def _fields(event: Event) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "subject": event.subject,
        "description": event.description,
        "location": event.location,
        "start": timestamp(event.start),
        "end": timestamp(event.end),
        "allDay": event.all_day or None,
        "meetingUrl": event.meeting_url,
        "status": event.status,
        "showAs": event.show_as,
    }
    return _known(fields)


def _attendee(attendee: Attendee) -> dict[str, Any]:
    return {
        "email": attendee.email,
        "self": attendee.is_self,
        "responseStatus": attendee.response_status,
        "original": attendee.original,
    }


def _together(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The attendees of all copies, each address once."""
    by_address: dict[str, dict[str, Any]] = {}
    for attendee in (each for event in events for each in event.attendees):
        view = {"email": attendee.email, "self": False, "originals": []}
        merged = by_address.setdefault(attendee.email.lower(), view)
        merged["self"] = merged["self"] or attendee.is_self
        merged["originals"].append(attendee.original)
    return list(by_address.values())

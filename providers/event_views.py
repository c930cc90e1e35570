"""Events as they are answered, and as webhooks carry them."""

from __future__ import annotations

from typing import Any

from providers.events import Attendee, Event, Organizer
from scheduling.json_render import timestamp


def event_view(event: Event, calendar_id: str) -> dict[str, Any]:
    """An event for ``EventSchema``; ``calendar_id`` is what the answer calls its calendar."""
    meta_id = {} if event.meta_id is None else {"metaId": event.meta_id}
    return {
        **copy_fields(event, calendar_id),
        **meta_id,
        **fields(event),
        "attendees": [_attendee(each) for each in event.attendees],
        "original": event.original,
    }


def copy_fields(event: Event, calendar_id: str) -> dict[str, Any]:
    """The fields in which the copies of a unified event differ."""
    found: dict[str, Any] = {
        "id": event.id,
        "calendarId": calendar_id,
        "provider": event.provider,
        "organizer": None if event.organizer is None else _organizer(event.organizer),
        "webLink": event.web_link,
        "recurringEventId": event.recurring_event_id,
        "seriesId": event.recurring_event_id,
        "originalStart": None if event.original_start is None else timestamp(event.original_start),
        "updatedAt": None if event.updated_at is None else timestamp(event.updated_at),
        "etag": event.etag,
    }
    return _known(found)


def _organizer(organizer: Organizer) -> dict[str, Any]:
    return _known({"email": organizer.email, "self": organizer.is_self, "name": organizer.name})


def _known(found: dict[str, Any]) -> dict[str, Any]:
    """The fields that the provider has given."""
    return {name: value for name, value in found.items() if value is not None}


def fields(event: Event) -> dict[str, Any]:
    """The fields that the copies of a unified event have in common."""
    found: dict[str, Any] = {
        "subject": event.subject,
        "description": event.description,
        "descriptionHtml": event.description_html,
        "location": event.location,
        "start": timestamp(event.start),
        "end": timestamp(event.end),
        "allDay": event.all_day or None,
        "meetingUrl": event.meeting_url,
        "status": event.status,
        # A worker of release 0.1 gives only the second.
        "showAs": event.shown_as or event.show_as,
        "visibility": event.visibility,
        "timeZone": event.time_zone,
        "recurrence": event.recurrence,
    }
    reminders = {} if event.reminders is None else {"reminders": event.reminders.minutes}
    return _known(found) | reminders


def _attendee(attendee: Attendee) -> dict[str, Any]:
    return {
        "email": attendee.email,
        "self": attendee.is_self,
        "responseStatus": attendee.response_status,
        **_known({"name": attendee.name, "optional": attendee.optional or None}),
        **_known({"resource": attendee.resource or None}),
        "original": attendee.original,
    }

"""Request bodies as the changes and drafts that are written to providers, and events as they are answered."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from app.availability.connections import calendar_name
from app.availability.selection import is_account_address
from app.http.errors import Invalid
from app.schemas.timestamps import Moment as Written
from providers.base import PRIMARY
from providers.events import Attendee, Changes, Day, Draft, Event, Moment, Organizer, When, edge_error
from scheduling.json_render import timestamp
from store.sql.queries.connection_rows import ConnectionRef

UTC = ZoneInfo("UTC")


def changes(body: Mapping[str, Any], zone: ZoneInfo | None) -> Changes:
    """The changes in a request body; absent fields stay None.

    :raise Invalid: if only one of start and end is a whole day, or the end is before the start
    """
    start, end = _edge(body.get("start"), zone), _edge(body.get("end"), zone)
    if (fault := edge_error(start, end)) is not None:
        # Its sentence begins with the name of one of the two.
        raise Invalid(fault, param=fault.partition(" ")[0])
    attendees = body.get("attendees")
    meeting = body.get("meeting")
    return Changes(
        subject=body.get("subject"),
        description=body.get("description"),
        location=body.get("location"),
        start=start,
        end=end,
        attendees=None if attendees is None else _addresses(attendees),
        meeting=meeting is True,
        meeting_url=meeting if isinstance(meeting, str) else None,
        meta_id=body.get("metaId"),
        notify=body.get("sendNotifications"),
    )


def notified(content: Changes, ref: ConnectionRef, providers: Collection[str] | None) -> Changes:
    """The changes for one account of a unified event; only ``providers`` notify the guests."""
    if providers is None:
        return content
    return dataclasses.replace(content, notify=ref.provider in providers)


def draft(
    content: Changes,
    ref: ConnectionRef,
    calendar: str,
    own_id: str | None = None,
    *,
    idempotency_key: str | None = None,
    meta_id_is_new: bool = False,
) -> Draft:
    """A new event, with a key that makes a repeated write find the first event.

    The key is derived from the metaId, else from the request's ``idempotency_key``; otherwise it is random.
    """
    if content.meta_id is not None:
        source = f"metaId {content.meta_id}"
    elif idempotency_key is not None:
        source = f"idempotency {idempotency_key}"
    else:
        source = f"once {secrets.token_hex(32)}"
    calendar_name = f"{ref.provider} {(ref.email or ref.user).lower()} {_calendar(ref, calendar)}"
    key = _digest(calendar_name, source)
    body = msgspec.json.encode([content, own_id]).decode()
    return Draft(content, key, _digest(key, body), id=own_id, meta_id_is_new=meta_id_is_new)


def new_meta_id(idempotency_key: str | None) -> str:
    """A metaId for a unified event without one in the request; a repeated request gets the same metaId."""
    return secrets.token_hex(16) if idempotency_key is None else _digest("metaId", idempotency_key)[:32]


def _edge(written: Written | None, zone: ZoneInfo | None) -> When | None:
    if written is None:
        return None
    if written.whole_day:
        return Day(written.written.date().isoformat())
    return Moment(written.milliseconds(zone or UTC), None if zone is None else str(zone))


def _addresses(attendees: list[dict[str, str]]) -> tuple[str, ...]:
    """Each address once, in its first spelling."""
    by_lower_case: dict[str, str] = {}
    for attendee in attendees:
        by_lower_case.setdefault(attendee["email"].lower(), attendee["email"])
    return tuple(by_lower_case.values())


def _calendar(ref: ConnectionRef, calendar: str) -> str:
    """The calendar's id; for the main calendar always the alias, also if Google's id was used."""
    return PRIMARY if is_account_address(ref, calendar) else calendar


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


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

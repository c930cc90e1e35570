"""Calendars and events."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import field

from almanac_client.records.base import Record

if TYPE_CHECKING:
    from almanac_client.words import AccessRole, EventStatus, Provider, ResponseStatus, ShowAs
else:
    # A newer server may use further words, so any text is decoded.
    AccessRole = EventStatus = Provider = ResponseStatus = ShowAs = str


class Calendar(Record):
    """A calendar of one of the user's accounts."""

    id: str
    provider: Provider
    subject: str
    access_role: AccessRole
    primary: bool
    selected: bool
    background_color: str
    foreground_color: str
    time_zone: str
    original: dict[str, Any] | None


class Attendee(Record):
    """An attendee of an event. ``is_self`` marks the account that owns the calendar."""

    email: str
    is_self: bool = field(name="self")
    response_status: ResponseStatus
    original: dict[str, Any] | None


class Organizer(Record, kw_only=True):
    """The person or calendar that an event belongs to."""

    email: str
    is_self: bool = field(name="self")
    name: str | None = None


class EventCopy(Record, kw_only=True):
    """An event as one calendar has it."""

    id: str
    calendar_id: str
    provider: Provider
    organizer: Organizer | None = None
    web_link: str | None = None
    recurring_event_id: str | None = None
    updated_at: datetime | None = None
    etag: str | None = None


class Event(EventCopy, kw_only=True):
    """An event of one calendar."""

    subject: str
    description: str
    location: str
    start: datetime
    end: datetime
    all_day: bool = False
    meeting_url: str | None = None
    status: EventStatus | None = None
    show_as: ShowAs | None = None
    meta_id: str | None = None
    attendees: list[Attendee]
    original: dict[str, Any] | None


class UnifiedAttendee(Record):
    """An attendee of a unified event."""

    email: str
    is_self: bool = field(name="self")
    originals: list[dict[str, Any] | None]


class UnifiedEvent(Record, kw_only=True):
    """One event in several accounts, with the fields of its first copy."""

    subject: str
    description: str
    location: str
    start: datetime
    end: datetime
    all_day: bool = False
    meeting_url: str | None = None
    status: EventStatus | None = None
    show_as: ShowAs | None = None
    meta_id: str
    attendees: list[UnifiedAttendee]
    originals: list[dict[str, Any] | None]
    events: list[EventCopy]

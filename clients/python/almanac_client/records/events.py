"""Calendars and events."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import field

from almanac_client.records.availability import FailedCalendar
from almanac_client.records.base import Record

if TYPE_CHECKING:
    from almanac_client.words import (
        AccessRole,
        ChangeType,
        EventStatus,
        Provider,
        ResponseStatus,
        ShowAs,
        Visibility,
    )
else:
    # A newer server may use further words, so any text is decoded.
    AccessRole = ChangeType = EventStatus = Provider = ResponseStatus = ShowAs = Visibility = str


class Calendar(Record):
    """A calendar of one of the user's accounts."""

    id: str
    provider: Provider
    connection_id: str
    subject: str
    access_role: AccessRole
    primary: bool
    selected: bool
    background_color: str
    foreground_color: str
    time_zone: str
    original: dict[str, Any] | None


class Attendee(Record, kw_only=True):
    """An attendee of an event. ``is_self`` marks the account that owns the calendar."""

    email: str
    is_self: bool = field(name="self")
    response_status: ResponseStatus
    name: str | None = None
    optional: bool = False
    resource: bool = False
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
    series_id: str | None = None
    original_start: datetime | None = None
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
    visibility: Visibility | None = None
    # Minutes before the start; None: those of the calendar, or not known.
    reminders: list[int] | None = None
    time_zone: str | None = None
    # Only of a series, which its own id reads.
    recurrence: list[str] | None = None
    # Sanitized; only where the provider has HTML.
    description_html: str | None = None
    meta_id: str | None = None
    attendees: list[Attendee]
    original: dict[str, Any] | None


class Change(Record, kw_only=True):
    """A change in a calendar: the ``event`` as it is now, or the ``id`` of an event or series that is gone.

    It replaces what you have by that id: the event, and all events whose ``recurring_event_id`` it is.
    """

    type: ChangeType
    event: Event | None = None
    id: str | None = None
    calendar_id: str
    connection_id: str


class ChangesAnswer(Record):
    """The changes, the ``cursor`` for the next request, and whether there is ``more`` already.

    Calendars that could not be read keep their place in the cursor.
    """

    changes: list[Change] = field(name="data")
    cursor: str
    more: bool
    failed_calendars: list[FailedCalendar]


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
    visibility: Visibility | None = None
    # Minutes before the start; None: those of the calendar, or not known.
    reminders: list[int] | None = None
    time_zone: str | None = None
    # Only of a series, which its own id reads.
    recurrence: list[str] | None = None
    # Sanitized; only where the provider has HTML.
    description_html: str | None = None
    meta_id: str
    attendees: list[UnifiedAttendee]
    originals: list[dict[str, Any] | None]
    events: list[EventCopy]

"""The JSON of Google Calendar, as far as it is read.

Types after the discovery document of https://developers.google.com/workspace/calendar/api/v3/reference
"""

from __future__ import annotations

from typing import TypedDict


class ErrorDetail(TypedDict, total=False):
    domain: str
    reason: str
    message: str


class CalendarListEntry(TypedDict, total=False):
    """Booleans that are false are left out."""

    id: str
    summary: str
    summaryOverride: str
    timeZone: str
    backgroundColor: str
    foregroundColor: str
    selected: bool
    primary: bool
    hidden: bool
    deleted: bool
    accessRole: str


class CalendarListPage(TypedDict, total=False):
    kind: str
    items: list[CalendarListEntry]
    nextPageToken: str


class BusyPeriod(TypedDict):
    start: str
    end: str


class FreeBusyCalendar(TypedDict, total=False):
    busy: list[BusyPeriod]
    errors: list[ErrorDetail]


class EventEdge(TypedDict, total=False):
    """A day has only ``date``; a time has ``dateTime`` and the zone it was written in.

    A ``dateTime`` without an offset is a wall clock of that zone.
    """

    date: str
    dateTime: str
    timeZone: str


class EventAttendee(TypedDict, total=False):
    """Booleans that are false are left out."""

    email: str
    displayName: str
    optional: bool
    resource: bool
    self: bool
    responseStatus: str


class EventOrganizer(TypedDict, total=False):
    """A person, or the calendar itself: then ``email`` is its id and ``displayName`` its name."""

    email: str
    displayName: str
    self: bool


class EntryPoint(TypedDict, total=False):
    entryPointType: str
    uri: str


class ConferenceStatus(TypedDict, total=False):
    statusCode: str


class ConferenceRequest(TypedDict, total=False):
    requestId: str
    status: ConferenceStatus


class ConferenceData(TypedDict, total=False):
    entryPoints: list[EntryPoint]
    createRequest: ConferenceRequest


class Reminder(TypedDict, total=False):
    method: str
    minutes: int


class EventReminders(TypedDict, total=False):
    useDefault: bool
    overrides: list[Reminder]


class ExtendedProperties(TypedDict, total=False):
    private: dict[str, str]


class EventRecord(TypedDict, total=False):
    """Empty fields are left out; a cancelled event is only sure to have ``id`` and ``status``."""

    id: str
    etag: str
    status: str
    sequence: int
    created: str
    updated: str
    htmlLink: str
    transparency: str
    visibility: str
    reminders: EventReminders
    organizer: EventOrganizer
    recurringEventId: str
    originalStartTime: EventEdge
    recurrence: list[str]
    summary: str
    description: str
    location: str
    start: EventEdge
    end: EventEdge
    endTimeUnspecified: bool
    attendees: list[EventAttendee]
    hangoutLink: str
    conferenceData: ConferenceData
    extendedProperties: ExtendedProperties

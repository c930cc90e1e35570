"""The JSON of Microsoft Graph, as far as it is read.

Types after https://learn.microsoft.com/en-us/graph/api/resources/calendar and .../resources/event
"""

from __future__ import annotations

from typing import Any, TypedDict


class EmailAddress(TypedDict, total=False):
    name: str
    address: str


class GraphCalendar(TypedDict, total=False):
    """``color`` is a name, ``hexColor`` is empty until the user has chosen one."""

    id: str
    name: str
    color: str
    hexColor: str
    isDefaultCalendar: bool
    canEdit: bool
    owner: EmailAddress | None


class CalendarOfEvent(TypedDict, total=False):
    """The calendar of an event, with the fields that ``event_calendar`` requests."""

    id: str
    isDefaultCalendar: bool


class DateTimeTimeZone(TypedDict):
    """Seven digits of fraction and no offset: the zone is a separate field."""

    dateTime: str
    timeZone: str


class ResponseStatus(TypedDict, total=False):
    response: str


class ItemBody(TypedDict, total=False):
    """``contentType`` is text or html."""

    contentType: str
    content: str | None


class Location(TypedDict, total=False):
    displayName: str | None


class GraphAttendee(TypedDict, total=False):
    """``type`` is required, optional or resource; the organizer is not an attendee."""

    emailAddress: EmailAddress | None
    status: ResponseStatus | None
    type: str


class GraphOrganizer(TypedDict, total=False):
    emailAddress: EmailAddress | None


class OnlineMeeting(TypedDict, total=False):
    joinUrl: str | None


class ExtendedProperty(TypedDict):
    id: str
    value: str


GraphEvent = TypedDict(
    "GraphEvent",
    {
        "@odata.etag": str,
        "id": str,
        "createdDateTime": str,
        "lastModifiedDateTime": str | None,
        "webLink": str | None,
        "organizer": GraphOrganizer | None,
        "isOrganizer": bool,
        "start": DateTimeTimeZone,
        "end": DateTimeTimeZone,
        "originalStartTimeZone": str | None,
        "originalEndTimeZone": str | None,
        "originalStart": str | None,
        "showAs": str,
        "sensitivity": str,
        "isReminderOn": bool,
        "reminderMinutesBeforeStart": int,
        "isAllDay": bool,
        "isCancelled": bool,
        "responseStatus": ResponseStatus | None,
        "subject": str | None,
        "body": ItemBody | None,
        "location": Location | None,
        "attendees": list[GraphAttendee] | None,
        "isOnlineMeeting": bool,
        "onlineMeeting": OnlineMeeting | None,
        "singleValueExtendedProperties": list[ExtendedProperty] | None,
        "calendar": CalendarOfEvent | None,
        "seriesMasterId": str | None,
        "recurrence": Any,
        "cancelledOccurrences": list[str] | None,
        "type": str,
    },
    total=False,
)


class BatchPart(TypedDict, total=False):
    """One answer of a batch; parts come in any order."""

    id: str
    status: int
    headers: dict[str, str]
    body: Any

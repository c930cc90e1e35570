"""The JSON of Google Calendar, as far as we read it.

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

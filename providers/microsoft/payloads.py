"""The JSON of Microsoft Graph, as far as we read it.

Types after https://learn.microsoft.com/en-us/graph/api/resources/calendar and .../resources/event
"""

from __future__ import annotations

from typing import Any, TypedDict


class EmailAddress(TypedDict, total=False):
    name: str
    address: str


class GraphCalendar(TypedDict, total=False):
    """``color`` is a word, ``hexColor`` is empty until the user has chosen one."""

    id: str
    name: str
    color: str
    hexColor: str
    isDefaultCalendar: bool
    canEdit: bool
    owner: EmailAddress | None


class DateTimeTimeZone(TypedDict):
    """Seven digits of fraction, no offset: the zone stands beside it."""

    dateTime: str
    timeZone: str


class ResponseStatus(TypedDict, total=False):
    response: str


class GraphEvent(TypedDict, total=False):
    start: DateTimeTimeZone
    end: DateTimeTimeZone
    showAs: str
    isAllDay: bool
    isCancelled: bool
    responseStatus: ResponseStatus | None


class BatchPart(TypedDict, total=False):
    """One answer of a batch; parts come in any order."""

    id: str
    status: int
    headers: dict[str, str]
    body: Any

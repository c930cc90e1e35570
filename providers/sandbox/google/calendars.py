"""The calendar list, single calendars and settings.

https://developers.google.com/workspace/calendar/api/v3/reference/calendarList
"""

from __future__ import annotations

from typing import Any

from providers.sandbox.calendars import Calendar
from providers.sandbox.calls import Call
from providers.sandbox.exchange import Answer
from providers.sandbox.google.errors import JSON, refusal
from providers.sandbox.google.pages import page
from providers.sandbox.google.resources import calendar_resource, list_entry

ROLES = ("freeBusyReader", "reader", "writerWithoutPrivateAccess", "writer", "owner")
DEFAULT_PAGE, MAX_PAGE = 100, 250


def json_answer(document: dict[str, Any], status: int = 200) -> Answer:
    """A JSON answer whose ETag header is that of the body."""
    headers = {"Content-Type": JSON}
    if "etag" in document:
        headers["ETag"] = document["etag"]
    return Answer(status, document=document, headers=headers, indent=True)


def seen(call: Call, calendar_id: str) -> Calendar:
    """A calendar on the caller's list; any other is a 404."""
    calendar = call.account.calendar(calendar_id)
    if calendar is None:
        raise refusal("notFound")
    return calendar


def list_calendars(call: Call) -> Answer:
    """``calendarList.list``"""
    least = call.request.one("minAccessRole", ROLES[0])
    if least not in ROLES:
        raise refusal(
            "invalidParameter", f"Invalid value for minAccessRole: {least}", parameter="minAccessRole"
        )
    entries = [
        list_entry(call.account, calendar)
        for calendar in call.account.calendars.values()
        if ROLES.index(calendar.access_role) >= ROLES.index(least)
    ]
    items, token = page(call.request, entries, DEFAULT_PAGE, MAX_PAGE)
    document = {"kind": "calendar#calendarList", "etag": '"p33k9e0p8ruvoo0o"', "items": items}
    if token:
        return json_answer(document | {"nextPageToken": token})
    return json_answer(document | {"nextSyncToken": "CKD8v9Xh1okDEhNzYW5kYm94"})


def get_entry(call: Call, calendar_id: str) -> Answer:
    """``calendarList.get``"""
    return json_answer(list_entry(call.account, seen(call, calendar_id)))


def get_calendar(call: Call, calendar_id: str) -> Answer:
    """``calendars.get``"""
    return json_answer(calendar_resource(seen(call, calendar_id)))


def settings_of(call: Call) -> dict[str, str]:
    return {"timezone": call.account.time_zone, "locale": "en", "format24HourTime": "true", "weekStart": "1"}


def setting(name: str, value: str) -> dict[str, str]:
    return {"kind": "calendar#setting", "etag": '"p33g9e0p8ruvoo0o"', "id": name, "value": value}


def get_setting(call: Call, name: str) -> Answer:
    """``settings.get``"""
    known = settings_of(call)
    if name not in known:
        raise refusal("notFound")
    return json_answer(setting(name, known[name]))


def list_settings(call: Call) -> Answer:
    """``settings.list``"""
    items = [setting(name, value) for name, value in settings_of(call).items()]
    return json_answer(
        {
            "kind": "calendar#settings",
            "etag": '"p33k9e0p8ruvoo0o"',
            "items": items,
            "nextSyncToken": "CKD8v9Xh1okDEhNzYW5kYm94",
        }
    )

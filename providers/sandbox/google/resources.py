"""Calendars and events as Google's JSON.

https://developers.google.com/workspace/calendar/api/v3/reference/events#resource
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.sandbox.accounts import Account
from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.consent import encoded
from providers.sandbox.google.times import edge, written
from providers.sandbox.times import date_of, utc_text, utc_text_ms

MEET = {"allowedConferenceSolutionTypes": ["hangoutsMeet"]}
REMINDERS = [{"method": "popup", "minutes": 30}]
# Colour ids of the palette with their background: `colors.get`.
COLORS = (("14", "#9fe1e7"), ("7", "#42d692"), ("8", "#16a765"), ("17", "#9a9cff"), ("12", "#fad165"))
ETAG_BASE = 3529324800000000
# The fields of an event that a reader with only free/busy access gets.
BARE = ("kind", "etag", "id", "status", "start", "end", "transparency", "eventType", "iCalUID")
TOMBSTONE = ("kind", "etag", "id", "status", "recurringEventId", "originalStartTime")


def etag(version: int) -> str:
    """A quoted number that grows."""
    return f'"{ETAG_BASE + 2 * version}"'


def list_entry(account: Account, calendar: Calendar) -> dict[str, Any]:
    """A calendar as an entry of an account's list; false values are omitted."""
    number = list(account.calendars).index(calendar.id)
    color, background = COLORS[number % len(COLORS)]
    entry: dict[str, Any] = {
        "kind": "calendar#calendarListEntry",
        "etag": etag(number),
        "id": calendar.id,
        "summary": calendar.subject,
        "timeZone": calendar.time_zone,
        "colorId": color,
        "backgroundColor": background,
        "foregroundColor": "#000000",
        "accessRole": calendar.access_role,
        "defaultReminders": REMINDERS if calendar.primary else [],
        "conferenceProperties": MEET,
    }
    if calendar.access_role == "owner":
        entry["selected"] = True
    if calendar.primary:
        entry["primary"] = True
        entry["notificationSettings"] = {"notifications": [{"type": "eventCreation", "method": "email"}]}
    return entry


def calendar_resource(calendar: Calendar) -> dict[str, Any]:
    """A calendar resource: no role, no colour."""
    return {
        "kind": "calendar#calendar",
        "etag": '"p33g9e0p8ruvoo0o"',
        "id": calendar.id,
        "summary": calendar.subject,
        "timeZone": calendar.time_zone,
        "conferenceProperties": MEET,
    }


def event_resource(account: Account, calendar: Calendar, event: Event, where: str) -> dict[str, Any]:
    """An event with its times in the zone ``where``."""
    whole = {
        "kind": "calendar#event",
        "etag": etag(event.version),
        "id": event.id,
        "status": "confirmed",
        "htmlLink": html_link(calendar, event),
        "created": utc_text(event.created),
        "updated": utc_text_ms(event.updated),
        "creator": person(account, calendar),
        "organizer": person(account, calendar),
        "start": edge(event, calendar, "start", where),
        "end": edge(event, calendar, "end", where),
        "iCalUID": f"{event.series or event.id}@google.com",
        "sequence": event.sequence,
        "reminders": {"useDefault": True},
        "eventType": "default",
        **event.fields,
    }
    if event.rule:
        whole["recurrence"] = list(event.rule)
    if event.series:
        whole["recurringEventId"] = event.series
        whole["originalStartTime"] = original_start(event, where)
    if event.deleted:
        whole["status"] = "cancelled"
    if whole["status"] == "cancelled" and event.series:
        return {name: whole[name] for name in TOMBSTONE}
    if calendar.access_role == "freeBusyReader":
        return {name: whole[name] for name in BARE if name in whole} | {"visibility": "private"}
    return whole


def unmade(event: dict[str, Any]) -> dict[str, Any]:
    """An event while its meeting is still being created.

    https://developers.google.com/workspace/calendar/api/guides/create-events#conferencing
    """
    meeting = event.get("conferenceData", {}).get("createRequest")
    if meeting is None:
        return event
    shown = {name: value for name, value in event.items() if name != "hangoutLink"}
    return shown | {"conferenceData": {"createRequest": meeting | {"status": {"statusCode": "pending"}}}}


def original_start(event: Event, where: str) -> dict[str, str]:
    assert event.original_start is not None
    if event.all_day:
        return {"date": date_of(event.original_start).isoformat()}
    return {"dateTime": written(event.original_start, where), "timeZone": event.start_zone}


def html_link(calendar: Calendar, event: Event) -> str:
    return "https://www.google.com/calendar/event?eid=" + encoded(f"{event.id} {calendar.id}".encode())


def person(account: Account, calendar: Calendar) -> dict[str, Any]:
    if calendar.primary:
        return {"email": account.email, "self": True}
    return {"email": calendar.id, "displayName": calendar.subject, "self": True}


def fields_of(account: Account, entry: Mapping[str, Any]) -> dict[str, Any]:
    """An event description of the control API, in Google's fields."""
    fields: dict[str, Any] = {}
    if entry.get("subject"):
        fields["summary"] = entry["subject"]
    if entry.get("showAs") in ("free", "workingElsewhere"):
        fields["transparency"] = "transparent"
    if entry.get("isCancelled") or entry.get("status") == "cancelled":
        fields["status"] = "cancelled"
    elif entry.get("status"):
        fields["status"] = entry["status"]
    if entry.get("responseStatus"):
        fields["attendees"] = [
            {"email": account.email, "self": True, "responseStatus": entry["responseStatus"]},
        ]
    return fields

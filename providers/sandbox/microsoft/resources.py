"""Calendars and events as Graph's JSON.

https://learn.microsoft.com/graph/api/resources/event
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from providers.microsoft.zones import windows_zone
from providers.sandbox.accounts import Account
from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.consent import encoded
from providers.sandbox.microsoft import bodies
from providers.sandbox.microsoft.times import clock, stamp

NEVER = "0001-01-01T00:00:00Z"
NOWHERE = {"displayName": "", "locationType": "default", "uniqueIdType": "unknown"}
EXTENDED = "singleValueExtendedProperties"
GUID = re.compile(r"\{[^}]*\}")
RESPONSES = {
    "needsAction": "notResponded",
    "accepted": "accepted",
    "tentative": "tentativelyAccepted",
    "declined": "declined",
}


def change_key(mark: str) -> str:
    return encoded(hashlib.sha256(mark.encode()).digest()[:21]) + "=="


def person(account: Account) -> dict[str, str]:
    return {"name": account.email.partition("@")[0], "address": account.email}


def calendar_resource(account: Account, calendar: Calendar) -> dict[str, Any]:
    """A calendar; Graph's calendars have no time zone."""
    owned = calendar.access_role == "owner"
    owner = person(account) if owned else {"name": "Owner", "address": f"owner.of.{account.email}"}
    if calendar.owner is not None:
        owner = {"name": calendar.owner.partition("@")[0], "address": calendar.owner}
    return {
        "id": calendar.id,
        "name": calendar.subject,
        "color": "auto",
        "hexColor": "",
        "isDefaultCalendar": calendar.primary,
        "changeKey": change_key(calendar.id),
        "canShare": owned,
        "canViewPrivateItems": owned,
        "canEdit": calendar.access_role in ("owner", "writer", "writerWithoutPrivateAccess"),
        "allowedOnlineMeetingProviders": ["teamsForBusiness"],
        "defaultOnlineMeetingProvider": "teamsForBusiness",
        "isTallyingResponses": calendar.primary,
        "isRemovable": not calendar.primary,
        "owner": owner,
    }


@dataclass(frozen=True, slots=True)
class Asked:
    """How an event is returned: in which zone (as the caller spelled it, and by its IANA name), with its body
    as text or as HTML, with which extended properties, and with which properties of its calendar."""

    spelt: str = "UTC"
    where: str = "UTC"
    text: bool = False
    extended: tuple[str, ...] = ()
    # None without $expand=calendar, empty for all properties.
    calendar: frozenset[str] | None = None


def event_resource(
    account: Account,
    calendar: Calendar,
    event: Event,
    asked: Asked,
    names: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """An event with the properties in ``names`` (lower case), or all; id and etag are always included."""
    # An occurrence has the fields of its series, except the pattern.
    written = event.fields.keys() - {"recurrence"} if event.series else event.fields.keys()
    document = {
        name: event.fields[name] if name in written else make(account, event, asked)
        for name, make in PROPERTIES.items()
        if not names or name.lower() in names or name in ("id", "@odata.etag")
    }
    if "body" in document:
        document["body"] = bodies.told(document["body"], as_text=asked.text)
    if kept := extended(event, asked.extended):
        document[EXTENDED] = kept
    if asked.calendar is not None:
        whole = calendar_resource(account, calendar)
        kept_names = [name for name in whole if not asked.calendar or name.lower() in asked.calendar]
        document["calendar"] = {name: whole[name] for name in kept_names}
    return document


def extended(event: Event, asked: tuple[str, ...]) -> list[dict[str, str]]:
    """The extended properties that were requested by id."""
    wanted = {folded(name) for name in asked}
    return [entry for entry in event.fields.get(EXTENDED, ()) if folded(entry["id"]) in wanted]


def folded(name: str) -> str:
    """The id of a property for comparison: the name is case-sensitive, the GUID is not."""
    return GUID.sub(lambda guid: guid[0].lower(), name)


def event_key(event: Event) -> str:
    return change_key(f"{event.id}:{event.version}")


def etag(event: Event) -> str:
    return f'W/"{event_key(event)}"'


def uid(event: Event) -> str:
    return "040000008200E00074C5B7101A82E008" + change_key(event.series or event.id)[:20].encode().hex()


def web_link(event: Event) -> str:
    return f"https://outlook.office365.com/owa/?itemid={quote(event.id)}&exvsurl=1&path=/calendar/item"


# How each property is computed when it was not written.
PROPERTIES: dict[str, Callable[[Account, Event, Asked], Any]] = {
    "@odata.etag": lambda account, event, asked: etag(event),
    "id": lambda account, event, asked: event.id,
    "createdDateTime": lambda account, event, asked: stamp(event.created),
    "lastModifiedDateTime": lambda account, event, asked: stamp(event.updated),
    "changeKey": lambda account, event, asked: event_key(event),
    "categories": lambda account, event, asked: [],
    "transactionId": lambda account, event, asked: None,
    "originalStartTimeZone": lambda account, event, asked: windows_zone(event.start_zone) or event.start_zone,
    "originalEndTimeZone": lambda account, event, asked: windows_zone(event.end_zone) or event.end_zone,
    "originalStart": lambda account, event, asked: (
        None if event.original_start is None else stamp(event.original_start)
    ),
    "iCalUId": lambda account, event, asked: uid(event),
    "reminderMinutesBeforeStart": lambda account, event, asked: 15,
    "isReminderOn": lambda account, event, asked: True,
    "hasAttachments": lambda account, event, asked: False,
    "subject": lambda account, event, asked: "",
    "bodyPreview": lambda account, event, asked: preview(event),
    "importance": lambda account, event, asked: "normal",
    "sensitivity": lambda account, event, asked: "normal",
    "isAllDay": lambda account, event, asked: event.all_day,
    "isCancelled": lambda account, event, asked: False,
    "isOrganizer": lambda account, event, asked: True,
    "responseRequested": lambda account, event, asked: True,
    "seriesMasterId": lambda account, event, asked: event.series,
    "showAs": lambda account, event, asked: "busy",
    "type": lambda account, event, asked: kind(event),
    "webLink": lambda account, event, asked: web_link(event),
    "onlineMeetingUrl": lambda account, event, asked: None,
    "isOnlineMeeting": lambda account, event, asked: False,
    "onlineMeetingProvider": lambda account, event, asked: "unknown",
    "allowNewTimeProposals": lambda account, event, asked: True,
    "isDraft": lambda account, event, asked: False,
    "hideAttendees": lambda account, event, asked: False,
    "recurrence": lambda account, event, asked: None,
    "onlineMeeting": lambda account, event, asked: None,
    "responseStatus": lambda account, event, asked: {"response": "organizer", "time": NEVER},
    "body": lambda account, event, asked: bodies.EMPTY,
    "start": lambda account, event, asked: edge(event, event.start, asked),
    "end": lambda account, event, asked: edge(event, event.end, asked),
    "location": lambda account, event, asked: dict(NOWHERE),
    "locations": lambda account, event, asked: [],
    "attendees": lambda account, event, asked: [],
    "organizer": lambda account, event, asked: {"emailAddress": person(account)},
}


def kind(event: Event) -> str:
    if event.series is None:
        return "seriesMaster" if event.rule else "singleInstance"
    return "occurrence" if event.start == event.original_start else "exception"


def edge(event: Event, ms: int, asked: Asked) -> dict[str, str]:
    """Midnights of an all-day event float: they are labelled with the requested zone, but not converted."""
    return {"dateTime": clock(ms, "UTC" if event.all_day else asked.where), "timeZone": asked.spelt}


def preview(event: Event) -> str:
    return bodies.plain(event.fields.get("body", bodies.EMPTY)).strip()[:255]


def fields_of(account: Account, entry: Mapping[str, Any]) -> dict[str, Any]:
    """An event description of the control API, in Graph's fields."""
    fields: dict[str, Any] = {"subject": entry.get("subject") or "", "showAs": entry.get("showAs") or "busy"}
    if entry.get("isCancelled") or entry.get("status") == "cancelled":
        fields["isCancelled"] = True
    if entry.get("status") == "tentative" and not entry.get("showAs"):
        fields["showAs"] = "tentative"
    if answer := entry.get("responseStatus"):
        fields["responseStatus"] = {"response": RESPONSES.get(answer, answer), "time": NEVER}
        fields["isOrganizer"] = False
        host = {"name": "Host", "address": f"host.of.{account.email}"}
        fields["organizer"] = {"emailAddress": host}
    return fields

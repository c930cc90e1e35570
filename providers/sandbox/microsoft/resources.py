"""Calendars and events as Graph's JSON.

https://learn.microsoft.com/graph/api/resources/event
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import quote

from providers.sandbox.accounts import Account
from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.consent import encoded
from providers.sandbox.microsoft import bodies
from providers.sandbox.microsoft.recurrence import seeded
from providers.sandbox.microsoft.times import clock, stamp
from providers.sandbox.times import moment
from scheduling.zones import windows_zone

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
class Rendering:
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
    style: Rendering,
    names: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """An event with the properties in ``names`` (lower case), or all; id and etag are always included."""
    # An occurrence has the fields of its series, except the pattern.
    written = event.fields.keys() - {"recurrence"} if event.series else event.fields.keys()
    document = {
        name: event.fields[name] if name in written else make(account, event, style)
        for name, make in PROPERTIES.items()
        if not names or name.lower() in names or name in ("id", "@odata.etag")
    }
    if "cancelledoccurrences" in names:
        document["cancelledOccurrences"] = cancelled(calendar, event)
    if "body" in document:
        document["body"] = bodies.as_json(document["body"], as_text=style.text)
    if kept := extended(event, style.extended):
        document[EXTENDED] = kept
    if style.calendar is not None:
        whole = calendar_resource(account, calendar)
        kept_names = [name for name in whole if not style.calendar or name.lower() in style.calendar]
        document["calendar"] = {name: whole[name] for name in kept_names}
    return document


def first_day(event: Event, ms: int | None = None) -> date:
    """The date of the start, or of another time of the event, on the clock of its zone."""
    return moment(event.start if ms is None else ms, "UTC" if event.all_day else event.start_zone).date()


def cancelled(calendar: Calendar, master: Event) -> list[str]:
    """The deleted occurrences of a series, which are returned only when they are selected.

    https://learn.microsoft.com/graph/api/resources/event#properties
    """
    return [
        f"OID.{master.id}.{first_day(each, each.original_start).isoformat()}"
        for each in calendar.events.values()
        if each.series == master.id and each.deleted
    ]


def extended(event: Event, style: tuple[str, ...]) -> list[dict[str, str]]:
    """The extended properties that were requested by id."""
    wanted = {folded(name) for name in style}
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
PROPERTIES: dict[str, Callable[[Account, Event, Rendering], Any]] = {
    "@odata.etag": lambda account, event, style: etag(event),
    "id": lambda account, event, style: event.id,
    "createdDateTime": lambda account, event, style: stamp(event.created),
    "lastModifiedDateTime": lambda account, event, style: stamp(event.updated),
    "changeKey": lambda account, event, style: event_key(event),
    "categories": lambda account, event, style: [],
    "transactionId": lambda account, event, style: None,
    "originalStartTimeZone": lambda account, event, style: windows_zone(event.start_zone) or event.start_zone,
    "originalEndTimeZone": lambda account, event, style: windows_zone(event.end_zone) or event.end_zone,
    "originalStart": lambda account, event, style: (
        None if event.original_start is None else stamp(event.original_start)
    ),
    "iCalUId": lambda account, event, style: uid(event),
    "reminderMinutesBeforeStart": lambda account, event, style: 15,
    "isReminderOn": lambda account, event, style: True,
    "hasAttachments": lambda account, event, style: bool(event.fields.get("attachments")),
    "subject": lambda account, event, style: "",
    "bodyPreview": lambda account, event, style: preview(event),
    "importance": lambda account, event, style: "normal",
    "sensitivity": lambda account, event, style: "normal",
    "isAllDay": lambda account, event, style: event.all_day,
    "isCancelled": lambda account, event, style: False,
    "isOrganizer": lambda account, event, style: True,
    "responseRequested": lambda account, event, style: True,
    "seriesMasterId": lambda account, event, style: event.series,
    "showAs": lambda account, event, style: "busy",
    "type": lambda account, event, style: kind(event),
    "webLink": lambda account, event, style: web_link(event),
    "onlineMeetingUrl": lambda account, event, style: None,
    "isOnlineMeeting": lambda account, event, style: False,
    "onlineMeetingProvider": lambda account, event, style: "unknown",
    "allowNewTimeProposals": lambda account, event, style: True,
    "isDraft": lambda account, event, style: False,
    "hideAttendees": lambda account, event, style: False,
    "recurrence": lambda account, event, style: seeded(event.rule, first_day(event), event.start_zone),
    "onlineMeeting": lambda account, event, style: None,
    "responseStatus": lambda account, event, style: {"response": "organizer", "time": NEVER},
    "body": lambda account, event, style: bodies.EMPTY,
    "start": lambda account, event, style: edge(event, event.start, style),
    "end": lambda account, event, style: edge(event, event.end, style),
    "location": lambda account, event, style: dict(NOWHERE),
    "locations": lambda account, event, style: [],
    "attendees": lambda account, event, style: [],
    "organizer": lambda account, event, style: {"emailAddress": person(account)},
}


def kind(event: Event) -> str:
    if event.series is None:
        return "seriesMaster" if event.rule else "singleInstance"
    return "occurrence" if event.start == event.original_start else "exception"


def edge(event: Event, ms: int, style: Rendering) -> dict[str, str]:
    """Midnights of an all-day event float: they are labelled with the requested zone, but not converted."""
    return {"dateTime": clock(ms, "UTC" if event.all_day else style.where), "timeZone": style.spelt}


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
        own = {"type": "required", "status": fields["responseStatus"], "emailAddress": person(account)}
        fields["attendees"] = [own]
        fields["isOrganizer"] = False
        host = {"name": "Host", "address": f"host.of.{account.email}"}
        fields["organizer"] = {"emailAddress": host}
    return fields

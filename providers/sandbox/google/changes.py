"""Writing events: ``events.insert``, ``patch``, ``update``, ``delete``.

https://developers.google.com/workspace/calendar/api/v3/reference/events/insert
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import secrets
import time
from datetime import UTC, date, datetime
from typing import Any

from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.calls import Call
from providers.sandbox.consent import encoded
from providers.sandbox.exchange import Answer
from providers.sandbox.google.calendars import json_answer, seen
from providers.sandbox.google.errors import refusal
from providers.sandbox.google.events import find, is_cancelled
from providers.sandbox.google.resources import etag, event_resource
from providers.sandbox.google.times import known_zone
from providers.sandbox.json_validation import shape_error
from providers.sandbox.series import is_readable, orphans
from providers.sandbox.times import floating, instant, zone

# base32hex in lower case: https://developers.google.com/workspace/calendar/api/v3/reference/events#id
EVENT_ID = re.compile(r"[a-v0-9]{5,1024}")
# Fields that the server sets; values from a client are ignored.
READ_ONLY = {
    *("kind", "etag", "id", "htmlLink", "created", "updated", "creator", "organizer", "start", "end"),
    *("iCalUID", "sequence", "recurrence", "recurringEventId", "originalStartTime", "hangoutLink", "locked"),
    *("privateCopy", "endTimeUnspecified", "attendeesOmitted"),
}
# Fields that are omitted from an answer while they have this value.
DEFAULTS = {
    "transparency": "opaque",
    "visibility": "default",
    "guestsCanInviteOthers": True,
    "guestsCanModify": False,
    "guestsCanSeeOtherGuests": True,
    "anyoneCanAddSelf": False,
}
WHEN = {"date": str, "dateTime": str, "timeZone": str}
EVENT = {
    **dict.fromkeys(
        ("id", "summary", "description", "location", "status", "visibility", "transparency"), str
    ),
    "start": WHEN,
    "end": WHEN,
    "attendees": [{"email": str, "responseStatus": str}],
    "recurrence": [str],
    "extendedProperties": {"private": dict, "shared": dict},
    "reminders": {"useDefault": bool, "overrides": [{"method": str, "minutes": int}]},
    "sequence": int,
    "conferenceData": {"createRequest": dict},
}
VALUES = {
    "status": ("confirmed", "tentative", "cancelled"),
    "transparency": ("opaque", "transparent"),
    "visibility": ("default", "public", "private", "confidential"),
}


def insert(call: Call, calendar_id: str) -> Answer:
    """``events.insert``: an id chosen by the client makes it safe to repeat."""
    calendar = writable(call, calendar_id)
    body = posted(call)
    event_id = body.get("id") or secrets.token_hex(13)
    if not isinstance(event_id, str) or not EVENT_ID.fullmatch(event_id):
        raise refusal("invalid", "Invalid resource id value.")
    if event_id in calendar.events:
        raise refusal("duplicate")
    now = int(time.time() * 1000)
    blank = Event(event_id, 0, 0, "UTC", "UTC", False, {}, now, 0, now)
    made = filled(call, calendar, blank, body)
    tell_guests(call, "insert", made)
    return stored(call, calendar, made)


def patch(call: Call, calendar_id: str, event_id: str) -> Answer:
    """``events.patch``: objects merge, arrays replace, null removes."""
    calendar = writable(call, calendar_id)
    event = matched(call, find(calendar, event_id))
    body = posted(call)
    changed = filled(call, calendar, event, merged(written_fields(call, calendar, event), body))
    tell_guests(call, "patch", event, changed)
    return stored(call, calendar, changed)


def update(call: Call, calendar_id: str, event_id: str) -> Answer:
    """``events.update``: replaces all writable fields.

    The sequence grows with each move. A missing one counts as 0, and one that is too low is rejected.
    """
    calendar = writable(call, calendar_id)
    event = matched(call, find(calendar, event_id))
    body = posted(call)
    if (body.get("sequence") or 0) < event.sequence:
        raise refusal("invalid", "Invalid sequence value.")
    changed = filled(call, calendar, event, body)
    tell_guests(call, "update", event, changed)
    return stored(call, calendar, changed)


def delete(call: Call, calendar_id: str, event_id: str) -> Answer:
    """``events.delete``: leaves a tombstone, so a second delete answers 410.

    Deleting a series also deletes its changed occurrences.
    """
    calendar = writable(call, calendar_id)
    event = matched(call, find(calendar, event_id))
    if is_cancelled(event):
        raise refusal("deleted")
    tell_guests(call, "delete", event)
    for gone in [event, *(each for each in calendar.events.values() if each.series == event.id)]:
        version = next(call.world.versions)
        calendar.put(
            dataclasses.replace(gone, deleted=True, version=version, updated=int(time.time() * 1000))
        )
    return Answer(204)


def tell_guests(call: Call, verb: str, *versions: Event) -> None:
    """Record that Google notifies the guests before and after a write, if the call requests it."""
    who = call.request.one("sendUpdates", "none")
    if who not in ("all", "externalOnly", "none"):
        raise refusal("invalidParameter", f"Invalid value '{who}'.", parameter="sendUpdates")
    attendees = [entry for event in versions for entry in event.fields.get("attendees", ())]
    guests = dict.fromkeys(str(entry.get("email")) for entry in attendees if not entry.get("self"))
    if guests and who != "none":
        notice = {"operation": f"google.events.{verb}", "email": call.account.email}
        call.world.notices.append(notice | {"eventId": versions[0].id, "guests": list(guests)})


def writable(call: Call, calendar_id: str) -> Calendar:
    calendar = seen(call, calendar_id)
    if calendar.access_role not in ("owner", "writer", "writerWithoutPrivateAccess"):
        raise refusal("requiredAccessLevel")
    return calendar


def posted(call: Call) -> dict[str, Any]:
    try:
        body = call.json()
    except ValueError as error:
        raise refusal("parseError") from error
    if not isinstance(body, dict):
        raise refusal("parseError")
    if problem := shape_error(body, EVENT):
        raise refusal("badRequest", f"Invalid JSON payload received: {problem}")
    for name, values in VALUES.items():
        if body.get(name) is not None and body[name] not in values:
            raise refusal("invalid", f"Invalid value for: {body[name]} is not a valid {name}")
    return body


def matched(call: Call, event: Event) -> Event:
    """The event, if its etag matches ``If-Match``."""
    expected = call.request.headers.get("if-match", "*")
    if expected not in ("*", etag(event.version)):
        raise refusal("conditionNotMet", header="If-Match")
    return event


def written_fields(call: Call, calendar: Calendar, event: Event) -> dict[str, Any]:
    """The writable fields of this event."""
    whole = event_resource(
        call.account, calendar, dataclasses.replace(event, deleted=False), event.start_zone
    )
    kept = {name: value for name, value in whole.items() if name not in READ_ONLY}
    if event.deleted:
        kept["status"] = "cancelled"
    return kept | {name: whole[name] for name in ("start", "end", "recurrence") if name in whole}


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """``old`` with a patch applied."""
    both = dict(old)
    for name, value in new.items():
        if value is None:
            both.pop(name, None)
        elif isinstance(value, dict) and isinstance(both.get(name), dict):
            both[name] = merged(both[name], value)
        else:
            both[name] = value
    return both


def filled(call: Call, calendar: Calendar, event: Event, body: dict[str, Any]) -> Event:
    """The event with all writable fields taken from ``body``.

    :raise Refused: if the body is invalid
    """
    start, start_zone, all_day = edge(calendar, body, "start")
    end, end_zone, also_all_day = edge(calendar, body, "end")
    if all_day != also_all_day:
        raise refusal("invalid", "Start and end times must either both be date or both be dateTime.")
    # Events without length are allowed, events that end before they start are not.
    if end < start or (all_day and end == start):
        raise refusal("timeRangeEmpty")
    rule = tuple(body.get("recurrence") or ())
    if not is_readable(rule):
        raise refusal("invalid", "Invalid recurrence rule.")
    reminders = body.get("reminders") or {}
    if reminders.get("useDefault") and reminders.get("overrides"):
        raise refusal(
            "cannotUseDefaultRemindersAndSpecifyOverride",
            "Cannot specify both default reminders and overrides at the same time.",
        )
    # https://developers.google.com/workspace/calendar/api/v3/reference/events#reminders.overrides
    if len(reminders.get("overrides") or ()) > 5:
        raise refusal("invalid", "An event can have at most 5 override reminders.")
    if rule and not all_day and not body["start"].get("timeZone"):
        raise refusal("required", "Missing time zone definition for start time.")
    fields = {
        name: value
        for name, value in body.items()
        if name not in READ_ONLY
        and name != "conferenceData"
        and value is not None
        and DEFAULTS.get(name) != value
    }
    if fields.get("status") == "confirmed":
        del fields["status"]
    for entry in fields.get("attendees", ()):
        entry.setdefault("responseStatus", "needsAction")
        if str(entry.get("email", "")).lower() == call.account.email.lower():
            entry["self"] = True
    fields |= conference(call, event, body)
    moved = event.version > 0 and (start, end) != (event.start, event.end)
    return dataclasses.replace(
        event,
        start=start,
        end=end,
        start_zone=start_zone,
        end_zone=end_zone,
        all_day=all_day,
        fields=fields,
        rule=rule,
        deleted=False,
        sequence=event.sequence + moved,
        version=next(call.world.versions),
        updated=int(time.time() * 1000),
    )


def conference(call: Call, event: Event, body: dict[str, Any]) -> dict[str, Any]:
    """The event's meeting, kept or created; written only by a call that declares its conference version.

    https://developers.google.com/workspace/calendar/api/guides/create-events#conferencing
    """
    kept = {n: value for n, value in event.fields.items() if n in ("conferenceData", "hangoutLink")}
    if call.request.one("conferenceDataVersion", "0") != "1":
        return kept
    given = body.get("conferenceData")
    if given is None:
        return {}
    request = given.get("createRequest")
    if request is None and given.get("entryPoints") and not kept:
        # The meeting of another event.
        return {"conferenceData": given, "hangoutLink": given["entryPoints"][0].get("uri", "")}
    if request is None:
        return kept
    if not request.get("requestId"):
        raise refusal("invalid", "Invalid conference type value.")
    # A request with the same id as before is ignored.
    if kept and request["requestId"] == kept["conferenceData"].get("createRequest", {}).get("requestId"):
        return kept
    code = encoded(hashlib.sha256(request["requestId"].encode()).digest())[:10].lower()
    link = f"https://meet.google.com/{code[:3]}-{code[3:7]}-{code[7:]}"
    return {
        "hangoutLink": link,
        "conferenceData": {
            "createRequest": {**request, "status": {"statusCode": "success"}},
            "entryPoints": [{"entryPointType": "video", "uri": link, "label": link[8:]}],
            "conferenceSolution": {"key": {"type": "hangoutsMeet"}, "name": "Google Meet"},
            "conferenceId": link.rpartition("/")[2],
        },
    }


def edge(calendar: Calendar, body: dict[str, Any], name: str) -> tuple[int, str, bool]:
    """``start`` or ``end``: when, in which zone, and whether it is a date."""
    value = body.get(name)
    if not isinstance(value, dict) or not (value.get("date") or value.get("dateTime")):
        raise refusal("required", f"Missing {name} time.")
    # A patch merges here too: the other field stays until it is removed with null.
    if value.get("date") and value.get("dateTime"):
        raise refusal("invalid", f"Invalid {name} time.")
    where = known_zone(value.get("timeZone") or calendar.time_zone)
    try:
        if value.get("date"):
            return floating(date.fromisoformat(value["date"])), where, True
        moment = datetime.fromisoformat(value["dateTime"])
    except (ValueError, TypeError) as error:
        raise refusal("badRequest") from error
    if moment.tzinfo is None:
        if not value.get("timeZone"):
            raise refusal("required", f"Missing time zone definition for {name} time.")
        moment = moment.replace(tzinfo=zone(where))
    return instant(moment.astimezone(UTC)), where, False


def stored(call: Call, calendar: Calendar, event: Event) -> Answer:
    calendar.put(event)
    for gone in orphans(calendar, event):
        calendar.put(dataclasses.replace(gone, deleted=True, version=next(call.world.versions)))
    return json_answer(event_resource(call.account, calendar, event, calendar.time_zone))

"""Writing events: create, update, delete.

https://learn.microsoft.com/graph/api/calendar-post-events
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from typing import Any

import orjson

from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.calls import Call
from providers.sandbox.exchange import Answer
from providers.sandbox.json_validation import shape_error
from providers.sandbox.microsoft import bodies
from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.microsoft.events import event_answer, find
from providers.sandbox.microsoft.mailbox import object_id, seen
from providers.sandbox.microsoft.recurrence import rule, with_defaults
from providers.sandbox.microsoft.resources import NEVER, NOWHERE, etag
from providers.sandbox.microsoft.times import body_instant
from providers.sandbox.series import orphans
from providers.sandbox.times import DAY, local_midnight, moment
from scheduling.zones import iana_zone

# Fields that a client can write. Others are ignored.
WRITABLE = (
    *("subject", "body", "importance", "sensitivity", "showAs", "isReminderOn", "reminderMinutesBeforeStart"),
    *("location", "locations", "attendees", "categories", "responseRequested", "allowNewTimeProposals"),
    *("hideAttendees", "transactionId", "recurrence", "attachments"),
    "singleValueExtendedProperties",
)
WHEN = {"dateTime": str, "timeZone": str}
PLACE = {"displayName": str}
EVENT = {
    **dict.fromkeys(("subject", "showAs", "importance", "sensitivity", "transactionId"), str),
    **dict.fromkeys(("isAllDay", "isOnlineMeeting", "isReminderOn", "responseRequested"), bool),
    "start": WHEN,
    "end": WHEN,
    "body": {"contentType": str, "content": str},
    "location": PLACE,
    "locations": [PLACE],
    "attendees": [{"emailAddress": {"address": str, "name": str}, "type": str, "status": dict}],
    "categories": [str],
    "attachments": [dict],
    "recurrence": {"pattern": dict, "range": dict},
    "singleValueExtendedProperties": [{"id": str, "value": str}],
}
MEETING = ("isOnlineMeeting", "onlineMeetingProvider", "onlineMeeting")
VALUES = {
    "showAs": ("free", "tentative", "busy", "oof", "workingElsewhere", "unknown"),
    "importance": ("low", "normal", "high"),
    "sensitivity": ("normal", "personal", "private", "confidential"),
}


def create(call: Call, calendar_id: str = "") -> Answer:
    """``POST …/events``: the same transactionId and body twice make one event."""
    calendar = writable(call, seen(call, calendar_id))
    body = posted(call)
    if (known := same_transaction(calendar, body)) is not None:
        return event_answer(call, calendar, known, 201)
    now = int(time.time() * 1000)
    event_id = "AAMkAG" + secrets.token_urlsafe(32) + "AAAA="
    event = filled(call, Event(event_id, 0, 0, "UTC", "UTC", False, {}, now, 0, now), body)
    if body.get("transactionId"):
        event.fields["transactionId"] = body["transactionId"]
        calendar.transactions[body["transactionId"]] = event_id, canonical(body)
    calendar.put(event)
    answer = event_answer(call, calendar, event, 201)
    answer.headers["Location"] = (
        f"https://graph.microsoft.com/v1.0/users('{object_id(call.account)}')/events('{event_id}')"
    )
    return answer


def same_transaction(calendar: Calendar, body: dict[str, Any]) -> Event | None:
    """The event that the same request has created before.

    https://learn.microsoft.com/graph/api/resources/event (transactionId)
    """
    known = calendar.transactions.get(body.get("transactionId") or "")
    if known is None:
        return None
    event_id, before = known
    if before != canonical(body):
        raise refusal(
            "ErrorDuplicateTransactionId",
            "Your request can't be completed. The TransactionId specified in the request has already been "
            "used to create a different event.",
            **{"@event.existingEventId": event_id},
        )
    event = calendar.events.get(event_id)
    return event if event is not None and not event.deleted else None


def canonical(body: dict[str, Any]) -> str:
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode()


def update(call: Call, *ids: str) -> Answer:
    """``PATCH …/events/{id}``: fields that are not sent stay unchanged."""
    calendar, event = matched(call, *ids)
    changed = filled(call, event, posted(call))
    calendar.put(changed)
    for gone in orphans(calendar, changed):
        calendar.drop(gone.id, next(call.world.versions))
    return event_answer(call, calendar, changed)


def delete(call: Call, *ids: str) -> Answer:
    """``DELETE …/events/{id}``: leaves no trace.

    Deleting a series also deletes its changed and deleted occurrences.
    """
    calendar, event = matched(call, *ids)
    # Only an occurrence leaves a tombstone, because its series would restore it.
    if event.series is not None:
        calendar.put(dataclasses.replace(event, deleted=True, version=next(call.world.versions)))
        return Answer(204)
    changed = [each.id for each in calendar.events.values() if each.series == event.id]
    for event_id in [event.id, *changed]:
        calendar.drop(event_id, next(call.world.versions))
    return Answer(204)


ACTIONS = {"accept": "accepted", "decline": "declined", "tentativelyAccept": "tentativelyAccepted"}


def respond(call: Call, *ids: str) -> Answer:
    """``POST …/events/{id}/accept``, ``decline``, ``tentativelyAccept``: a declined event leaves it.

    https://learn.microsoft.com/graph/api/event-decline
    """
    calendar, event = matched(call, *ids)
    if event.fields.get("isOrganizer", True):
        raise refusal(
            "ErrorInvalidRequest", "You can't respond to this meeting because you're the meeting organizer."
        )
    body = posted(call)
    action = call.request.path[-1]
    if body.get("sendResponse", True):
        notice = {"operation": f"microsoft.events.{action}", "email": call.account.email, "eventId": event.id}
        call.world.notices.append(notice | {"comment": body.get("comment", "")})
    if action == "decline":
        delete(call, *ids)
        return Answer(202)
    response = {"response": ACTIONS[action], "time": "2026-11-27T00:00:00Z"}
    attendees = [
        entry | {"status": response}
        if entry["emailAddress"]["address"].lower() == call.account.email.lower()
        else entry
        for entry in event.fields.get("attendees", ())
    ]
    fields = {**event.fields, "responseStatus": response, "attendees": attendees}
    calendar.put(dataclasses.replace(event, fields=fields, version=next(call.world.versions)))
    return Answer(202)


def matched(call: Call, *ids: str) -> tuple[Calendar, Event]:
    """The event and its calendar, if the caller may write there and the etag matches ``If-Match``."""
    calendar, event = find(call, ids[-1], *ids[:-1])
    writable(call, calendar)
    expected = call.request.headers.get("if-match", "*")
    if expected not in ("*", etag(event)):
        raise refusal("ErrorIrresolvableConflict", status=412)
    return calendar, event


def writable(call: Call, calendar: Calendar) -> Calendar:
    if calendar.access_role not in ("owner", "writer", "writerWithoutPrivateAccess"):
        raise refusal("ErrorAccessDenied")
    return calendar


def posted(call: Call) -> dict[str, Any]:
    try:
        body = call.json()
    except ValueError as error:
        raise refusal("BadRequest", "Unable to read JSON request payload.") from error
    if not isinstance(body, dict):
        raise refusal("BadRequest", "Unable to read JSON request payload.")
    if problem := shape_error(body, EVENT):
        raise refusal("RequestBodyRead", f"Cannot read the request body: {problem}")
    for name, values in VALUES.items():
        if body.get(name) is not None and body[name] not in values:
            raise refusal("RequestBodyRead", f"Cannot convert the literal '{body[name]}' of {name}.")
    return body


def filled(call: Call, event: Event, body: dict[str, Any]) -> Event:
    """The event with the fields of ``body``; others stay unchanged.

    :raise Refused: if the body is invalid
    """
    all_day = bool(body.get("isAllDay", event.all_day))
    start, start_zone = edge(event, body, "start", all_day)
    end, end_zone = edge(event, body, "end", all_day)
    if end < start or (all_day and end - start < DAY):
        raise refusal("ErrorPropertyValidationFailure", "The event ends before it starts.")
    now = int(time.time() * 1000)
    recurrence = written_recurrence(event, body, start, start_zone, all_day=all_day)
    return dataclasses.replace(
        event,
        start=start,
        end=end,
        start_zone=start_zone,
        end_zone=end_zone,
        all_day=all_day,
        fields=written(event, body | recurrence),
        rule=rule(body["recurrence"]) if "recurrence" in body else event.rule,
        version=next(call.world.versions),
        updated=now,
    )


def written_recurrence(
    event: Event, body: dict[str, Any], start: int, where: str, *, all_day: bool
) -> dict[str, Any]:
    """The recurrence with the defaults of Graph, if the body has one; it begins on the date of the start.

    https://learn.microsoft.com/graph/api/resources/recurrencerange (startDate)
    """
    found = body.get("recurrence")
    if found is None:
        return {}
    if event.series is not None:
        raise refusal("ErrorInvalidRequest", "The recurrence of an occurrence can't be set.")
    rule(found)
    first = moment(start, "UTC" if all_day else where).date().isoformat()
    if found["range"].get("startDate") != first:
        raise refusal("ErrorPropertyValidationFailure", "Recurrence startDate differs from the start.")
    return {"recurrence": with_defaults(found, where)}


def edge(event: Event, body: dict[str, Any], name: str, all_day: bool) -> tuple[int, str]:
    """``start`` or ``end``; those of an all-day event are floating midnights."""
    if name not in body:
        if event.version == 0:
            raise refusal("ErrorPropertyValidationFailure", f"{name} is missing.")
        kept = (event.start, event.start_zone) if name == "start" else (event.end, event.end_zone)
        return floated(*kept) if all_day and not event.all_day else kept
    ms, spelt = body_instant(body[name], name)
    where = iana_zone(spelt) or "UTC"
    return floated(ms, where) if all_day else (ms, where)


def floated(ms: int, where: str) -> tuple[int, str]:
    """The date whose midnight an instant is."""
    clock = moment(ms, where)
    days = (clock.date() - moment(0, "UTC").date()).days * DAY
    if local_midnight(days, where) != ms:
        raise refusal(
            "ErrorPropertyValidationFailure",
            "The Event.Start property for an all-day event needs to be set to midnight.",
        )
    return days, where


def written(event: Event, body: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event after a write; null restores a field's default."""
    fields = dict(event.fields)
    for name in WRITABLE:
        if name not in body or (name == "transactionId" and event.version > 0):
            continue
        value = body[name]
        if value is None:
            fields.pop(name, None)
        else:
            fields[name] = value
    if body.get("attendees"):
        fields["attendees"] = [attendee(entry) for entry in body["attendees"]]
    if "location" in body or "locations" in body:
        fields |= places(body)
    if "singleValueExtendedProperties" in body:
        fields["singleValueExtendedProperties"] = properties(event, body)
    return met(event, body, fields)


def met(event: Event, body: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with an online meeting created, kept or removed: it exists while the body has its block.

    https://learn.microsoft.com/graph/api/event-update (body property and online meetings)
    """
    if known := event.fields.get("onlineMeeting"):
        invited = "body" not in body or bodies.invites(fields.get("body", bodies.EMPTY), known["joinUrl"])
        return fields if invited else {k: v for k, v in fields.items() if k not in MEETING}
    if not body.get("isOnlineMeeting"):
        return fields
    found = meeting(event)
    invitation = bodies.with_meeting(fields.get("body", bodies.EMPTY), found["onlineMeeting"]["joinUrl"])
    return fields | found | {"body": invitation}


def attendee(entry: dict[str, Any]) -> dict[str, Any]:
    address = entry.get("emailAddress") or {}
    named = {"name": address.get("name") or address.get("address", ""), "address": address.get("address", "")}
    status = {"response": "none", "time": NEVER}
    return {
        "type": entry.get("type") or "required",
        "status": entry.get("status") or status,
        "emailAddress": named,
    }


def places(body: dict[str, Any]) -> dict[str, Any]:
    """``location`` replaces ``locations``, and the first of ``locations`` is the location."""
    given = body.get("locations") or ([body["location"]] if body.get("location") else [])
    found = [place(entry) for entry in given if entry.get("displayName")]
    return {"location": found[0] if found else dict(NOWHERE), "locations": found}


def place(entry: dict[str, Any]) -> dict[str, Any]:
    plain = {k: v for k, v in entry.items() if k != "@odata.type" and v is not None}
    return {"locationType": "default", "uniqueId": entry["displayName"], "uniqueIdType": "private", **plain}


def properties(event: Event, body: dict[str, Any]) -> list[dict[str, str]]:
    """Extended properties merge by id."""
    known = {entry["id"]: entry for entry in event.fields.get("singleValueExtendedProperties", ())}
    for entry in body["singleValueExtendedProperties"] or ():
        if not entry.get("id"):
            raise refusal("ErrorPropertyValidationFailure", "An extended property has no id.")
        known[entry["id"]] = {"id": entry["id"], "value": entry.get("value", "")}
    return list(known.values())


def meeting(event: Event) -> dict[str, Any]:
    room = f"19%3ameeting_{event.id[6:30]}%40thread.v2/0"
    url = (
        f"https://teams.microsoft.com/l/meetup-join/{room}?context=%7b%22Tid%22%3a%22contoso%22%7d&anon=true"
    )
    return {
        "isOnlineMeeting": True,
        "onlineMeetingProvider": "teamsForBusiness",
        "onlineMeeting": {"joinUrl": url},
    }

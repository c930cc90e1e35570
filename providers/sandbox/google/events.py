"""Reading events: ``events.list``, ``events.get``, ``events.instances``.

https://developers.google.com/workspace/calendar/api/v3/reference/events/list
"""

from __future__ import annotations

from typing import Any

from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.calls import Call
from providers.sandbox.exchange import Answer, Request
from providers.sandbox.google.calendars import json_answer, seen
from providers.sandbox.google.errors import refusal
from providers.sandbox.google.pages import kept_name, page
from providers.sandbox.google.resources import REMINDERS, event_resource
from providers.sandbox.google.times import known_zone, parsed
from providers.sandbox.series import expanded, instance_named, instances
from providers.sandbox.times import utc_text_ms
from providers.sandbox.world import new_name

DEFAULT_PAGE, MAX_PAGE = 250, 2500
# Parameters that exclude a sync token.
NOT_WITH_SYNC = (
    *("iCalUID", "orderBy", "privateExtendedProperty", "q", "sharedExtendedProperty"),
    *("timeMin", "timeMax", "updatedMin"),
)


def list_events(call: Call, calendar_id: str) -> Answer:
    """``events.list``"""
    calendar = seen(call, calendar_id)
    where = response_zone(call.request, calendar)
    syncs = call.world.syncs
    name = kept_name(call.request)
    if name:
        if (kept := syncs.kept(name)) is None:
            raise refusal("invalid", parameter="pageToken")
        found, version = kept
    else:
        name = new_name()
        found = changed(call, calendar) if call.request.one("syncToken") else selected(call, calendar)
        version = calendar.version
    items, token = page(call.request, found, DEFAULT_PAGE, MAX_PAGE, name)
    if token:
        syncs.keep(name, found, version)
    latest = max((event.updated for event in calendar.events.values()), default=0)
    document = {
        "kind": "calendar#events",
        "etag": '"p32k9e0p8ruvoo0o"',
        "summary": calendar.subject,
        "description": "",
        "updated": utc_text_ms(latest),
        "timeZone": where,
        "accessRole": calendar.access_role,
        "defaultReminders": REMINDERS if calendar.primary else [],
        "items": [event_resource(call.account, calendar, event, where) for event in items],
    }
    if token:
        return json_answer(document | {"nextPageToken": token})
    return json_answer(document | {"nextSyncToken": syncs.token("google", version)})


def response_zone(request: Request, calendar: Calendar) -> str:
    return known_zone(request.one("timeZone") or calendar.time_zone)


def selected(call: Call, calendar: Calendar) -> list[Event]:
    """The events that the parameters select, in order."""
    request = call.request
    start, end = window(request)
    singles = request.flag("singleEvents")
    order = request.one("orderBy")
    if order not in ("", "startTime", "updated"):
        raise refusal("invalidParameter", f"Invalid value '{order}'.", parameter="orderBy")
    if order == "startTime" and not singles:
        raise refusal(
            "badRequest",
            "The requested ordering is not available for the particular query.",
            parameter="orderBy",
        )
    events = expanded(calendar, start, end) if singles else list(calendar.events.values())
    found = [
        event
        for event in events
        if in_window(calendar, event, start, end) and shown(request, event) and wanted(request, event)
    ]
    if order:
        found.sort(key=lambda e: calendar.edges(e)[0] if order == "startTime" else e.updated)
    return found


def window(request: Request) -> tuple[int | None, int | None]:
    start, end = (
        parsed(request.one(name), name) if name in request.query else None for name in ("timeMin", "timeMax")
    )
    if start is not None and end is not None and start >= end:
        raise refusal("timeRangeEmpty", parameter="timeMax")
    return start, end


def in_window(calendar: Calendar, event: Event, start: int | None, end: int | None) -> bool:
    """``timeMin`` limits the end of an event and ``timeMax`` its start, both exclusive."""
    if event.rule:
        return any(in_window(calendar, one, start, end) for one in instances(event, start, end))
    begins, ends = calendar.edges(event)
    return (start is None or ends > start) and (end is None or begins < end)


def is_cancelled(event: Event) -> bool:
    return event.deleted or event.fields.get("status") == "cancelled"


def shown(request: Request, event: Event) -> bool:
    """Cancelled events are hidden, except cancelled instances of a series that is listed itself."""
    if not is_cancelled(event) or request.flag("showDeleted") or "updatedMin" in request.query:
        return True
    return event.series is not None and not request.flag("singleEvents")


def wanted(request: Request, event: Event) -> bool:
    """The filters on fields."""
    fields = event.fields
    text = request.one("q").lower()
    if text and not any(
        text in str(fields.get(n, "")).lower() for n in ("summary", "description", "location")
    ):
        return False
    if (uid := request.one("iCalUID")) and uid != f"{event.series or event.id}@google.com":
        return False
    kinds = request.query.get("eventTypes")
    if kinds and fields.get("eventType", "default") not in kinds:
        return False
    if "updatedMin" in request.query and event.updated < parsed(request.one("updatedMin"), "updatedMin"):
        return False
    return all(
        has_property(fields, sort, pair)
        for sort in ("private", "shared")
        for pair in request.query.get(f"{sort}ExtendedProperty", ())
    )


def has_property(fields: dict[str, Any], sort: str, pair: str) -> bool:
    name, _, value = pair.partition("=")
    properties = fields.get("extendedProperties", {}).get(sort, {})
    return bool(properties.get(name) == value)


def changed(call: Call, calendar: Calendar) -> list[Event]:
    """Events changed since a sync token, deleted ones included."""
    if clash := [name for name in NOT_WITH_SYNC if name in call.request.query]:
        raise refusal("invalid", f"Sync token cannot be used with {clash[0]}.", parameter=clash[0])
    known = call.world.syncs.version("google", call.request.one("syncToken"))
    if known is None:
        raise refusal("fullSyncRequired", parameter="syncToken")
    return [event for event in calendar.events.values() if event.version > known]


def find(calendar: Calendar, event_id: str) -> Event:
    """An event, a tombstone, or an instance of a series by its id."""
    if (event := calendar.events.get(event_id)) is not None:
        return event
    if (one := instance_named(calendar, event_id)) is not None:
        return one
    raise refusal("notFound")


def get_event(call: Call, calendar_id: str, event_id: str) -> Answer:
    """``events.get``"""
    calendar = seen(call, calendar_id)
    where = response_zone(call.request, calendar)
    return json_answer(event_resource(call.account, calendar, find(calendar, event_id), where))


def list_instances(call: Call, calendar_id: str, event_id: str) -> Answer:
    """``events.instances``"""
    calendar = seen(call, calendar_id)
    where = response_zone(call.request, calendar)
    master = find(calendar, event_id)
    start, end = window(call.request)
    found = [
        event
        for event in expanded(calendar, start, end)
        if event.series == master.id and in_window(calendar, event, start, end) and shown(call.request, event)
    ]
    items, token = page(call.request, found, DEFAULT_PAGE, MAX_PAGE)
    document = {
        "kind": "calendar#events",
        "etag": '"p32k9e0p8ruvoo0o"',
        "summary": calendar.subject,
        "description": "",
        "updated": utc_text_ms(master.updated),
        "timeZone": where,
        "accessRole": calendar.access_role,
        "defaultReminders": REMINDERS if calendar.primary else [],
        "items": [event_resource(call.account, calendar, event, where) for event in items],
    }
    return json_answer(
        document
        | (
            {"nextPageToken": token}
            if token
            else {"nextSyncToken": call.world.syncs.token("google", calendar.version)}
        )
    )

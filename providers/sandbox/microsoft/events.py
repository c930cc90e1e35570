"""Reading events: masters and single events, by calendar or by id.

https://learn.microsoft.com/graph/api/calendar-list-events
"""

from __future__ import annotations

import re
from typing import Any

from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.calls import Call
from providers.sandbox.exchange import Answer
from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.microsoft.mailbox import seen
from providers.sandbox.microsoft.pages import CONTEXT, chosen, collection, page
from providers.sandbox.microsoft.resources import EXTENDED, event_resource, folded
from providers.sandbox.microsoft.view import as_preferred, ordered, rendering_of, window
from providers.sandbox.series import expanded, instance_named

# $filter=singleValueExtendedProperties/Any(ep: ep/id eq '…' and ep/value eq '…')
BY_PROPERTY = re.compile(
    rf"{EXTENDED}/any\((\w+):\s*\1/id eq '([^']*)' and \1/value eq '((?:[^']|'')*)'\)", re.IGNORECASE
)


def list_events(call: Call, calendar_id: str = "") -> Answer:
    """``GET …/events``: series are not expanded."""
    calendar = seen(call, calendar_id)
    found = [e for e in calendar.events.values() if not e.deleted and e.series is None]
    found = filtered(found, call.request.one("$filter"))
    if call.request.one("$orderby"):
        ordered(found, call.request)
    events, link = page(call.request, found)
    items = [resource(call, calendar, event) for event in events]
    return as_preferred(call.request, collection(call.request, "me/events", items, link))


def filtered(events: list[Event], text: str) -> list[Event]:
    """``$filter`` by the value of an extended property: names match exactly, values in any case."""
    if not text:
        return events
    found = BY_PROPERTY.fullmatch(text.strip())
    if found is None:
        raise refusal("ErrorInvalidRequest", f"The filter is not supported: {text}")
    name, value = found[2], found[3].replace("''", "'").lower()
    return [event for event in events if str(properties(event).get(folded(name), "")).lower() == value]


def properties(event: Event) -> dict[str, str]:
    """The extended properties of an event by id."""
    return {folded(entry["id"]): entry["value"] for entry in event.fields.get(EXTENDED, ())}


def find(call: Call, event_id: str, calendar_id: str = "") -> tuple[Calendar, Event]:
    """An event and its calendar; Graph finds ids in the whole mailbox, whatever calendar the path names.

    https://github.com/microsoftgraph/microsoft-graph-docs/issues/391
    """
    seen(call, calendar_id)
    for calendar in call.account.calendars.values():
        event = calendar.events.get(event_id) or instance_named(calendar, event_id)
        if event is not None and not event.deleted:
            return calendar, event
    raise refusal("ErrorItemNotFound" if event_id.startswith("AAMk") else "ErrorInvalidIdMalformed")


def get_event(call: Call, *ids: str) -> Answer:
    """``GET …/events/{id}``"""
    calendar, event = find(call, ids[-1], *ids[:-1])
    return event_answer(call, calendar, event)


def list_instances(call: Call, *ids: str) -> Answer:
    """``GET …/events/{id}/instances``"""
    calendar, master = find(call, ids[-1], *ids[:-1])
    start, end = window(call.request)
    found = [
        event
        for event in expanded(calendar, start, end)
        if event.series == master.id and not event.deleted and event.start < end and event.end > start
    ]
    ordered(found, call.request)
    events, link = page(call.request, found)
    items = [resource(call, calendar, event) for event in events]
    return as_preferred(call.request, collection(call.request, "me/events/instances", items, link))


def event_answer(call: Call, calendar: Calendar, event: Event, status: int = 200) -> Answer:
    """One event as an answer."""
    document = {"@odata.context": CONTEXT + "me/events/$entity", **resource(call, calendar, event)}
    return as_preferred(call.request, Answer(status, document=document))


def resource(call: Call, calendar: Calendar, event: Event) -> dict[str, Any]:
    """An event with the requested properties."""
    return event_resource(call.account, calendar, event, rendering_of(call.request), chosen(call.request))

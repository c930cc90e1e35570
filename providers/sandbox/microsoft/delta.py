"""Changes in a window: ``calendarView/delta``.

https://learn.microsoft.com/graph/api/event-delta
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.calls import Call
from providers.sandbox.exchange import Answer
from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.microsoft.mailbox import seen
from providers.sandbox.microsoft.pages import CONTEXT
from providers.sandbox.microsoft.resources import event_resource
from providers.sandbox.microsoft.view import as_preferred, occurrences, rendering_of, window
from providers.sandbox.world import new_name

# Parameters that a delta query of a calendarView does not support.
NOT_SUPPORTED = ("$expand", "$filter", "$orderby", "$search", "$select")
PAGE_SIZE = re.compile(r"odata\.maxpagesize=(\d+)", re.IGNORECASE)
DEFAULT_PAGE = 10
# The properties of an occurrence: the others are those of its series.
OF_OCCURRENCE = ("@odata.etag", "id", "seriesMasterId", "type", "start", "end")

# The window, and the sync token or the name of an unfinished list with an offset.
Token = tuple[int, int, str]


def list_delta(call: Call, calendar_id: str = "") -> Answer:
    """``GET …/calendarView/delta``: the window is that of the first call, and part of the tokens."""
    calendar = seen(call, calendar_id)
    request, syncs = call.request, call.world.syncs
    if names := [name for name in NOT_SUPPORTED if name in request.query]:
        raise refusal("ErrorInvalidRequest", f"The parameter {names[0]} is not supported by change tracking.")
    offset, name = 0, new_name()
    if text := request.one("$skiptoken"):
        start, end, place = parsed(text)
        name, _, number = place.partition(".")
        kept = syncs.kept(name)
        if kept is None or not number.isdecimal():
            raise refusal("syncStateNotFound")
        (found, version), offset = kept, int(number)
    else:
        known = None
        if text := request.one("$deltatoken"):
            start, end, place = parsed(text)
            if (known := syncs.version("microsoft", place)) is None:
                raise refusal("syncStateNotFound")
        else:
            start, end = window(request)
        found, version = list(records(call, calendar, start, end, known)), calendar.version
    after = offset + page_size(call)
    document: dict[str, Any] = {"@odata.context": CONTEXT + "Collection(event)", "value": found[offset:after]}
    if after < len(found):
        syncs.keep(name, found, version)
        document["@odata.nextLink"] = link(call, "$skiptoken", (start, end, f"{name}.{after}"))
    else:
        token = syncs.token("microsoft", version)
        document["@odata.deltaLink"] = link(call, "$deltatoken", (start, end, token))
    return as_preferred(request, Answer(200, document=document))


def records(
    call: Call, calendar: Calendar, start: int, end: int, known: int | None
) -> Iterator[dict[str, Any]]:
    """All events of the window, or the events that have changed since the version ``known``.

    A series is a master and its occurrences. An event that has left the window counts as removed.
    """
    shown = occurrences(calendar, start, end)
    there = {event.id for event in shown} | {event.series for event in shown}
    for event in list(calendar.events.values()):
        if known is not None and event.version <= known:
            continue
        if event.id in there:
            yield resource(call, calendar, event)
        elif known is not None:
            yield removed(event.id)
        for each in shown if event.rule else ():
            if each.series == event.id and each.id not in calendar.events:
                whole = resource(call, calendar, each)
                yield {name: whole[name] for name in OF_OCCURRENCE}
    for event_id, version in calendar.contents.dropped.items():
        if known is not None and version > known:
            yield removed(event_id)


def removed(event_id: str) -> dict[str, Any]:
    return {"@odata.type": "#microsoft.graph.event", "id": event_id, "@removed": {"reason": "deleted"}}


def resource(call: Call, calendar: Calendar, event: Event) -> dict[str, Any]:
    whole = event_resource(call.account, calendar, event, rendering_of(call.request))
    return {"@odata.type": "#microsoft.graph.event", **whole}


def page_size(call: Call) -> int:
    found = PAGE_SIZE.search(call.request.headers.get("prefer", ""))
    return max(1, int(found[1])) if found else DEFAULT_PAGE


def link(call: Call, name: str, token: Token) -> str:
    """An absolute link with no other parameter than the token."""
    path = call.request.target.partition("?")[0]
    return f"{call.request.origin}{path}?{urlencode({name: '_'.join(map(str, token))})}"


def parsed(text: str) -> Token:
    start, _, rest = text.partition("_")
    end, _, place = rest.partition("_")
    if not (start.isdecimal() and end.isdecimal()):
        raise refusal("BadRequest", "Badly formed token.")
    return int(start), int(end), place

"""Occurrences in a window: ``calendarView``.

https://learn.microsoft.com/graph/api/calendar-list-calendarview
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.calls import Call
from providers.sandbox.exchange import Answer, Request
from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.microsoft.mailbox import seen
from providers.sandbox.microsoft.pages import chosen, collection, page
from providers.sandbox.microsoft.resources import EXTENDED, Rendering, event_resource
from providers.sandbox.microsoft.times import preferred_zone, prefers_text, query_instant
from providers.sandbox.series import expanded
from providers.sandbox.times import DAY

LONGEST = 1825 * DAY
# The parts of $expand: names with their options in brackets.
EXPANSIONS = re.compile(r"[^,()]+(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?")
CALENDAR = re.compile(r"calendar(?:\(\$select=([\w,]+)\))?", re.IGNORECASE)
ONE_ID = "id eq '[^']*'"
BY_ID = re.compile(r"id eq '([^']*)'")
# $expand=singleValueExtendedProperties($filter=id eq 'String {…} Name metaId' or id eq '…')
EXPANDED = re.compile(rf"{EXTENDED}\(\$filter=({ONE_ID}(?: or {ONE_ID})*)\)", re.IGNORECASE)


def list_view(call: Call, calendar_id: str = "") -> Answer:
    """``GET …/calendarView``"""
    calendar = seen(call, calendar_id)
    start, end = window(call.request)
    found = occurrences(calendar, start, end)
    ordered(found, call.request)
    events, link = page(call.request, found)
    answer = collection(call.request, "me/calendarView", rendered(call, calendar, events), link)
    return as_preferred(call.request, answer)


def window(request: Request) -> tuple[int, int]:
    start, end = query_instant(request, "startDateTime"), query_instant(request, "endDateTime")
    if end < start:
        raise refusal(
            "ErrorInvalidParameter",
            "The value of parameter 'EndDateTime' must be greater than 'StartDateTime'.",
        )
    if end - start > LONGEST:
        raise refusal(
            "ErrorInvalidRequest",
            "Your request can't be completed. The range between the start and end dates is greater than the "
            "allowed range. Maximum number of days: 1825",
        )
    return start, end


def occurrences(calendar: Calendar, start: int, end: int) -> list[Event]:
    """The events that overlap a window, by start; all-day events count from midnights in UTC."""
    known: list[Event] | None = calendar.derived.get("by start")
    if known is None:
        events = calendar.events.values()
        if any(event.rule for event in events):
            known = sorted(expanded(calendar, start, end), key=lambda event: event.start)
        else:
            known = sorted(events, key=lambda event: event.start)
            calendar.derived["by start"] = known
    return [
        e for e in known if e.start < end and (e.end > start or e.start == e.end >= start) and not e.deleted
    ]


def ordered(events: list[Event], request: Request) -> None:
    """Sort by the one supported property."""
    field, _, direction = request.one("$orderby", "start/dateTime").lower().partition(" ")
    if field not in ("start/datetime", "end/datetime", "subject"):
        raise refusal("ErrorInvalidRequest", f"The property '{field}' does not support sorting.")
    keys = {"start/datetime": lambda e: e.start, "end/datetime": lambda e: e.end}
    events.sort(key=keys.get(field, lambda e: e.fields.get("subject", "")), reverse=direction == "desc")


def rendering_of(request: Request) -> Rendering:
    """How events are returned: from the Prefer header and ``$expand``."""
    spelt, where = preferred_zone(request) or ("UTC", "UTC")
    expansions = [each.strip() for each in EXPANSIONS.findall(request.one("$expand"))]
    extended, calendar = expanded_properties(expansions), expanded_calendar(expansions)
    return Rendering(spelt, where, prefers_text(request), extended, calendar)


def expanded_properties(expansions: Iterable[str]) -> tuple[str, ...]:
    """The ids of the extended properties to include; none without a filter that names them."""
    found = (EXPANDED.fullmatch(each) for each in expansions)
    return tuple(name for each in found if each for name in BY_ID.findall(each[1]))


def expanded_calendar(expansions: Iterable[str]) -> frozenset[str] | None:
    """The properties of the calendar to include, empty for all; None without it."""
    found = next((match for each in expansions if (match := CALENDAR.fullmatch(each))), None)
    return None if found is None else frozenset(filter(None, (found[1] or "").lower().split(",")))


def as_preferred(request: Request, answer: Answer) -> Answer:
    """Report which preferences were applied."""
    applied = []
    if (preferred := preferred_zone(request)) is not None:
        applied.append(f'outlook.timezone="{preferred[0]}"')
    if prefers_text(request):
        applied.append('outlook.body-content-type="text"')
    if applied:
        answer.headers["Preference-Applied"] = ", ".join(applied)
    return answer


def rendered(call: Call, calendar: Calendar, events: Iterable[Event]) -> list[dict[str, Any]]:
    """Events as JSON, cached until the calendar changes, because benchmarks repeat their requests."""
    names, how = chosen(call.request), rendering_of(call.request)
    kept = calendar.derived.setdefault(("json", names, how), {})
    found = []
    for event in events:
        if event.id not in kept:
            kept[event.id] = event_resource(call.account, calendar, event, how, names)
        found.append(kept[event.id])
    return found

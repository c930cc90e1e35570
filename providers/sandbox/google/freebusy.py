"""Busy periods: ``freebusy.query``.

https://developers.google.com/workspace/calendar/api/v3/reference/freebusy/query
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import orjson

from providers.sandbox.accounts import Account
from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.calls import Call, place
from providers.sandbox.exchange import Answer, Request
from providers.sandbox.google.calendars import json_answer
from providers.sandbox.google.errors import refusal
from providers.sandbox.google.times import known_zone, parsed, written
from providers.sandbox.json_validation import shape_error
from providers.sandbox.series import expanded
from providers.sandbox.times import DAY, utc_text_ms

OPERATION = "google.freebusy.query"
MAX_CALENDARS = 50
QUESTION = {
    "timeMin": str,
    "timeMax": str,
    "timeZone": str,
    "items": [{"id": str}],
    "calendarExpansionMax": int,
    "groupExpansionMax": int,
}
# Undocumented: Google answers timeRangeTooLong for somewhat over three months.
LONGEST = 92 * DAY

Busy = tuple[list[int], list[int]]


def query(call: Call) -> Answer:
    """``freebusy.query``: an unreadable calendar is an error inside the 200."""
    requested = question(call)
    start, end = window(requested)
    where = known_zone(requested.get("timeZone") or "UTC")
    ids = calendar_ids(requested)
    too_many = len(ids) > min(requested.get("calendarExpansionMax") or MAX_CALENDARS, MAX_CALENDARS)
    answers: dict[str, Any] = {}
    for name in ids:
        found = "tooManyCalendarsRequested" if too_many else readable(call, name)
        if isinstance(found, str):
            answers[name] = {"errors": [{"domain": "global", "reason": found}], "busy": []}
        else:
            answers[name] = {"busy": periods(*found, start, end, where)}
    return json_answer(
        {
            "kind": "calendar#freeBusy",
            "timeMin": utc_text_ms(start),
            "timeMax": utc_text_ms(end),
            "calendars": answers,
        }
    )


def question(call: Call) -> dict[str, Any]:
    try:
        requested = call.json()
    except ValueError as error:
        raise refusal("parseError") from error
    if not isinstance(requested, dict):
        raise refusal("parseError")
    if problem := shape_error(requested, QUESTION):
        raise refusal("badRequest", f"Invalid JSON payload received: {problem}")
    return requested


def calendar_ids(requested: dict[str, Any]) -> list[str]:
    """The requested ids in order, without duplicates."""
    return list(dict.fromkeys(item.get("id") or "" for item in requested.get("items") or ()))


def calendars_asked_for(request: Request) -> list[str]:
    """The same before the call is validated; empty when the body is unreadable."""
    try:
        return [str(item["id"]) for item in orjson.loads(request.body)["items"]]
    except (ValueError, KeyError, TypeError):
        return []


def window(requested: dict[str, Any]) -> tuple[int, int]:
    for name in ("timeMin", "timeMax"):
        if not requested.get(name):
            raise refusal("required", f"Missing {name} parameter.")
    start, end = parsed(requested["timeMin"]), parsed(requested["timeMax"])
    if start >= end:
        raise refusal("timeRangeEmpty", parameter="timeMax")
    if end - start > LONGEST:
        raise refusal("timeRangeTooLong", parameter="timeMax")
    return start, end


def readable(call: Call, name: str) -> tuple[Account, Calendar] | str:
    """A calendar and the account it belongs to, or Google's reason why it cannot be read."""
    if call.world.faults:
        here = place(call.world, call.account, "google", OPERATION, name, inside=True)
        if (fault := call.world.faults.strike_calendar(here)) is not None:
            return fault.reason or ("notFound" if fault.status in (403, 404) else "internalError")
    account = call.account
    calendar = account.calendar(name)
    if calendar is None and (colleague := sharing_colleague(call, name)) is not None:
        account, calendar = colleague, colleague.primary
    if calendar is None:
        return "notFound"
    return calendar.error_reason or (account, calendar)


def sharing_colleague(call: Call, email: str) -> Account | None:
    """The account of an address, if the caller's domain shares the free/busy of its members."""
    domain = call.world.domain_of(call.account)
    colleague = call.world.account("google", email)
    if domain is None or colleague is None or not domain.has(colleague):
        return None
    return colleague if domain.shares(colleague) else None


def periods(account: Account, calendar: Calendar, start: int, end: int, where: str) -> list[dict[str, str]]:
    """The busy periods of a calendar, merged and clipped to the window."""
    starts, ends = busy(account, calendar, start, end)
    first, last = bisect_right(ends, start), bisect_left(starts, end)
    return [
        {"start": written(max(starts[i], start), where), "end": written(min(ends[i], end), where)}
        for i in range(first, last)
    ]


def busy(account: Account, calendar: Calendar, start: int, end: int) -> Busy:
    """Merged busy periods; cached for a calendar without series."""
    known: Busy | None = calendar.derived.get("busy")
    if known is not None:
        return known
    if any(event.rule for event in calendar.events.values()):
        return merged(account, calendar, expanded(calendar, start, end))
    calendar.derived["busy"] = merged(account, calendar, list(calendar.events.values()))
    found: Busy = calendar.derived["busy"]
    return found


def merged(account: Account, calendar: Calendar, events: list[Event]) -> Busy:
    # In a shared calendar, the owner's response counts.
    whose = calendar.owner or account.email
    starts: list[int] = []
    ends: list[int] = []
    for start, end in sorted(calendar.edges(event) for event in events if blocks(whose, event)):
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        elif start < end:
            starts.append(start)
            ends.append(end)
    return starts, ends


def blocks(email: str, event: Event) -> bool:
    """Whether an event makes the time of ``email`` busy: opaque, neither cancelled nor declined.

    https://developers.google.com/workspace/calendar/api/v3/reference/events#transparency
    """
    fields = event.fields
    if event.deleted or fields.get("status") == "cancelled" or fields.get("transparency") == "transparent":
        return False
    return not any(
        guest.get("responseStatus") == "declined"
        and (guest.get("self") or str(guest.get("email", "")).lower() == email.lower())
        for guest in fields.get("attendees", ())
    )

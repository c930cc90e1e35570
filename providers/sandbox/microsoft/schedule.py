"""Free/busy of mailboxes: ``getSchedule``.

https://learn.microsoft.com/graph/api/calendar-getschedule
"""

from __future__ import annotations

from typing import Any

from providers.sandbox.accounts import Account
from providers.sandbox.calendars import Event
from providers.sandbox.calls import Call
from providers.sandbox.exchange import Answer
from providers.sandbox.microsoft import applications
from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.microsoft.mailbox import seen, working_hours
from providers.sandbox.microsoft.pages import CONTEXT
from providers.sandbox.microsoft.resources import Rendering
from providers.sandbox.microsoft.times import body_instant, clock
from providers.sandbox.microsoft.view import as_preferred, rendering_of
from providers.sandbox.series import expanded
from providers.sandbox.times import DAY, MINUTE

MAX_SCHEDULES = 20
MAX_DAYS = 62
# The digit of a slot is that of the busiest item in it.
DIGITS = {"free": 0, "tentative": 1, "busy": 2, "oof": 3, "workingElsewhere": 4}
BUSIEST = ("oof", "busy", "tentative", "workingElsewhere", "free")


def get_schedule(call: Call, *_calendar_id: str) -> Answer:
    """``POST …/getSchedule``: the answer is per mailbox, whatever calendar the path names."""
    seen(call)
    body = posted(call)
    addresses = body.get("schedules")
    if not isinstance(addresses, list) or not addresses:
        raise refusal("ErrorInvalidParameter", "Schedules has no addresses.")
    if len(addresses) > MAX_SCHEDULES:
        raise refusal("ErrorInvalidRequest", f"The number of schedules exceeds {MAX_SCHEDULES}.")
    start, end = window(body)
    interval = step(body, start, end)
    style = rendering_of(call.request)
    document = {
        "@odata.context": CONTEXT + "Collection(microsoft.graph.scheduleInformation)",
        "value": [schedule(call, str(address), (start, end, interval), style) for address in addresses],
    }
    return as_preferred(call.request, Answer(200, document=document))


def posted(call: Call) -> dict[str, Any]:
    """The body in lower camel case: the documentation writes ``schedules``, the SDK ``Schedules``."""
    try:
        body = call.json()
    except ValueError as error:
        raise refusal("BadRequest", "Unable to read JSON request payload.") from error
    if not isinstance(body, dict):
        raise refusal("BadRequest", "Unable to read JSON request payload.")
    return {name[:1].lower() + name[1:]: value for name, value in body.items()}


def window(body: dict[str, Any]) -> tuple[int, int]:
    start, _ = body_instant(body.get("startTime"), "StartTime")
    end, _ = body_instant(body.get("endTime"), "EndTime")
    if start >= end:
        raise refusal("ErrorInvalidTimeInterval")
    days = -(-(end - start) // DAY)
    if days > MAX_DAYS:
        raise refusal(
            "ErrorTimeIntervalTooBig",
            "The requested time duration specified for FreeBusyViewOptions.TimeWindow is too long. "
            f"The allowed limit = {MAX_DAYS} days; the actual limit = {days} days.",
        )
    return start, end


def step(body: dict[str, Any], start: int, end: int) -> int:
    minutes = body.get("availabilityViewInterval") or 30
    if not isinstance(minutes, int) or not 5 <= minutes <= 1440 or minutes * MINUTE > end - start:
        raise refusal("ErrorInvalidParameter", "AvailabilityViewInterval is out of range.")
    return minutes * MINUTE


def schedule(call: Call, address: str, window: tuple[int, int, int], style: Rendering) -> dict[str, Any]:
    """One mailbox, or why it cannot be read."""
    account = call.world.account("microsoft", address)
    domain = call.access.grant.domain
    if domain is not None and account is not None and not applications.reads(domain, account):
        account = None
    if account is None or account.primary is None:
        message = f"Unable to resolve e-mail address <{address}> to an Active Directory object."
        return {
            "scheduleId": address,
            "availabilityView": "",
            "scheduleItems": [],
            "error": {"message": message, "responseCode": "5009"},
        }
    start, end, interval = window
    items = touching(account, start, end)
    return {
        "scheduleId": address,
        "availabilityView": availability(items, start, end, interval),
        "scheduleItems": [item(event, edges, style, own=account is call.account) for event, edges in items],
        "workingHours": working_hours(account),
    }


def touching(account: Account, start: int, end: int) -> list[tuple[Event, tuple[int, int]]]:
    """The events of the default calendar in a window, with the instants they span."""
    assert account.primary is not None
    # All-day events span midnights of the mailbox's zone here, which is that of its calendars.
    found = [(event, account.primary.edges(event)) for event in expanded(account.primary, start, end)]
    inside = [(e, (s, f)) for e, (s, f) in found if s < end and f > start and not is_off(e)]
    return sorted(inside, key=lambda pair: pair[1])


def is_off(event: Event) -> bool:
    answer = event.fields.get("responseStatus", {}).get("response")
    return event.deleted or bool(event.fields.get("isCancelled")) or answer == "declined"


def item(event: Event, edges: tuple[int, int], style: Rendering, *, own: bool) -> dict[str, Any]:
    """An item; subject and location only for the mailbox's own account."""
    shown = {
        "status": event.fields.get("showAs", "busy"),
        "start": {"dateTime": clock(edges[0], style.where), "timeZone": style.spelt},
        "end": {"dateTime": clock(edges[1], style.where), "timeZone": style.spelt},
    }
    if not own:
        return shown
    place = event.fields.get("location", {}).get("displayName", "")
    return {"isPrivate": False, "subject": event.fields.get("subject", ""), "location": place, **shown}


def availability(items: list[tuple[Event, tuple[int, int]]], start: int, end: int, interval: int) -> str:
    """One digit for each slot of the window."""
    digits = []
    for slot in range(start, end, interval):
        shown = {
            event.fields.get("showAs", "busy") for event, (s, f) in items if s < slot + interval and f > slot
        }
        digits.append(str(next((DIGITS[word] for word in BUSIEST if word in shown), 0)))
    return "".join(digits)

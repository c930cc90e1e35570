"""Many accounts at once, with realistic meetings: ``POST /sandbox/accounts/bulk``."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from providers.sandbox.accounts import Account
from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.seeds import (
    COMMON,
    Undescribed,
    event_id,
    known_zone,
    new_calendar,
    provider,
    read,
    text,
)
from providers.sandbox.times import DAY, HOUR, MINUTE, SECOND, floating, instant, zone

SUBJECTS = (
    "Stand-up",
    "Design review",
    "One to one",
    "Planning",
    "Interview",
    "Customer call",
    "Retrospective",
)
# A working day, in which meetings are placed on the quarter hour.
OPENS, CLOSES, QUARTER = 8 * HOUR, 18 * HOUR, 15 * MINUTE
LENGTHS = (30 * MINUTE, 30 * MINUTE, 45 * MINUTE, 60 * MINUTE, 60 * MINUTE, 90 * MINUTE)


BULK = {
    **COMMON,
    "emailPattern": str,
    "start": str,
    **dict.fromkeys(("count", "days", "eventsPerAccount"), int),
}


def accounts(spec: Mapping[str, Any]) -> list[Account]:
    """Many accounts with meetings on working days; the same seed gives the same result."""
    read(spec, BULK)
    count, days, each = (spec.get(name) or 0 for name in ("count", "days", "eventsPerAccount"))
    try:
        start = floating(date.fromisoformat(text(spec, "start")[:10]))
    except ValueError as error:
        raise Undescribed(f"start is not a date: {spec['start']!r}") from error
    pattern = text(spec, "emailPattern").replace("%d", "{n}")
    if count > 1 and "{n}" not in pattern:
        raise Undescribed("emailPattern needs {n}")
    return [
        bulk_account(spec, pattern.replace("{n}", str(number)), number, (start, days, each))
        for number in range(count)
    ]


def bulk_account(spec: Mapping[str, Any], email: str, number: int, shape: tuple[int, int, int]) -> Account:
    made = Account(provider(spec), email, known_zone(spec.get("timeZone") or "UTC"))
    calendar = new_calendar(made, {"primary": True}, 0)
    made.calendars[calendar.id] = calendar
    seed = f"{spec.get('seed', 0)}:{number}"
    calendar.plan = lambda: meetings(made, calendar, random.Random(seed), shape)
    return made


def meetings(
    owner: Account, calendar: Calendar, dice: random.Random, shape: tuple[int, int, int]
) -> list[Event]:
    """Meetings on the quarter hours of the working days from ``start``, spread evenly over them."""
    start, days, each = shape
    working = working_days(start, days)
    where = calendar.time_zone
    now = int(time.time() * SECOND)
    made = []
    for number in range(each):
        length = dice.choice(LENGTHS)
        day = working[number % len(working)]
        begins = on_the_wall(
            day + OPENS + QUARTER * dice.randrange((CLOSES - OPENS - length) // QUARTER + 1), where
        )
        subject = dice.choice(SUBJECTS)
        fields = {"summary": subject} if owner.provider == "google" else {"subject": subject}
        made.append(
            Event(
                id=event_id(owner, calendar, f"bulk{number}"),
                start=begins,
                end=begins + length,
                start_zone=where,
                end_zone=where,
                all_day=False,
                fields=fields,
                created=now,
                version=number + 1,
                updated=now,
            )
        )
    return made


def working_days(start: int, days: int) -> list[int]:
    """Floating midnights of the working days among ``days`` from ``start``; of all if there are none."""
    span = range(start, start + max(days, 1) * DAY, DAY)
    # The first of January 1970 was a Thursday.
    return [day for day in span if (day // DAY + 3) % 7 < 5] or list(span)


def on_the_wall(floating_ms: int, where: str) -> int:
    """The instant at which a clock in a zone shows a floating time."""
    if where == "UTC":
        return floating_ms
    shown = datetime.fromtimestamp(floating_ms / SECOND, UTC)
    return instant(shown.replace(tzinfo=zone(where)))

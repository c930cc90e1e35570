"""Accounts from their description: ``POST /sandbox/accounts``, and many at once."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from providers.sandbox import google, microsoft
from providers.sandbox.accounts import Account, Provider
from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.consent import encoded
from providers.sandbox.times import DAY, HOUR, MINUTE, SECOND, floating, instant, zone
from providers.sandbox.world import World

SUBJECTS = (
    "Stand-up",
    "Design review",
    "One to one",
    "Planning",
    "Interview",
    "Customer call",
    "Retrospective",
)
SHOW_AS = ("free", "tentative", "busy", "oof", "workingElsewhere")
# A working day, in which meetings are placed on the quarter hour.
OPENS, CLOSES, QUARTER = 8 * HOUR, 18 * HOUR, 15 * MINUTE
LENGTHS = (30 * MINUTE, 30 * MINUTE, 45 * MINUTE, 60 * MINUTE, 60 * MINUTE, 90 * MINUTE)


class Undescribed(Exception):
    """The description of an account cannot be read; the message names the field."""


def account(world: World, spec: Mapping[str, Any]) -> Account:
    """Make an account with its calendars and events.

    :raise Undescribed: if the description lacks something or contradicts itself
    """
    made = Account(provider(spec), text(spec, "email"), known_zone(spec.get("timeZone") or "UTC"))
    calendars = spec.get("calendars")
    for number, entry in enumerate([{"subject": "", "primary": True}] if calendars is None else calendars):
        calendar = new_calendar(made, entry, number)
        made.calendars[calendar.id] = calendar
    for entry in spec.get("events") or ():
        calendar_of(made, entry).put(new_event(world, made, calendar_of(made, entry), entry))
    return made


def provider(spec: Mapping[str, Any]) -> Provider:
    match spec.get("provider"):
        case "google":
            return "google"
        case "microsoft":
            return "microsoft"
    raise Undescribed("provider is google or microsoft")


def text(spec: Mapping[str, Any], name: str) -> str:
    value = spec.get(name)
    if not isinstance(value, str) or not value:
        raise Undescribed(f"{name} is missing")
    return value


def known_zone(name: str) -> str:
    iana = microsoft.iana_zone(name)
    if iana is None:
        raise Undescribed(f"no time zone is called {name!r}")
    return iana


def scopes(of: Provider, scope: str | Iterable[str] | None) -> tuple[str, ...]:
    """The scopes of a description: a list, or a string with spaces; without any, the full set."""
    if scope is None:
        return google.FULL_SCOPE if of == "google" else microsoft.FULL_SCOPE
    words = scope.split() if isinstance(scope, str) else list(scope)
    return tuple(google.full_name(word) for word in words) if of == "google" else tuple(words)


def new_calendar(owner: Account, entry: Mapping[str, Any], number: int) -> Calendar:
    primary = bool(entry.get("primary"))
    subject = entry.get("subject") or (default_subject(owner) if primary else f"Calendar {number + 1}")
    return Calendar(
        id=entry.get("id") or calendar_id(owner, primary, number),
        subject=subject,
        time_zone=known_zone(entry.get("timeZone") or owner.time_zone),
        primary=primary,
        access_role=entry.get("accessRole") or "owner",
        error_reason=entry.get("errorReason"),
    )


def default_subject(owner: Account) -> str:
    return owner.email if owner.provider == "google" else "Calendar"


def calendar_id(owner: Account, primary: bool, number: int) -> str:
    """An id as the provider would give, the same each time; a Google primary's is the address."""
    digest = hashlib.sha256(f"{owner.provider}:{owner.email}:{number}".encode()).digest()
    if owner.provider == "microsoft":
        return f"AAMkAG{encoded(digest)}AAA="
    return owner.email if primary else f"c_{digest.hex()}@group.calendar.google.com"


def calendar_of(owner: Account, entry: Mapping[str, Any]) -> Calendar:
    name = entry.get("calendarId") or "primary"
    calendar = owner.calendar(name)
    if calendar is None:
        raise Undescribed(f"events: no calendar {name!r}")
    return calendar


def new_event(world: World, owner: Account, calendar: Calendar, entry: Mapping[str, Any]) -> Event:
    """An event from the words of the control call."""
    if (entry.get("showAs") or "busy") not in SHOW_AS:
        raise Undescribed(f"events: showAs is one of {', '.join(SHOW_AS)}")
    all_day = bool(entry.get("allDay"))
    zone_name = calendar.time_zone if owner.provider == "google" else owner.time_zone
    start, end = (edge(entry, name, all_day, zone_name) for name in ("start", "end"))
    rule = entry.get("recurrence") or ()
    spell = google.fields_of if owner.provider == "google" else microsoft.fields_of
    version = next(world.versions)
    now = int(time.time() * SECOND)
    return Event(
        id=event_id(owner, calendar, entry.get("id") or f"{version}"),
        start=start,
        end=end,
        start_zone=zone_name,
        end_zone=zone_name,
        all_day=all_day,
        fields=spell(owner, entry),
        created=now,
        version=version,
        updated=now,
        rule=(rule,) if isinstance(rule, str) else tuple(rule),
    )


def edge(entry: Mapping[str, Any], name: str, all_day: bool, zone_name: str) -> int:
    try:
        if all_day:
            return floating(date.fromisoformat(text(entry, name)[:10]))
        moment = datetime.fromisoformat(text(entry, name))
    except ValueError as error:
        raise Undescribed(f"events: {name} is not a time: {entry.get(name)!r}") from error
    return instant(moment if moment.tzinfo else moment.replace(tzinfo=zone(zone_name)))


def event_id(owner: Account, calendar: Calendar, mark: str) -> str:
    """An id as the provider would give; the same owner, calendar and mark give the same."""
    digest = hashlib.sha256(f"{owner.email}:{calendar.id}:{mark}".encode()).digest()
    if owner.provider == "microsoft":
        return f"AAMkAG{encoded(digest)}AAAA="
    # 26 characters of base32hex, as Google makes them: hexadecimal digits are among these.
    return digest.hex()[:26]


def in_bulk(world: World, spec: Mapping[str, Any]) -> list[Account]:
    """Many accounts with the meetings of working days; the same seed gives the same."""
    try:
        count, days, each = (int(spec.get(name, 0)) for name in ("count", "days", "eventsPerAccount"))
        start = floating(date.fromisoformat(text(spec, "start")[:10]))
    except ValueError as error:
        raise Undescribed("count, days and eventsPerAccount are numbers, start is a date") from error
    pattern = text(spec, "emailPattern").replace("%d", "{n}")
    if count > 1 and "{n}" not in pattern:
        raise Undescribed("emailPattern needs {n}")
    return [
        bulk_account(world, spec, pattern.replace("{n}", str(number)), number, (start, days, each))
        for number in range(count)
    ]


def bulk_account(
    world: World, spec: Mapping[str, Any], email: str, number: int, shape: tuple[int, int, int]
) -> Account:
    made = Account(provider(spec), email, known_zone(spec.get("timeZone") or "UTC"))
    calendar = new_calendar(made, {"primary": True}, 0)
    made.calendars[calendar.id] = calendar
    seed = f"{spec.get('seed', 0)}:{number}"
    calendar.plan = lambda: meetings(world, made, calendar, random.Random(seed), shape)
    return made


def meetings(
    world: World, owner: Account, calendar: Calendar, dice: random.Random, shape: tuple[int, int, int]
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

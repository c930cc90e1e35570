"""Creates accounts from descriptions: ``POST /sandbox/accounts``, and bulk accounts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from providers.sandbox.accounts import Account, Provider
from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.consent import encoded
from providers.sandbox.google import resources as google
from providers.sandbox.google import scopes as google_scopes
from providers.sandbox.json_validation import Shape, shape_error
from providers.sandbox.microsoft import resources as microsoft
from providers.sandbox.microsoft import scopes as microsoft_scopes
from providers.sandbox.series import is_readable
from providers.sandbox.times import SECOND, floating, instant, zone
from providers.sandbox.world import World
from scheduling.zones import iana_zone

SHOW_AS = ("free", "tentative", "busy", "oof", "workingElsewhere")
COMMON = {**dict.fromkeys(("provider", "email", "timeZone", "clientId"), str), "expiresIn": int}
CALENDAR = {
    **dict.fromkeys(("id", "subject", "accessRole", "timeZone", "errorReason"), str),
    "primary": bool,
}
EVENT = {
    **dict.fromkeys(
        ("calendarId", "id", "subject", "start", "end", "showAs", "status", "responseStatus"), str
    ),
    **dict.fromkeys(("allDay", "isCancelled"), bool),
}
ACCOUNT = {**COMMON, "calendars": [CALENDAR], "events": [EVENT]}


class Undescribed(Exception):
    """The description of an account is invalid; the message names the field."""


def read(spec: Mapping[str, Any], shape: Shape) -> Mapping[str, Any]:
    """The description, checked for the types of its parts."""
    if problem := shape_error(spec, shape):
        raise Undescribed(problem.removeprefix("body."))
    return spec


def account(world: World, spec: Mapping[str, Any]) -> Account:
    """Create an account with its calendars and events.

    :raise Undescribed: if the description is incomplete or contradictory
    """
    read(spec, ACCOUNT)
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
    iana = iana_zone(name)
    if iana is None:
        raise Undescribed(f"no time zone is called {name!r}")
    return iana


def scopes(of: Provider, scope: Any) -> tuple[str, ...]:
    """The scopes of a description: a list or a string with spaces; the full set when missing."""
    if scope is None:
        return google_scopes.FULL_SCOPE if of == "google" else microsoft_scopes.FULL_SCOPE
    words = scope.split() if isinstance(scope, str) else scope
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise Undescribed("scope is a list of names, or a text with spaces between them")
    return tuple(google_scopes.full_name(word) for word in words) if of == "google" else tuple(words)


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
    """A stable id in the provider's format; for a Google primary, the address."""
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
    """An event from a description of the control API."""
    if (entry.get("showAs") or "busy") not in SHOW_AS:
        raise Undescribed(f"events: showAs is one of {', '.join(SHOW_AS)}")
    all_day = bool(entry.get("allDay"))
    zone_name = calendar.time_zone if owner.provider == "google" else owner.time_zone
    start, end = (edge(entry, name, all_day, zone_name) for name in ("start", "end"))
    lines = entry.get("recurrence") or ()
    rule = (lines,) if isinstance(lines, str) else tuple(lines)
    if not is_readable(rule):
        raise Undescribed(f"events: recurrence is not a rule: {lines!r}")
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
        rule=rule,
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
    """An id in the provider's format; the same owner, calendar and mark give the same."""
    digest = hashlib.sha256(f"{owner.email}:{calendar.id}:{mark}".encode()).digest()
    if owner.provider == "microsoft":
        return f"AAMkAG{encoded(digest)}AAAA="
    # 26 characters of base32hex, like Google's ids: hexadecimal digits are a subset.
    return digest.hex()[:26]

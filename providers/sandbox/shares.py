"""Calendars that are on the lists of two accounts: ``POST /sandbox/shares``.

Google gives a shared calendar the same id for every account. Graph gives it another id in each mailbox, and
names its owner. Both entries have the same events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from providers.sandbox.accounts import PRIMARY, Account, Provider
from providers.sandbox.calendars import Calendar
from providers.sandbox.consent import encoded
from providers.sandbox.google.calendars import ROLES
from providers.sandbox.seeds import Undescribed, provider, read, text
from providers.sandbox.world import World

SHARE = dict.fromkeys(("provider", "email", "calendarId", "with", "accessRole"), str)


def share(world: World, spec: Mapping[str, Any]) -> Calendar:
    """Put a calendar of one account on the list of another; returns the new list entry.

    :raise Undescribed: if the description is incomplete, or the second account already has the calendar
    """
    read(spec, SHARE)
    of = provider(spec)
    owner, reader = (_account(world, of, text(spec, name)) for name in ("email", "with"))
    name = spec.get("calendarId") or PRIMARY
    calendar = owner.calendar(name)
    if calendar is None:
        raise Undescribed(f"no calendar {name!r}")
    if any(each.contents is calendar.contents for each in reader.calendars.values()):
        raise Undescribed(f"{reader.email} has this calendar already")
    role = spec.get("accessRole") or "writer"
    if role not in ROLES:
        raise Undescribed(f"accessRole is one of {', '.join(ROLES)}")
    entry = Calendar(
        id=_entry_id(reader, calendar),
        subject=calendar.subject,
        time_zone=calendar.time_zone,
        access_role=role,
        owner=calendar.owner or owner.email,
        plan=lambda: list(calendar.events.values()),
        contents=calendar.contents,
    )
    reader.calendars[entry.id] = entry
    return entry


def _account(world: World, of: Provider, email: str) -> Account:
    account = world.account(of, email)
    if account is None:
        raise Undescribed(f"no account {email}")
    return account


def _entry_id(reader: Account, calendar: Calendar) -> str:
    """The stable id on the second list."""
    if reader.provider == "google":
        return calendar.id
    digest = hashlib.sha256(f"{reader.email}:shared:{calendar.id}".encode()).digest()
    return f"AAMkAG{encoded(digest)}AAA="

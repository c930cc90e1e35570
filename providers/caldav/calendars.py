"""Parses the collections of an account; pure functions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from providers.base import Calendar
from providers.caldav.credentials import BasicCredentials
from providers.caldav.identifiers import calendar_id
from providers.caldav.xml import APPLE, CALDAV, DAV, Resource
from providers.colors import foreground
from providers.ical import components
from providers.ical.bounds import Budget, InvalidCalendar, Limits
from providers.ical.lines import UnreadableLine, unfold
from providers.ical.zones import Zones

# Of a collection. The last is of a server without RFC 7809.
TIME_ZONE = (f"{CALDAV}calendar-timezone-id", f"{CALDAV}calendar-timezone")
KIND = (f"{DAV}resourcetype", f"{CALDAV}supported-calendar-component-set")
PROPERTIES = (
    *KIND,
    f"{DAV}displayname",
    f"{DAV}owner",
    f"{DAV}current-user-privilege-set",
    f"{APPLE}calendar-color",
    *TIME_ZONE,
)

_LIMITS = Limits()

# RFC 3744, 3 and RFC 4791, 6.1. Members are written with "bind" and "write-content".
_EVERYTHING = frozenset({f"{DAV}all"})
_WRITES = frozenset({f"{DAV}write", f"{DAV}bind", f"{DAV}all"})
_READS = _WRITES | {f"{DAV}read"}

# "#RRGGBB", or with the opacity after it: https://datatracker.ietf.org/doc/html/rfc7986#section-5.9 has names
# instead, which this property of Apple's has not.
_COLOR = re.compile(r"(#[0-9a-fA-F]{6})(?:[0-9a-fA-F]{2})?")
_DEFAULT_COLOR = "#0e61b9"


def holds_events(found: Resource) -> bool:
    """Whether a resource is a calendar for events.

    One that names no kinds is for every kind (RFC 4791, 4.2 and 5.2.3).
    """
    if not found.ok or f"{CALDAV}calendar" not in found.children(f"{DAV}resourcetype"):
        return False
    kinds = found.properties.get(f"{CALDAV}supported-calendar-component-set")
    return kinds is None or any((each.get("name") or "").upper() == "VEVENT" for each in kinds)


def may_hold_events(found: Resource) -> bool:
    """Whether a resource is a calendar for events, or the server fails to say what it is.

    Such a one is listed, so that it is read, or named as failed: left out, its time would be free.
    """
    fails = max(found.status, found.refused.get(KIND[0], 0)) >= 500
    return fails or holds_events(found)


def is_same(one: str, other: str) -> bool:
    """Whether two addresses are one collection's: servers quote differently, and leave out the last slash."""
    return _spelled(one) == _spelled(other)


def _spelled(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.netloc, unquote(parts.path).rstrip("/")


def access_role(found: Resource, principal: str) -> str:
    """The access of the account to a calendar.

    Without an answer about it, everything: the calendar is in its own home.
    """
    privileges = found.properties.get(f"{DAV}current-user-privilege-set")
    if privileges is None:
        return "owner"
    names = {each.tag for privilege in privileges.iter(f"{DAV}privilege") for each in privilege}
    owners = found.urls(f"{DAV}owner")
    if names & _WRITES:
        is_owner = any(is_same(each, principal) for each in owners) if owners else bool(names & _EVERYTHING)
        return "owner" if is_owner else "writer"
    return "reader" if names & _READS else "freeBusyReader"


def time_zone(found: Resource) -> str:
    """The IANA name of the zone of a calendar, in which its days begin; "" when it has none that is known."""
    name, text = (found.text(each) for each in TIME_ZONE)
    return _known_zone(name) or next(filter(None, map(_known_zone, _zones_in(text))), "")


def _known_zone(name: str) -> str:
    known = Zones({}, Budget(_LIMITS, math.inf)).named(name) if name else None
    return "" if known is None else known.name


def _zones_in(text: str) -> list[str]:
    """The names of the zones that a text defines."""
    try:
        calendars = components.parse(unfold(text.encode()), _LIMITS) if text else []
        parts = [each for whole in calendars for each in whole.parts if each.name == "VTIMEZONE"]
        return [each.single("TZID") for each in parts]
    except (InvalidCalendar, UnreadableLine):
        return []


def parsed(found: Resource, credentials: BasicCredentials) -> Calendar:
    """One calendar."""
    color = _COLOR.fullmatch(found.text(f"{APPLE}calendar-color"))
    background = color[1].lower() if color else _DEFAULT_COLOR
    name = found.text(f"{DAV}displayname")
    return Calendar(
        id=calendar_id(found.url),
        provider="caldav",
        subject=name or unquote(urlsplit(found.url).path).rstrip("/").rpartition("/")[2],
        access_role=access_role(found, credentials.principal),
        primary=is_same(found.url, credentials.main),
        selected=True,
        background_color=background,
        foreground_color=foreground(background),
        time_zone=time_zone(found),
        original={"href": urlsplit(found.url).path, "properties": _texts(found)},
    )


def in_order(found: Iterable[Resource]) -> list[Resource]:
    """What may be calendars for events, each once, by their paths: servers promise no order."""
    calendars = {_spelled(each.url): each for each in found if may_hold_events(each)}
    return [calendars[key] for key in sorted(calendars)]


def _texts(found: Resource) -> dict[str, str]:
    """The properties that are texts, by their names without namespaces."""
    return {name.rpartition("}")[2]: text for name in found.properties if (text := found.text(name))}


def main_of(found: list[Resource], wanted: Iterable[str], principal: str) -> Resource | None:
    """The main calendar: the first of ``wanted`` that exists, else the first that the account may write.

    Without one, the first that it may read.
    """
    for url in wanted:
        for each in found:
            if is_same(each.url, url):
                return each
    for roles in (("owner", "writer"), ("reader",)):
        for each in filter(holds_events, found):
            if access_role(each, principal) in roles:
                return each
    return None

"""Parses Microsoft Graph's JSON; pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, tzinfo
from typing import Any, cast
from zoneinfo import ZoneInfo

from providers.base import Calendar, MainCalendar, Period
from providers.errors import AccessDenied, ProviderError
from providers.http.json_validation import SHAPE_ERRORS, array, flag, identifier, original, text
from providers.http.send import Json, unreadable
from providers.microsoft import calendar_view, colors
from providers.microsoft.calendar_view import BusyEvent, Moment
from providers.microsoft.errors import PROVIDER
from providers.microsoft.pages import Pages
from providers.microsoft.payloads import GraphCalendar, GraphEvent
from providers.microsoft.zones import iana_zone
from providers.names import ProviderName
from providers.timestamps import FIRST_MIDNIGHT, LAST_MIDNIGHT, ordered, wall_instant

# All other values mean busy, including "unknown" and future ones:
# https://learn.microsoft.com/en-us/graph/api/resources/event#properties (showAs)
NOT_BUSY = frozenset({"free", "workingElsewhere"})

# The IANA zone of a mailbox, None without permission to read it, or the error of reading it.
Zone = str | None | ProviderError


class UnknownZone(ProviderError):
    """A time has a zone that only its mailbox defines, so it cannot be converted."""


def mailbox_zone(settings: Pages | None, operation: str) -> Zone:
    """The IANA zone of a mailbox from the answer for its settings, None without permission to read it.

    https://learn.microsoft.com/en-us/graph/api/user-get-mailboxsettings
    """
    if settings is None or isinstance(settings, AccessDenied):
        return None
    if isinstance(settings, ProviderError):
        return settings
    name = settings[0].get("timeZone")
    zone = iana_zone(name) if isinstance(name, str) else None
    return zone or UnknownZone(f"{PROVIDER} does not say the time zone of this mailbox", operation=operation)


def busy(pages: Iterable[Json], zone: Zone, operation: str, *, without: str | None = None) -> list[Period]:
    """The busy periods of one calendarView, unsorted; ``zone`` is the mailbox's.

    Without it, an all-day event covers its days in every zone. The event with the id ``without`` does not
    count; the pages must be plain JSON then.

    :raise ProviderError: ``zone`` when it is an error and an all-day event needs it; UnknownZone for a
        time in an unknown zone; Unavailable when a page cannot be parsed
    """
    try:
        found = (values(page) for page in pages)
        if without is not None:
            found = ([each for each in entries if each.get("id") != without] for entries in found)
        events = [event for entries in found for event in calendar_view.events(entries)]
        return [_period(event, zone, operation) for event in events if _blocks(event)]
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, operation) from None


def values(page: Json) -> list[Any]:
    """The entries of a page. A page with an error is not whole: Graph may fail while it sends the entries."""
    if page.get("error"):
        raise TypeError("the page has an error")
    return array(page["value"])


def is_cancelled(event: GraphEvent) -> bool:
    """Whether the event is cancelled."""
    return flag(event.get("isCancelled"))


def period(event: GraphEvent, zone: Zone, operation: str) -> Period:
    """When an event takes place; ``zone`` and errors as for :func:`busy`, without parse errors."""
    return _period(calendar_view.event(event), zone, operation)


def _blocks(event: BusyEvent) -> bool:
    """Whether the event makes its owner busy: not when cancelled, declined, free or working elsewhere."""
    status = event.response_status
    if event.is_cancelled or (status is not None and status.response == "declined"):
        return False
    return event.show_as not in NOT_BUSY


def _period(event: BusyEvent, zone: Zone, operation: str) -> Period:
    start, end = event.start, event.end
    # From midnight to midnight may also be whole days of another zone, so ``is_all_day`` decides.
    if event.is_all_day is not False and _is_midnight(start) and _is_midnight(end):
        if event.is_all_day is None:
            raise TypeError("no boolean")
        # All-day dates are labelled with the requested zone, but not converted to it.
        if isinstance(zone, ProviderError):
            raise zone
        begins, ends = (FIRST_MIDNIGHT, LAST_MIDNIGHT) if zone is None else (ZoneInfo(zone),) * 2
        return ordered(wall_instant(start.date_time, begins), wall_instant(end.date_time, ends, up=True))
    return ordered(
        wall_instant(start.date_time, _zone(start, operation)),
        wall_instant(end.date_time, _zone(end, operation), up=True),
    )


def _is_midnight(moment: Moment) -> bool:
    return not moment.date_time.partition("T")[2].strip("0:.")


def _zone(moment: Moment, operation: str) -> tzinfo:
    name = moment.time_zone
    if name == "UTC":
        return UTC
    zone = iana_zone(name)
    if zone is None:
        raise UnknownZone(f"{PROVIDER} gave a time in an unknown time zone", operation=operation)
    return ZoneInfo(zone)


def calendars(pages: Iterable[Json], email: str | None, zone: str, operation: str) -> list[Calendar]:
    """The calendars of an account; Graph has one zone for all of them, the mailbox's.

    :raise Unavailable: when a page cannot be parsed
    """
    try:
        found = [each for page in pages for each in cast("list[GraphCalendar]", values(page))]
        own = {_owner(each) for each in found if each.get("isDefaultCalendar")} | {(email or "").lower()}
        return [_calendar(each, own - {""}, zone) for each in found]
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, operation) from None


def main_calendar(entry: Json, zone: str, operation: str) -> MainCalendar:
    """The default calendar of a mailbox: its id and its owner's address; ``zone`` is the mailbox's.

    :raise Unavailable: when the record is not a calendar
    """
    try:
        found = cast("GraphCalendar", entry)
        return MainCalendar(identifier(found["id"]), _owner(found), zone)
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, operation) from None


def _calendar(entry: GraphCalendar, own: set[str], zone: str) -> Calendar:
    color = colors.background(entry.get("color", ""), entry.get("hexColor") or "")
    return Calendar(
        id=identifier(entry["id"]),
        provider=ProviderName.MICROSOFT,
        subject=text(entry.get("name")),
        access_role=_role(entry, own),
        primary=flag(entry.get("isDefaultCalendar")),
        selected=True,
        background_color=color,
        foreground_color=colors.foreground(color),
        time_zone=zone,
        original=original(entry),
        owner=_owner(entry),
    )


def _role(entry: GraphCalendar, own: set[str]) -> str:
    """The role: Graph has none, so it is derived from the owner and ``canEdit``."""
    if entry.get("isDefaultCalendar") or _owner(entry) in own:
        return "owner"
    return "writer" if entry.get("canEdit") else "reader"


def _owner(entry: GraphCalendar) -> str:
    return ((entry.get("owner") or {}).get("address") or "").lower()

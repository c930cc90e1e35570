"""Parses Google's JSON; pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from providers.base import Calendar, MainCalendar, Period
from providers.errors import ProviderError
from providers.google.errors import PROVIDER, error_inside
from providers.google.payloads import CalendarListEntry, CalendarListPage, FreeBusyCalendar
from providers.http.calls import Json, unreadable
from providers.http.json_validation import SHAPE_ERRORS, array, identifier, original, shown
from providers.timestamps import instant, ordered

# "writerWithoutPrivateAccess" is newer than the API's role words: may write, but not see private events.
# Unknown roles get the lowest one.
_ROLES = {"writer": "writer", "writerWithoutPrivateAccess": "writer", "reader": "reader", "owner": "owner"}


def calendars(page: CalendarListPage, operation: str) -> list[Calendar]:
    """The calendars of one page; an empty page may be followed by others.

    The list has hidden calendars too, on request. Of these only the main one counts: people hide a calendar
    to see less, and their meetings still take place.

    https://developers.google.com/workspace/calendar/api/v3/reference/calendarList/list

    :raise Unavailable: when the page cannot be parsed
    """
    try:
        return [calendar(entry) for entry in array(page["items"]) if not _is_left_out(entry)]
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, operation) from None


def _is_left_out(entry: CalendarListEntry) -> bool:
    hidden = entry.get("hidden") is True and entry.get("primary") is not True
    return hidden or entry.get("deleted") is True


def main_calendar(entry: CalendarListEntry, operation: str) -> MainCalendar:
    """The id of the main calendar, which is an address, and its zone.

    :raise Unavailable: when the entry cannot be parsed
    """
    try:
        found, zone = identifier(entry["id"]), entry.get("timeZone")
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, operation) from None
    return MainCalendar(found, found, zone if isinstance(zone, str) else "")


def calendar(entry: CalendarListEntry) -> Calendar:
    """One entry of the list; the user's own name for it takes precedence over the owner's."""
    return Calendar(
        id=identifier(entry["id"]),
        provider="google",
        subject=shown(entry.get("summaryOverride")) or shown(entry.get("summary")),
        access_role=_ROLES.get(shown(entry.get("accessRole")), "freeBusyReader"),
        primary=entry.get("primary") is True,
        selected=entry.get("selected") is True,
        background_color=shown(entry.get("backgroundColor")),
        foreground_color=shown(entry.get("foregroundColor")),
        time_zone=shown(entry.get("timeZone")) or "UTC",
        original=original(entry),
    )


def busy(answer: object, calendar_id: str, operation: str) -> list[Period]:
    """The busy periods of one calendar in a freeBusy answer, unsorted.

    Google answers 200 with ``errors`` inside when it could not read a calendar, and "additional error
    types may be added": https://developers.google.com/workspace/calendar/api/v3/reference/freebusy/query

    :raise ProviderError: when the answer has an error for the calendar, or no entry
    """
    calendars = answer.get("calendars") if isinstance(answer, dict) else None
    entry = calendars.get(calendar_id) if isinstance(calendars, dict) else None
    if not isinstance(entry, dict):
        raise unreadable(PROVIDER, operation)
    return _periods(cast("FreeBusyCalendar", entry), operation)


def _periods(entry: FreeBusyCalendar, operation: str) -> list[Period]:
    try:
        if errors := entry.get("errors"):
            raise error_inside(errors[0], operation)
        return [
            ordered(instant(each["start"]), instant(each["end"], up=True)) for each in array(entry["busy"])
        ]
    except SHAPE_ERRORS:
        # A missing "busy" is not an empty one.
        raise unreadable(PROVIDER, operation) from None


# Fetches one page with a query.
Fetch = Callable[[Mapping[str, str]], Json]


def every_page(fetch: Fetch, query: Mapping[str, str], operation: str) -> Iterator[Json]:
    """The pages of a list; a short or empty page may be followed by others.

    https://developers.google.com/workspace/calendar/api/guides/pagination

    :raise ProviderError: when the pages do not end
    """
    parameters = dict(query)
    seen: set[str] = set()
    while True:
        page = fetch(parameters)
        token = page.get("nextPageToken")
        # A missing list is not an empty one, and an invalid token is not the end.
        if not isinstance(page.get("items"), list) or not (
            token is None or (isinstance(token, str) and token)
        ):
            raise unreadable(PROVIDER, operation)
        yield page
        if token is None:
            return
        if token in seen:
            raise ProviderError(f"The pages of {PROVIDER} do not end", operation=operation)
        seen.add(token)
        parameters["pageToken"] = token


# https://support.google.com/mail/answer/7436150 and https://support.google.com/mail/answer/10313
_GMAIL = frozenset({"gmail.com", "googlemail.com"})


def is_same_address(one: str, other: str) -> bool:
    """Whether two addresses are one account's.

    Letter case does not matter, nor do dots before the ``@`` of Gmail's own addresses.
    """
    return canonical(one) == canonical(other)


def canonical(address: str) -> str:
    """One spelling for all spellings of an address."""
    name, _, domain = address.strip().lower().rpartition("@")
    return f"{name.replace('.', '')}@gmail.com" if domain in _GMAIL else f"{name}@{domain}"

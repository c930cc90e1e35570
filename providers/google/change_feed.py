"""The changes in a calendar, by the sync tokens of its list of events.

The list has masters of series and their exceptions, not the occurrences. If a series has changed, all
occurrences in the range are listed.

https://developers.google.com/workspace/calendar/api/guides/sync
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import cast

import msgspec

from providers.changes import ChangePage, changed_ids, decoded, encoded, token_expired
from providers.errors import ProviderError
from providers.events import Event, overlaps
from providers.google import parse_events
from providers.google.calendars import GoogleCalendar, zone_of
from providers.google.errors import PROVIDER
from providers.google.events import list_events
from providers.google.payloads import EventRecord
from providers.http.calls import Json, unreadable
from providers.http.json_validation import SHAPE_ERRORS, has_identifier, optional_text
from providers.timestamps import DAY, utc_text

log = logging.getLogger(__name__)

# Events on a page, without the occurrences of its series.
CHANGES_PER_PAGE = 250


class _State(msgspec.Struct, omit_defaults=True):
    """The sync token of the list, None while it is read for the first time; and the token of a page of it."""

    sync: str | None = None
    page: str | None = None


def changes(calendar: GoogleCalendar, start: int, end: int, sync_token: str | None) -> ChangePage:
    """A page of changes; see ``ChangeFeed``."""
    state = _State() if sync_token is None else decoded(sync_token, _State, PROVIDER, calendar.operation)
    page = _page(calendar, state, start)
    singles, gone, series = _sorted(calendar, page)
    shown = [each for each in singles if overlaps(each, start, end)]
    # The first time, no event has left the range.
    others = [*gone, *(each.id for each in singles)] if state.sync is not None else []
    occurrences = list_events(calendar, start, end, complete=True) if series else ()
    found = {each.id: each for each in (*shown, *occurrences)}
    updated, deleted = changed_ids([*series, *(each.id for each in shown), *others], found.values())
    if sync_token is None:
        deleted = ()
    token, more = _next(calendar, state, page)
    return ChangePage(updated, deleted, token, more)


def _page(calendar: GoogleCalendar, state: _State, start: int) -> Json:
    """A page of the list. The first time it has what ends after ``start``; a sync token takes no such limit.

    https://developers.google.com/workspace/calendar/api/v3/reference/events/list (``syncToken``)
    """
    query = {"maxResults": str(CHANGES_PER_PAGE)}
    query |= {"timeMin": utc_text(start - DAY)} if state.sync is None else {"syncToken": state.sync}
    if state.page is not None:
        query["pageToken"] = state.page
    try:
        page = calendar.get(**query)
    except ProviderError as error:
        if type(error) is ProviderError and state != _State():
            # 400: it cannot read the token. A token of a page expires too.
            raise token_expired(PROVIDER, calendar.operation) from None
        raise
    if not isinstance(page.get("items"), list):
        raise unreadable(PROVIDER, calendar.operation)
    return page


def _next(calendar: GoogleCalendar, state: _State, page: Json) -> tuple[str, bool]:
    """The token of the next page, and whether that is there already. A page has exactly one of two tokens."""
    following, sync = page.get("nextPageToken"), page.get("nextSyncToken")
    if isinstance(following, str) and following:
        return encoded(_State(state.sync, following)), True
    if isinstance(sync, str) and sync:
        return encoded(_State(sync)), False
    raise unreadable(PROVIDER, calendar.operation)


def _sorted(calendar: GoogleCalendar, page: Json) -> tuple[list[Event], list[str], list[str]]:
    """The single events of a page, the ids of deleted events, and the ids of series.

    A changed or cancelled occurrence has the id of its series; the series itself may belong to a calendar of
    another person.

    :raise Unreadable: when an event that has an id cannot be parsed, as it must not count as deleted
    """
    singles: list[Event] = []
    gone: list[str] = []
    series: list[str] = []
    zone = zone_of(page)
    for record in _records(page):
        if not has_identifier(record):
            log.info("an event without an id is left out of the changes")
            continue
        event_id = record["id"]
        try:
            master = optional_text(record.get("recurringEventId"))
        except SHAPE_ERRORS:
            raise unreadable(PROVIDER, calendar.operation) from None
        if master or record.get("recurrence"):
            series.append(master or event_id)
        elif parse_events.is_cancelled(record):
            gone.append(event_id)
        else:
            singles.append(calendar.reader.event(cast("Json", record), zone))
    return singles, gone, list(dict.fromkeys(series))


def _records(page: Json) -> Iterator[EventRecord]:
    return (cast("EventRecord", each) for each in page["items"] if isinstance(each, dict))

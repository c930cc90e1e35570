"""The changes in a calendar, by Graph's delta query of a calendarView.

The records of a delta query do not have our extended properties, and occurrences have hardly any property. So
they only tell which events have changed; the events are listed.

https://learn.microsoft.com/en-us/graph/api/event-delta
"""

from __future__ import annotations

from typing import cast
from urllib.parse import urlencode

import msgspec

from providers.changes import ChangePage, changed_ids, decoded, encoded, token_expired
from providers.errors import ProviderError
from providers.events import Event
from providers.http.calls import Json, unreadable
from providers.http.json_validation import SHAPE_ERRORS, identifier, optional_text
from providers.microsoft import parse
from providers.microsoft.errors import PROVIDER
from providers.microsoft.events import list_one
from providers.microsoft.mailbox import AS_TEXT, Mailbox
from providers.microsoft.payloads import GraphEvent
from providers.timestamps import DAY, utc_text

# Records on a page; without it Graph chooses a smaller number.
_PREFER = f"{AS_TEXT}, odata.maxpagesize=250"

# Start and end in UTC milliseconds.
_Span = tuple[int, int]


class _State(msgspec.Struct, omit_defaults=True):
    """The path of the next page, which has Graph's token. ``first``: of the pages without such a token."""

    path: str
    first: bool = False


def changes(mailbox: Mailbox, calendar_id: str, start: int, end: int, sync_token: str | None) -> ChangePage:
    """A page of changes; see ``ChangeFeed``.

    The first time, the pages of the delta query are read for the token at their end, and then all events are
    listed. What changes in between is on the next page too.
    """
    if sync_token is None:
        state = _State(_first_path(mailbox, calendar_id, start, end), first=True)
    else:
        state = decoded(sync_token, _State, PROVIDER, mailbox.operation)
    page = _page(mailbox, state, known=sync_token is not None)
    path, more = _next(mailbox, page)
    token = encoded(_State(path, first=state.first and more))
    if state.first:
        events = () if more else _events(mailbox, calendar_id, (start, end))
        return ChangePage(events, (), token, more)
    ids, span = _changed(mailbox, page, (start, end))
    events = _events(mailbox, calendar_id, span) if span is not None else ()
    updated, deleted = changed_ids(ids, events)
    return ChangePage(updated, deleted, token, more)


def _first_path(mailbox: Mailbox, calendar_id: str, start: int, end: int) -> str:
    """All-day events are selected as if their days were in UTC; other zones differ by a day at most."""
    window = {"startDateTime": utc_text(start - DAY), "endDateTime": utc_text(end + DAY)}
    calendar = mailbox.path if mailbox.is_main(calendar_id) else mailbox.calendar_path(calendar_id)
    return f"{calendar}/calendarView/delta?{urlencode(window)}"


def _page(mailbox: Mailbox, state: _State, *, known: bool) -> Json:
    try:
        return mailbox.get(state.path, _PREFER)
    except ProviderError as error:
        if type(error) is ProviderError and known:
            # 400: it cannot read the token.
            raise token_expired(PROVIDER, mailbox.operation) from None
        raise


def _next(mailbox: Mailbox, page: Json) -> tuple[str, bool]:
    """The path of the next page, and whether that is there already. A page has exactly one of two links."""
    following, delta = page.get("@odata.nextLink"), page.get("@odata.deltaLink")
    link = following or delta
    if not isinstance(link, str):
        raise unreadable(PROVIDER, mailbox.operation)
    return mailbox.linked(link), following is not None


def _changed(mailbox: Mailbox, page: Json, whole: _Span) -> tuple[list[str], _Span | None]:
    """The ids of changed events and series, and the time in which they are; None if all were removed.

    If a series has changed, that is the whole range. A removed record has only an id:
    ``{"id": "AAMk…", "@removed": {"reason": "deleted"}}``
    """
    ids: list[str] = []
    spans: list[_Span] = []
    try:
        for record in cast("list[GraphEvent]", parse.values(page)):
            series = optional_text(record.get("seriesMasterId"))
            if "@removed" in record:
                ids.append(identifier(record["id"]))
                continue
            ids.append(series or identifier(record["id"]))
            is_series = series or record.get("type") == "seriesMaster"
            spans.append(whole if is_series else _span(mailbox, record, whole))
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, mailbox.operation) from None
    if not spans:
        return ids, None
    start, end = min(start for start, _ in spans), max(end for _, end in spans)
    return ids, (max(start, whole[0]), min(end, whole[1]))


def _span(mailbox: Mailbox, record: GraphEvent, whole: _Span) -> _Span:
    """When a single event is, with a day around it: days may be in another zone than UTC."""
    try:
        start, end = parse.period(record, "UTC", mailbox.operation)
    except (ProviderError, *SHAPE_ERRORS):
        # The list decides whether it can be shown.
        return whole
    return start - DAY, end + DAY


def _events(mailbox: Mailbox, calendar_id: str, span: _Span) -> tuple[Event, ...]:
    """All events of a part of the range."""
    start, end = span
    if start >= end:
        return ()
    return list_one(mailbox, calendar_id, start, end)

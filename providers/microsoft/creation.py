"""Creating an event in Microsoft 365, once.

Three things keep a create that is repeated from making a second event. An event of the draft's metaId is
looked for first. Graph makes one event of one transactionId, which follows from the draft's key, and answers
another body of the same with the id of that event. And every event keeps a mark: which request it was made
for, so that a repeated create is told from another of the same key, and in which call, so that an event that
was there before is never taken for a new one.

https://learn.microsoft.com/en-us/graph/api/resources/event (transactionId)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import cast
from urllib.parse import quote
from uuid import UUID

from providers.create_outcomes import insert_deadline, settled
from providers.errors import EventExists, EventUnreadable, InvalidCalendarId, NotFound, ProviderError
from providers.events import Created, Draft
from providers.http.send import Json
from providers.microsoft import event_calendar, events, properties, writing
from providers.microsoft.errors import PROVIDER, DuplicateTransaction
from providers.microsoft.mailbox import Mailbox, calendar_path
from providers.microsoft.payloads import GraphEvent

# How often an event may be deleted and created anew under one key, as long as Graph remembers all of that.
MOST_LIVES = 20


def create(mailbox: Mailbox, calendar_id: str, draft: Draft) -> Created:
    """Create the event of a draft, or tell that it was created before."""
    meta_id = draft.content.meta_id
    known = None
    if meta_id is not None and not draft.meta_id_is_new:
        known = events.carrying(mailbox, calendar_id, meta_id)
    if known is not None:
        return _created(mailbox, calendar_id, known, draft)
    midnights = events.day_zone(mailbox) if writing.has_days(draft.content) else "UTC"
    for transaction_id in _transactions(draft.key):
        body = writing.new(draft, transaction_id, midnights)
        try:
            event_id = _post(mailbox.until(insert_deadline(mailbox.deadline)), calendar_id, body)
        except DuplicateTransaction as error:
            known = _made_before(mailbox, calendar_id, error.event_id)
        except EventUnreadable:
            raise
        except ProviderError as error:
            return settled(error, lambda: _seen(mailbox, calendar_id, draft))
        else:
            known = _read_back(mailbox, calendar_id, event_id)
        if known is not None:
            return _created(mailbox, calendar_id, known, draft)
    raise _exists(mailbox)


def _transactions(key: str) -> Iterator[str]:
    """The transactionIds to try: Graph remembers one also when its event was deleted since."""
    for number in range(MOST_LIVES):
        yield str(UUID(hashlib.sha256(f"{key} {number}".encode()).hexdigest()[:32]))


def _post(mailbox: Mailbox, calendar_id: str, body: Json) -> str:
    """The id of the event that Graph has made of it, now or at an earlier try of this call.

    :raise DuplicateTransaction: when it has made another of the same transactionId
    """
    event_id = mailbox.write("POST", f"{calendar_path(calendar_id)}/events", body).get("id")
    if not isinstance(event_id, str) or not event_id:
        raise events.unreadable_event(mailbox)
    return event_id


def _seen(mailbox: Mailbox, calendar_id: str, draft: Draft) -> Created | None:
    """The event of a create that had no answer, found by its mark; None when it is not there (yet)."""
    known = events.carrying(mailbox, calendar_id, draft.mark, properties.REQUEST)
    return None if known is None else _created(mailbox, calendar_id, known, draft)


def _read_back(mailbox: Mailbox, calendar_id: str, event_id: str) -> GraphEvent | None:
    """The event that Graph answered to the create, None when it is an earlier one that was cancelled.

    :raise EventUnreadable: when it cannot be read now. One that is not found counts as such: it may only be
        too new, and a second create would then double it.
    """
    try:
        known = events.in_calendar(mailbox, calendar_id, event_id)
        if not known.get("isCancelled"):
            events.parsed(mailbox, calendar_id, known)
    except ProviderError:
        # Whatever it says of the reading: the writing is done.
        raise events.unreadable_event(mailbox) from None
    return None if known.get("isCancelled") else known


def _made_before(mailbox: Mailbox, calendar_id: str, event_id: str | None) -> GraphEvent | None:
    """The living event of a transactionId that was used before, None when it was deleted or cancelled.

    :raise EventExists: when Graph does not name it, or it was moved to another calendar
    """
    if event_id is None:
        raise _exists(mailbox)
    try:
        found = mailbox.get(f"/me/events/{quote(event_id, safe='')}?{event_calendar.EXPAND}")
    except (NotFound, InvalidCalendarId):
        return None
    known = cast("GraphEvent", found)
    if known.get("isCancelled"):
        return None
    if not event_calendar.lies_in(mailbox, calendar_id, known):
        raise _exists(mailbox)
    return known


def _created(mailbox: Mailbox, calendar_id: str, known: GraphEvent, draft: Draft) -> Created:
    """The outcome of the create, given the event that is in its place.

    :raise EventExists: when another create has made that event
    """
    created = draft.found(events.parsed(mailbox, calendar_id, known))
    if created is None:
        raise _exists(mailbox)
    return created


def _exists(mailbox: Mailbox) -> EventExists:
    return EventExists(f"{PROVIDER} already has another event for this", operation=mailbox.operation)

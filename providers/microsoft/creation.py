"""Creates an event in Microsoft 365 exactly once.

Three things prevent a repeated create from making a second event. An event with the draft's metaId is
looked up first. Graph makes one event for a transactionId, which is derived from the draft's key; a second
request with the same transactionId and another body fails with the id of that event. And every event stores
a mark with the request and the attempt. It distinguishes a repeated create from another one with the same
key, and a new event from one that existed before.

https://learn.microsoft.com/en-us/graph/api/resources/event (transactionId)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import cast
from urllib.parse import quote
from uuid import UUID

from providers.errors import EventUnreadable, InvalidCalendarId, NotFound, ProviderError
from providers.event_writes import exists, found_after_failure, insert_deadline, made_by
from providers.events import CreateResult, Draft
from providers.http.calls import Json
from providers.microsoft import events, properties, writing
from providers.microsoft.errors import PROVIDER, DuplicateTransaction
from providers.microsoft.mailbox import Mailbox
from providers.microsoft.payloads import GraphEvent

# How often an event may be deleted and created again with one key while Graph remembers its transactionIds.
MAX_LIVES = 20


def create(mailbox: Mailbox, calendar_id: str, draft: Draft) -> CreateResult:
    """Create the event of a draft, or return the one that an earlier request created."""
    meta_id = draft.content.meta_id
    known = None
    if meta_id is not None and not draft.meta_id_is_new:
        known = events.find_by_meta_id(mailbox, calendar_id, meta_id)
    if known is not None:
        return _created(mailbox, calendar_id, known, draft)
    midnights = events.zone_for(mailbox, draft.content)
    return insert(mailbox, calendar_id, draft, lambda each: writing.create_payload(draft, each, midnights))


def insert(mailbox: Mailbox, calendar_id: str, draft: Draft, payload: Callable[[str], Json]) -> CreateResult:
    """Post the event of a draft, or return the one that an earlier request posted.

    ``payload`` makes its JSON with a transactionId.
    """
    for transaction_id in _transactions(draft.key):
        body = payload(transaction_id)
        try:
            event_id = _post(mailbox.until(insert_deadline(mailbox.deadline)), calendar_id, body)
        except DuplicateTransaction as error:
            known = _made_before(mailbox, calendar_id, error.event_id)
        except EventUnreadable:
            raise
        except ProviderError as error:
            return found_after_failure(error, lambda: _find_inserted(mailbox, calendar_id, draft))
        else:
            known = _read_back(mailbox, calendar_id, event_id)
        if known is not None:
            return _created(mailbox, calendar_id, known, draft)
    raise exists(PROVIDER, mailbox.operation)


def _transactions(key: str) -> Iterator[str]:
    """The transactionIds to try: Graph remembers one even after its event was deleted."""
    for number in range(MAX_LIVES):
        yield str(UUID(hashlib.sha256(f"{key} {number}".encode()).hexdigest()[:32]))


def _post(mailbox: Mailbox, calendar_id: str, body: Json) -> str:
    """The id of the event that Graph created, in this or an earlier attempt of the call.

    :raise DuplicateTransaction: when the transactionId was used for another body
    """
    event_id = mailbox.write("POST", f"{mailbox.calendar_path(calendar_id)}/events", body).get("id")
    if not isinstance(event_id, str) or not event_id:
        raise events.unreadable_event(mailbox)
    return event_id


def _find_inserted(mailbox: Mailbox, calendar_id: str, draft: Draft) -> CreateResult | None:
    """The event of a create that got no answer, found by its mark; None when it does not exist (yet)."""
    known = events.find_by_meta_id(mailbox, calendar_id, draft.mark, properties.REQUEST)
    return None if known is None else _created(mailbox, calendar_id, known, draft)


def _read_back(mailbox: Mailbox, calendar_id: str, event_id: str) -> GraphEvent | None:
    """The event in Graph's answer to the create, None when it is an earlier one that was cancelled.

    :raise EventUnreadable: when it cannot be read now. That includes an event that is not found: it may be
        too new, and a second create would duplicate it.
    """
    try:
        known = events.in_calendar(mailbox, calendar_id, event_id)
        if not known.get("isCancelled"):
            events.parsed(mailbox, calendar_id, known)
    except ProviderError:
        # Whatever the reason: the write itself has succeeded.
        raise events.unreadable_event(mailbox) from None
    return None if known.get("isCancelled") else known


def _made_before(mailbox: Mailbox, calendar_id: str, event_id: str | None) -> GraphEvent | None:
    """The live event of a used transactionId, None when it was deleted or cancelled.

    :raise EventExists: when Graph does not name it, or it was moved to another calendar
    """
    if event_id is None:
        raise exists(PROVIDER, mailbox.operation)
    try:
        found = mailbox.get(f"{mailbox.path}/events/{quote(event_id, safe='')}?{events.WITH_CALENDAR}")
    except (NotFound, InvalidCalendarId):
        return None
    known = cast("GraphEvent", found)
    if known.get("isCancelled"):
        return None
    if not events.lies_in(mailbox, calendar_id, known):
        raise exists(PROVIDER, mailbox.operation)
    return known


def _created(mailbox: Mailbox, calendar_id: str, known: GraphEvent, draft: Draft) -> CreateResult:
    """The outcome of the create, given the event that already exists.

    :raise EventExists: when another create made that event
    """
    return made_by(draft, events.parsed(mailbox, calendar_id, known), PROVIDER, mailbox.operation)

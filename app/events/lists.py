"""The events of several calendars for one request."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from app.accounts import connections
from app.accounts.calendar_names import renamed
from app.availability.failures import Failure, Failures, account_failure
from app.availability.freshness import Freshness
from app.availability.selection import LISTS_SHARE, CalendarSelector, Target, listed, named, precheck, to_list
from app.services import services
from providers.base import Failed
from providers.events import Event
from providers.names import ProviderName
from providers.scopes import Operation
from store.cache.calendar_lists import CalendarList
from store.sql.queries.connections import ConnectionRef
from workers.fanout.jobs import ListCalendars, ReadEvents
from workers.queues import Queue

# Graph reads so many calendars of a mailbox in one batch, beside the mailbox's zone; Google reads one in a
# call, and many at once.
CALENDARS_AT_ONCE = {ProviderName.GOOGLE: 1, ProviderName.MICROSOFT: 19}


@dataclass(frozen=True, slots=True)
class Found:
    """The events that could be read, by start, with the names of their calendars; and what could not be."""

    events: list[tuple[str, Event]]
    failures: Failures


def find(
    refs: Sequence[ConnectionRef], wanted: CalendarSelector, start: int, end: int, freshness: Freshness
) -> Found:
    """The events that overlap ``[start, end)``, in UTC milliseconds, in the calendars that are wanted."""
    began, deadline = time.monotonic(), connections.deadline()
    refused = {ref.id: failed for ref in refs if (failed := _refusal(ref, wanted))}
    willing = [ref for ref in refs if ref.id not in refused]
    lists, unlisted = _lists(willing, wanted, freshness, began + (deadline - began) * LISTS_SHARE)
    if wanted.everything:
        refused |= unlisted
    targets = _targets(refs, wanted, lists)
    read = _read([each for each in targets if each.connection.id not in refused], start, end, deadline)
    names = renamed([target for target, _ in read])
    read = [(target, each) for target, (_, each) in zip(names, read, strict=True)]
    failures = _refused_accounts(refs, wanted, refused) + _refused_calendars(targets, refused)
    failures += [Failure(t.shown, t.connection, each) for t, each in read if isinstance(each, Failed)]
    calendars = [(t.shown, each) for t, each in read if not isinstance(each, Failed)]
    events = [(shown, event) for shown, each in calendars for event in each]
    events.sort(key=place)
    return Found(events, Failures(failures, something_read=bool(calendars)))


def place(found: tuple[str, Event]) -> tuple[str | int, ...]:
    """Where an event, with the name of its calendar, stands in a list."""
    calendar_id, event = found
    return event.start, event.end, event.id, event.provider, calendar_id


def _refusal(ref: ConnectionRef, wanted: CalendarSelector) -> Failed | None:
    lists = [Operation.LIST_CALENDARS] if wanted.everything else []
    return precheck(ref, *lists, Operation.LIST_EVENTS)


def _refused_accounts(
    refs: Sequence[ConnectionRef], wanted: CalendarSelector, refused: Mapping[str, Failed]
) -> list[Failure]:
    """Where everything is wanted, an account that is not asked is named whole."""
    return [account_failure(ref, refused[ref.id]) for ref in refs if wanted.everything and ref.id in refused]


def _refused_calendars(targets: Sequence[Target], refused: Mapping[str, Failed]) -> list[Failure]:
    """Where calendars are named, so are those of an account that is not asked; its others are not wanted."""
    return [
        Failure(t.shown, t.connection, refused[t.connection.id], whole_account=True)
        for t in targets
        if t.connection.id in refused
    ]


def _lists(
    refs: Sequence[ConnectionRef], wanted: CalendarSelector, freshness: Freshness, deadline: float
) -> tuple[dict[str, CalendarList], dict[str, Failed]]:
    """The calendar lists that say what to read, remembered or read now, and why some could not be read."""
    remembered = services().stores.calendar_lists
    known = remembered.load([ref.id for ref in refs], newer_than=freshness.newer_than)
    missing = {ref.id: ListCalendars(ref.id) for ref in to_list(refs, wanted) if ref.id not in known}
    replies = connections.gather(missing, Queue.READS, deadline=deadline)
    failed = {each: reply.failed for each, reply in replies.items() if reply.failed is not None}
    for connection_id, reply in replies.items():
        if reply.listed is not None:
            known[connection_id] = CalendarList(reply.read_at, reply.listed)
    return known, failed


def _targets(
    refs: Sequence[ConnectionRef], wanted: CalendarSelector, lists: Mapping[str, CalendarList]
) -> list[Target]:
    if wanted.everything:
        return [each for ref in refs if ref.id in lists for each in listed(ref, lists[ref.id].calendars)]
    return named(wanted.ids, refs, lists)


def _read(
    targets: Sequence[Target], start: int, end: int, deadline: float
) -> list[tuple[Target, tuple[Event, ...] | Failed]]:
    batches = list(_batches(targets))
    jobs = {str(number): _job(batch, start, end) for number, batch in enumerate(batches)}
    replies = connections.gather(jobs, Queue.READS, deadline=deadline).values()
    return [
        (target, reply.failed or reply.events[target.key.calendar])
        for batch, reply in zip(batches, replies, strict=True)
        for target in batch
    ]


def _batches(targets: Sequence[Target]) -> Iterator[tuple[Target, ...]]:
    """Calendars of one account, as many as its provider takes at once."""
    for ref, own in groupby(targets, key=lambda target: target.connection):
        size = CALENDARS_AT_ONCE[ProviderName(ref.provider)]
        while batch := tuple(islice(own, size)):
            yield batch


def _job(batch: Sequence[Target], start: int, end: int) -> ReadEvents:
    calendars = tuple(target.key.calendar for target in batch)
    return ReadEvents(batch[0].connection.id, calendars, start, end)

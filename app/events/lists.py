"""Lists the calendars of several accounts, and the events of several calendars."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from app.availability.connections import renamed
from app.availability.failures import Failure, Failures, connection_failure
from app.availability.parameters import Freshness
from app.availability.selection import (
    LISTS_SHARE,
    CalendarSelector,
    Target,
    connections_to_list,
    distinct,
    listed_targets,
    precheck,
    targets_by_id,
)
from app.events import worker_calls
from app.services import services
from providers import registry
from providers.base import Calendar, Failed
from providers.events import Event
from providers.scopes import Operation
from store.cache.calendar_lists import CalendarList
from store.sql.queries.connection_rows import ConnectionRef
from workers.jobs import ListCalendars, ReadEvents, Reply, ShowCalendars


@dataclass(frozen=True, slots=True)
class EventList:
    """Events by start, each with the shown id of its calendar; and the calendars that could not be read."""

    events: list[tuple[str, Event]]
    failures: Failures


def find_events(
    refs: Sequence[ConnectionRef], selector: CalendarSelector, start: int, end: int, freshness: Freshness
) -> EventList:
    """The events that overlap ``[start, end)``, in UTC milliseconds, in the selected calendars."""
    deadline = services().deadline()
    selection = select(refs, selector, freshness, deadline)
    read = _read(selection.targets, start, end, deadline)
    names = renamed([target for target, _ in read])
    read = [(target, each) for target, (_, each) in zip(names, read, strict=True)]
    failures = selection.failures
    failures += [Failure(t.shown, t.connection, each) for t, each in read if isinstance(each, Failed)]
    calendars = [(t.shown, each) for t, each in read if not isinstance(each, Failed)]
    events = [(shown, event) for shown, each in calendars for event in each]
    events.sort(key=event_sort_key)
    return EventList(events, Failures(failures, something_read=bool(calendars)))


@dataclass(frozen=True, slots=True)
class Selection:
    """The calendars to read, and failures of accounts that were not asked for events.

    ``failed_connections`` are the internal ids of these accounts.
    """

    targets: list[Target]
    failures: list[Failure]
    failed_connections: frozenset[str]


def select(
    refs: Sequence[ConnectionRef], selector: CalendarSelector, freshness: Freshness, deadline: float
) -> Selection:
    """The selected calendars whose events can be read, by the calendar lists that are needed for that."""
    began = time.monotonic()
    failed_connections = {ref.id: failed for ref in refs if (failed := _precheck(ref, selector))}
    readable = [ref for ref in refs if ref.id not in failed_connections]
    lists, unlisted = _lists(readable, selector, freshness, began + (deadline - began) * LISTS_SHARE)
    if selector.everything:
        failed_connections |= unlisted
    targets = _targets(refs, selector, lists)
    return Selection(
        [each for each in targets if each.connection.id not in failed_connections],
        _connection_failures(refs, selector, failed_connections)
        + _calendar_failures(targets, failed_connections),
        frozenset(failed_connections),
    )


def event_sort_key(entry: tuple[str, Event]) -> tuple[str | int, ...]:
    """The sort key of an event with the shown id of its calendar."""
    calendar_id, event = entry
    return event.start, event.end, event.id, event.provider, calendar_id


def _precheck(ref: ConnectionRef, selector: CalendarSelector) -> Failed | None:
    lists = [Operation.LIST_CALENDARS] if selector.everything else []
    # The request is about events: their scopes allow to list calendars too.
    return precheck(ref, Operation.LIST_EVENTS, *lists)


def _connection_failures(
    refs: Sequence[ConnectionRef], selector: CalendarSelector, failed_connections: Mapping[str, Failed]
) -> list[Failure]:
    """Failures of refused accounts, if all their calendars are requested."""
    return [
        connection_failure(ref, failed_connections[ref.id])
        for ref in refs
        if selector.everything and ref.id in failed_connections
    ]


def _calendar_failures(targets: Sequence[Target], failed_connections: Mapping[str, Failed]) -> list[Failure]:
    """Failures of requested calendars in refused accounts."""
    return [
        Failure(t.shown, t.connection, failed_connections[t.connection.id], connection_failed=True)
        for t in targets
        if t.connection.id in failed_connections
    ]


def _lists(
    refs: Sequence[ConnectionRef], selector: CalendarSelector, freshness: Freshness, deadline: float
) -> tuple[dict[str, CalendarList], dict[str, Failed]]:
    """The calendar lists that are needed, cached or read now, and the failures by connection."""
    lists = services().stores.calendar_lists.load([ref.id for ref in refs], newer_than=freshness.newer_than)
    missing = {
        ref.id: ListCalendars(ref.id) for ref in connections_to_list(refs, selector) if ref.id not in lists
    }
    replies = worker_calls.read(missing, until=deadline)
    failed = {each: reply.failed for each, reply in replies.items() if reply.failed is not None}
    for connection_id, reply in replies.items():
        if reply.listed is not None:
            lists[connection_id] = CalendarList(reply.read_at, reply.listed)
    return lists, failed


def _targets(
    refs: Sequence[ConnectionRef], selector: CalendarSelector, lists: Mapping[str, CalendarList]
) -> list[Target]:
    if not selector.everything:
        return distinct(targets_by_id(selector.ids, refs, lists), Operation.LIST_EVENTS)
    listed = [
        each for ref in refs if ref.id in lists for each in listed_targets(ref, lists[ref.id].calendars)
    ]
    return distinct(listed, Operation.LIST_EVENTS)


def _read(
    targets: Sequence[Target], start: int, end: int, deadline: float
) -> list[tuple[Target, tuple[Event, ...] | Failed]]:
    batches = list(_batches(targets))
    jobs = {str(number): _job(batch, start, end) for number, batch in enumerate(batches)}
    replies = worker_calls.read(jobs, until=deadline).values()
    return [
        (target, reply.failed or reply.events[target.key.calendar])
        for batch, reply in zip(batches, replies, strict=True)
        for target in batch
    ]


def _batches(targets: Sequence[Target]) -> Iterator[tuple[Target, ...]]:
    """The calendars of each account, divided into batches of the size that its provider allows."""
    for ref, own in groupby(targets, key=lambda target: target.connection):
        size = registry.definition(ref.provider).costs.calendars_of_events
        while batch := tuple(islice(own, size)):
            yield batch


def _job(batch: Sequence[Target], start: int, end: int) -> ReadEvents:
    calendars = tuple(target.key.calendar for target in batch)
    return ReadEvents(batch[0].connection.id, calendars, start, end)


@dataclass(frozen=True, slots=True)
class UserCalendarList:
    """The calendars of the accounts that could be read, sorted; and the accounts that could not be read."""

    calendars: list[tuple[ConnectionRef, Calendar]]
    failures: Failures


def find_calendars(refs: Sequence[ConnectionRef]) -> UserCalendarList:
    """All calendars on the lists of the accounts."""
    precheck_failures = {
        ref.id: failed for ref in refs if (failed := precheck(ref, Operation.LIST_CALENDARS))
    }
    jobs = {ref.id: ShowCalendars(ref.id) for ref in refs if ref.id not in precheck_failures}
    replies = {each: Reply(failed=failed) for each, failed in precheck_failures.items()}
    replies |= worker_calls.read(jobs)
    failures = Failures(
        [connection_failure(ref, failed) for ref in refs if (failed := replies[ref.id].failed)],
        something_read=any(reply.failed is None for reply in replies.values()),
    )
    return UserCalendarList(
        sorted(
            ((ref, each) for ref in refs for each in replies[ref.id].calendars),
            key=calendar_sort_key,
        ),
        failures,
    )


def calendar_sort_key(entry: tuple[ConnectionRef, Calendar]) -> tuple[str | int, ...]:
    """The sort key: Google's calendars first, the main calendars first, then by name."""
    ref, calendar = entry
    return calendar.provider, not calendar.primary, calendar.subject, calendar.id, ref.public_id

"""Busy periods for a request: from the cache, and from the workers what the cache lacks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from app.services import services
from app.targets import Target, Wanted, listed, main_calendar, named, refusal, to_list
from providers.base import Failed, Outcome, Read
from providers.scopes import Operation
from scheduling.intervals import Intervals
from store.busy_cache import Cached, CalendarKey
from store.calendar_lists import CalendarList
from store.queries.connections import ConnectionRef
from workers.fanout import LATE
from workers.jobs import Job, ListCalendars, ReadBusy, Reply
from workers.queues import Queue

Lists = Mapping[str, CalendarList]

# How much of the time may go into finding out whose a calendar is: reading it has to fit into the rest.
LISTS_SHARE = 0.4


class Ask(NamedTuple):
    """One user's connections, and which of their calendars matter."""

    connections: Sequence[ConnectionRef]
    wanted: Wanted


class CalendarOutcome(NamedTuple):
    """What became of one calendar.

    ``read_at`` is when the oldest part of it was read, in milliseconds. ``of_account``: it failed because
    its whole account did.
    """

    target: Target
    outcome: Outcome
    read_at: int | None = None
    of_account: bool = False


@dataclass(slots=True)
class Picture:
    """The answer to one ask: each calendar read or failed, and the accounts of unknown calendars."""

    calendars: list[CalendarOutcome] = field(default_factory=list)
    accounts: list[tuple[ConnectionRef, Failed]] = field(default_factory=list)
    # When the calendar lists that were remembered, and say what "all" is, were read.
    lists_read_at: list[int] = field(default_factory=list)

    def read(self) -> list[Intervals]:
        """The busy periods of each calendar that was read, in any order and perhaps touching."""
        return [each.outcome.busy for each in self.calendars if isinstance(each.outcome, Read)]


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old an answer may be: nothing read before ``newer_than`` counts; None takes what the cache has."""

    newer_than: int | None = None


def now() -> int:
    """This moment in milliseconds."""
    return time.time_ns() // 1_000_000


def oldest_read(pictures: Sequence[Picture]) -> int | None:
    """When the oldest of what was read was read."""
    moments = [each.read_at for picture in pictures for each in picture.calendars]
    moments += [read_at for picture in pictures for read_at in picture.lists_read_at]
    return min((moment for moment in moments if moment is not None), default=None)


def look(asks: Sequence[Ask], start: int, end: int, freshness: Freshness) -> list[Picture]:
    """A picture for each ask over ``[start, end)``.

    One deadline holds for all of it: what a provider has not answered by then has failed.
    """
    return _Look(asks, start, end, freshness).pictures()


class _Look:
    """One request's way through cache and workers: which calendars, what is known, what is read."""

    def __init__(self, asks: Sequence[Ask], start: int, end: int, freshness: Freshness) -> None:
        self._asks = asks
        self._start, self._end = start, end
        self._freshness = freshness
        seconds = services().settings.fanout_deadline_seconds
        self._deadline = time.monotonic() + seconds
        self._lists_deadline = time.monotonic() + seconds * LISTS_SHARE
        self._stores = services().stores
        # Answers that need no provider: the grant is gone, or too narrow.
        self._refused: dict[str, Reply] = {}
        for connections, wanted in asks:
            lists = [Operation.LIST_CALENDARS] if wanted.everything else []
            for connection in connections:
                failed = refusal(connection, *lists, Operation.FREE_BUSY)
                if failed is not None:
                    self._refused[connection.id] = Reply(failed=failed)

    def pictures(self) -> list[Picture]:
        """A picture for each ask, in order."""
        lists = self._lists()
        targets = [_targets(ask, lists) for ask in self._asks]
        known = self._known(dict.fromkeys(target.key for each in targets for target in each))
        jobs = _jobs(known) | self._jobs_for_all(lists)
        replies = self._refused | self._gather(jobs, self._deadline)
        pictures = [Picture([_outcome(t, known.get(t.key), jobs, replies) for t in each]) for each in targets]
        for ask, picture in zip(self._asks, pictures, strict=True):
            for connection in _unlisted(ask, lists):
                _add_all(picture, connection, replies[connection.id])
            if ask.wanted.everything:
                known_lists = [lists[each.id] for each in ask.connections if each.id in lists]
                picture.lists_read_at += [each.read_at for each in known_lists]
        return pictures

    def _willing(self, connections: Iterable[ConnectionRef]) -> list[ConnectionRef]:
        return [connection for connection in connections if connection.id not in self._refused]

    def _gather(self, jobs: Mapping[str, Job], deadline: float) -> dict[str, Reply]:
        """The reply to each connection's job."""
        replies = services().fanout.gather(list(jobs.values()), queue=Queue.READS, deadline=deadline)
        return dict(zip(jobs, replies, strict=True))

    def _lists(self) -> Lists:
        """The calendar lists that say what to read, or in which account to look for it, as far as known."""
        asks = [ask for ask in self._asks if ask.wanted.ids or ask.wanted.everything]
        ids = [connection.id for ask in asks for connection in self._willing(ask.connections)]
        known = self._stores.calendar_lists.load(ids, newer_than=self._freshness.newer_than)
        missing = {
            connection.id: ListCalendars(connection.id)
            for ask in asks
            # Where everything is wanted, one job lists and reads.
            if not ask.wanted.everything
            for connection in self._willing(to_list(ask.connections, ask.wanted))
            if connection.id not in known
        }
        replies = self._gather(missing, self._lists_deadline)
        return known | {
            connection_id: CalendarList(reply.read_at, reply.listed)
            for connection_id, reply in replies.items()
            if reply.listed is not None
        }

    def _known(self, keys: Iterable[CalendarKey]) -> dict[CalendarKey, Cached]:
        """What the cache has of the calendars that may be read, in one round trip."""
        asked = [key for key in keys if key.connection not in self._refused]
        cached = self._stores.busy.load(asked, self._start, self._end, newer_than=self._freshness.newer_than)
        return dict(zip(asked, cached, strict=True))

    def _jobs_for_all(self, lists: Lists) -> dict[str, ReadBusy]:
        """Jobs that read every calendar of the accounts whose list is not known."""
        start, end = self._stores.busy.hull(self._start, self._end)
        return {
            connection.id: ReadBusy(connection.id, None, start, end)
            for ask in self._asks
            for connection in self._willing(_unlisted(ask, lists))
        }


def _unlisted(ask: Ask, lists: Lists) -> list[ConnectionRef]:
    """The accounts of which everything is wanted and the list is not known."""
    return [each for each in ask.connections if ask.wanted.everything and each.id not in lists]


def _targets(ask: Ask, lists: Lists) -> list[Target]:
    """The calendars of an ask that are known by id."""
    connections, wanted = ask
    if wanted.ids:
        return named(wanted.ids, connections, lists)
    if wanted.everything:
        known = [connection for connection in connections if connection.id in lists]
        return [
            target for connection in known for target in listed(connection, lists[connection.id].calendars)
        ]
    return [main_calendar(connection) for connection in connections]


def _jobs(known: Mapping[CalendarKey, Cached]) -> dict[str, ReadBusy]:
    """One job for each connection: the calendars that lack something, over the hull of what they lack."""
    lacking: dict[str, list[tuple[str, tuple[int, int]]]] = {}
    for key, cached in known.items():
        if cached.missing is not None:
            lacking.setdefault(key.connection, []).append((key.calendar, cached.missing))
    return {
        connection: ReadBusy(
            connection,
            tuple(calendar for calendar, _ in each),
            min(start for _, (start, _) in each),
            max(end for _, (_, end) in each),
        )
        for connection, each in lacking.items()
    }


def _outcome(
    target: Target, cached: Cached | None, jobs: Mapping[str, ReadBusy], replies: Mapping[str, Reply]
) -> CalendarOutcome:
    """A calendar known by id: what the cache had, joined with what was read. Not ``cached``: refused."""
    if cached is not None and cached.missing is None:
        return CalendarOutcome(target, Read(cached.busy), cached.oldest_read)
    job, reply = jobs.get(target.connection.id), replies[target.connection.id]
    outcome = reply.failed or reply.outcomes[target.key.calendar]
    if isinstance(outcome, Failed) or cached is None or job is None:
        return CalendarOutcome(target, outcome, of_account=reply.failed is not None)
    # The job's hull may be wider than what this calendar lacked: inside it the new picture counts.
    outside = cached.busy.take((cached.busy.ends <= job.start) | (cached.busy.starts >= job.end))
    busy = Intervals(
        np.concatenate([outside.starts, outcome.busy.starts]),
        np.concatenate([outside.ends, outcome.busy.ends]),
    )
    read_at = reply.read_at if cached.oldest_read is None else min(reply.read_at, cached.oldest_read)
    return CalendarOutcome(target, Read(busy), read_at)


def _add_all(picture: Picture, connection: ConnectionRef, reply: Reply) -> None:
    """Put all of an account into a picture, each calendar by itself as soon as its list is known."""
    if reply.listed is None:
        picture.accounts.append((connection, reply.failed or LATE))
        return
    for target in listed(connection, reply.listed):
        outcome = reply.failed or reply.outcomes[target.key.calendar]
        read_at = reply.read_at if isinstance(outcome, Read) else None
        of_account = reply.failed is not None
        picture.calendars.append(CalendarOutcome(target, outcome, read_at, of_account))

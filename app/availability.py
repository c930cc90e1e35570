"""Busy periods for a request: from the cache, and from the workers what the cache lacks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from app.services import services
from app.targets import Target, Wanted, listed, main_calendar, named, refusal
from providers.base import Failed, Outcome, Read
from scheduling.intervals import Intervals
from store.busy_cache import Cached
from store.calendar_lists import ListedCalendar
from store.queries.connections import ConnectionRef
from workers.jobs import Job, ListCalendars, ReadBusy, Reply
from workers.queues import Queue

Lists = Mapping[str, Sequence[ListedCalendar]]


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


def oldest_read(pictures: Iterable[Picture]) -> int | None:
    """When the oldest of what was read was read."""
    moments = (each.read_at for picture in pictures for each in picture.calendars)
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
        self._deadline = time.monotonic() + services().settings.fanout_deadline_seconds
        self._stores = services().stores
        self._refused: dict[str, Failed] = {}
        for connections, wanted in asks:
            for connection in connections:
                failed = refusal(connection, lists=wanted.everything)
                if failed is not None:
                    self._refused[connection.id] = failed

    def pictures(self) -> list[Picture]:
        """A picture for each ask, in order."""
        lists = self._lists()
        targets = [_targets(ask, lists) for ask in self._asks]
        outcomes = self._read({target for each in targets for target in each})
        whole = self._read_whole(lists)
        return [
            self._picture(ask, own, outcomes, whole) for ask, own in zip(self._asks, targets, strict=True)
        ]

    def _picture(
        self,
        ask: Ask,
        targets: Iterable[Target],
        outcomes: Mapping[Target, CalendarOutcome],
        whole: Mapping[str, Failed | list[CalendarOutcome]],
    ) -> Picture:
        picture = Picture([outcomes[target] for target in targets])
        if ask.wanted.everything:
            for connection in ask.connections:
                result = self._refused.get(connection.id) or whole.get(connection.id, [])
                if isinstance(result, Failed):
                    picture.accounts.append((connection, result))
                else:
                    picture.calendars += result
        return picture

    def _willing(self, ask: Ask) -> list[ConnectionRef]:
        return [connection for connection in ask.connections if connection.id not in self._refused]

    def _gather(self, jobs: Sequence[Job]) -> list[Reply]:
        return services().fanout.gather(jobs, queue=Queue.READS, deadline=self._deadline)

    def _lists(self) -> Lists:
        """The calendar lists that say what to read, or in which account to look for it, as far as known."""
        asks = [ask for ask in self._asks if ask.wanted.needs_lists(len(ask.connections))]
        ids = [connection.id for ask in asks for connection in self._willing(ask)]
        known: dict[str, Sequence[ListedCalendar]] = {}
        if self._freshness.newer_than is None:
            known.update(self._stores.calendar_lists.load(ids))
        missing = [
            connection.id
            for ask in asks
            # Where everything is wanted, one job lists and reads.
            if not ask.wanted.everything
            for connection in self._willing(ask)
            if connection.id not in known
        ]
        for connection_id, reply in zip(
            missing, self._gather([ListCalendars(connection_id) for connection_id in missing]), strict=True
        ):
            if reply.listed is not None:
                known[connection_id] = reply.listed
        return known

    def _read(self, targets: set[Target]) -> dict[Target, CalendarOutcome]:
        """Read known calendars: one round trip to the cache, one job for each account that lacks some."""
        refused = {
            target: CalendarOutcome(target, self._refused[target.connection.id], of_account=True)
            for target in targets
            if target.connection.id in self._refused
        }
        asked = [target for target in targets if target not in refused]
        known = self._stores.busy.load(
            [target.key for target in asked], self._start, self._end, newer_than=self._freshness.newer_than
        )
        jobs = _jobs(asked, known)
        replies = dict(zip(jobs, self._gather(list(jobs.values())), strict=True))
        read = {}
        for target, cached in zip(asked, known, strict=True):
            connection_id = target.connection.id
            if cached.missing is None:
                read[target] = CalendarOutcome(target, Read(cached.busy), cached.oldest_read)
            else:
                read[target] = _joined(target, cached, jobs[connection_id], replies[connection_id])
        return refused | read

    def _read_whole(self, lists: Lists) -> dict[str, Failed | list[CalendarOutcome]]:
        """Read every calendar of the accounts whose list is not known."""
        start, end = self._stores.busy.hull(self._start, self._end)
        unlisted = [
            connection
            for ask in self._asks
            if ask.wanted.everything
            for connection in self._willing(ask)
            if connection.id not in lists
        ]
        replies = self._gather([ReadBusy(connection.id, None, start, end) for connection in unlisted])
        return {
            connection.id: reply.failed
            or [
                CalendarOutcome(target, reply.outcomes[target.key.calendar], reply.read_at)
                for target in listed(connection, reply.listed or ())
            ]
            for connection, reply in zip(unlisted, replies, strict=True)
        }


def _targets(ask: Ask, lists: Lists) -> list[Target]:
    """The calendars of an ask that are known by id."""
    connections, wanted = ask
    if wanted.ids:
        return named(wanted.ids, connections, lists)
    if wanted.everything:
        known = [connection for connection in connections if connection.id in lists]
        return [target for connection in known for target in listed(connection, lists[connection.id])]
    return [main_calendar(connection) for connection in connections]


def _jobs(targets: Sequence[Target], known: Sequence[Cached]) -> dict[str, ReadBusy]:
    """One job for each connection: the calendars that lack something, over the hull of what they lack."""
    jobs: dict[str, ReadBusy] = {}
    for target, cached in zip(targets, known, strict=True):
        if cached.missing is None:
            continue
        start, end = cached.missing
        calendars: tuple[str, ...] = (target.key.calendar,)
        before = jobs.get(target.connection.id)
        if before is not None and before.calendars is not None:
            start, end = min(start, before.start), max(end, before.end)
            calendars = tuple(dict.fromkeys(before.calendars + calendars))
        jobs[target.connection.id] = ReadBusy(target.connection.id, calendars, start, end)
    return jobs


def _joined(target: Target, cached: Cached, job: ReadBusy, reply: Reply) -> CalendarOutcome:
    """What the cache had of a calendar, together with what was read."""
    outcome = reply.failed or reply.outcomes[target.key.calendar]
    if isinstance(outcome, Failed):
        return CalendarOutcome(target, outcome, of_account=reply.failed is not None)
    # The job's hull may be wider than what this calendar lacked: inside it the new picture counts.
    outside = cached.busy.take((cached.busy.ends <= job.start) | (cached.busy.starts >= job.end))
    busy = Intervals(
        np.concatenate([outside.starts, outcome.busy.starts]),
        np.concatenate([outside.ends, outcome.busy.ends]),
    )
    read_at = reply.read_at if cached.oldest_read is None else min(reply.read_at, cached.oldest_read)
    return CalendarOutcome(target, Read(busy), read_at)

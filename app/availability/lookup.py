"""Busy periods for a request: from the cache, and from the workers what the cache lacks."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from app.accounts.calendar_names import renamed
from app.availability.selection import (
    CalendarSelector,
    Target,
    listed,
    main_calendar,
    named,
    precheck,
    reads_main_only,
    to_list,
)
from app.http import auth
from app.services import services
from providers.base import PRIMARY, Failed, Read
from providers.scopes import Operation
from scheduling.intervals import Groups, Indexes, Intervals
from store.cache.busy_cache import NEVER, CalendarKey, Known
from store.cache.calendar_lists import CalendarList
from store.cache.versioned_cache import VERSION_KEY
from store.sql.queries.connections import ConnectionRef
from workers.fanout.admission import Overloaded
from workers.fanout.client import LATE
from workers.fanout.jobs import Job, ListCalendars, ReadBusy, Reply
from workers.fanout.request import CoalescingPolicy
from workers.queues import Queue

log = logging.getLogger(__name__)

Lists = Mapping[str, CalendarList]

# How much of the time may go into finding out whose a calendar is: reading it has to fit into the rest.
LISTS_SHARE = 0.4

_NOTHING = Intervals.of(())


class CalendarRequest(NamedTuple):
    """One user's connections, and which of their calendars matter."""

    connections: Sequence[ConnectionRef]
    wanted: CalendarSelector


class UnreadCalendar(NamedTuple):
    """Why a calendar could not be read; ``of_account``: because its whole account could not."""

    failed: Failed
    of_account: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class BusyResult:
    """The answer to all asks: every calendar, read or not, those of one ask beside each other.

    ``busy`` has the periods of each of ``targets``, in any order and perhaps touching; none for what is in
    ``unread``, by its place. ``accounts`` are those of which not even the calendars are known, by ask.
    ``oldest_read`` is when the oldest part of it was read, in milliseconds.
    """

    targets: Sequence[Target]
    ask_of: Indexes
    asks: int
    busy: Groups
    unread: Mapping[int, UnreadCalendar]
    accounts: Mapping[int, Sequence[tuple[ConnectionRef, Failed]]]
    oldest_read: int | None

    def failing(self) -> set[int]:
        """The asks of which something could not be read."""
        return {int(self.ask_of[place]) for place in self.unread} | set(self.accounts)

    def places(self, ask: int) -> range:
        """Where the calendars of one ask stand."""
        if self.asks == 1:
            return range(len(self.targets))
        first, after = self.ask_of.searchsorted((ask, ask + 1)).tolist()
        return range(first, after)

    def of_ask(self, ask: int) -> tuple[Groups, Indexes, int]:
        """The calendars of one ask as the engine takes them, for a single member."""
        if self.asks == 1:
            return self.busy, self.ask_of, 1
        places = self.places(ask)
        return self.busy.span(places.start, places.stop), np.zeros(len(places), np.int64), 1

    def of_asks(self, asks: Indexes) -> tuple[Groups, Indexes, int]:
        """The calendars of some asks, in order, as the engine takes them; the first ask is member 0."""
        if asks.size == self.asks:
            return self.busy, self.ask_of, self.asks
        places = np.isin(self.ask_of, asks).nonzero()[0]
        return self.busy.take(places), asks.searchsorted(self.ask_of[places]), int(asks.size)


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old an answer may be: nothing read before ``newer_than`` counts; None takes what the cache has."""

    newer_than: int | None = None


def now() -> int:
    """This moment in milliseconds."""
    return time.time_ns() // 1_000_000


def look_up(asks: Sequence[CalendarRequest], start: int, end: int, freshness: Freshness) -> BusyResult:
    """What became of every calendar of each ask over ``[start, end)``.

    One deadline holds for all of it: what a provider has not answered by then has failed.
    """
    return _AvailabilityLookup(asks, start, end, freshness).picture()


class _AvailabilityLookup:
    """One request's way through cache and workers: which calendars, what is known, what is read."""

    def __init__(self, asks: Sequence[CalendarRequest], start: int, end: int, freshness: Freshness) -> None:
        self._asks = asks
        self._start, self._end = start, end
        self._freshness = freshness
        # Before anything is looked up: what others read from now on will do.
        self._shared = CoalescingPolicy(began=time.time() * 1000, newer_than=freshness.newer_than)
        seconds = services().settings.fanout_deadline_seconds
        self._deadline = time.monotonic() + seconds
        self._lists_deadline = time.monotonic() + seconds * LISTS_SHARE
        self._stores = services().stores
        # Answers that need no provider: the grant is gone, or too narrow.
        self._refused: dict[str, Reply] = {}
        for connections, wanted in asks:
            for connection in connections:
                lists = wanted.everything and not reads_main_only(connection)
                failed = precheck(connection, *(_TO_READ_EVERYTHING if lists else _TO_READ))
                if failed is not None:
                    self._refused[connection.id] = Reply(failed=failed)

    def picture(self) -> BusyResult:
        """The whole answer."""
        lists = self._lists()
        targets = [_targets(ask, lists) for ask in self._asks]
        keys = list(dict.fromkeys(self._readable(targets)))
        known = self._stores.busy.load(
            keys, self._start, self._end, newer_than=self._freshness.newer_than, beside=VERSION_KEY
        )
        auth.verify_version(known.beside)
        unlisted = self._jobs_for_all(lists)
        jobs = _jobs(keys, known.missing) | unlisted
        stale = self._stale(keys, known)
        self._count(len(keys), len(stale), len(known.missing), len(unlisted))
        self._refresh(keys, stale, lists)
        replies = self._refused | self._gather(jobs, self._deadline)
        drawn = _ResultBuilder(keys, known, jobs, replies)
        for n, ask in enumerate(self._asks):
            drawn.calendars(n, targets[n])
            for connection in _unlisted(ask, lists):
                drawn.account(n, connection)
        used = [
            lists[each.id].read_at
            for ask in self._asks
            if ask.wanted.everything
            for each in ask.connections
            if each.id in lists
        ]
        if jobs:
            drawn.targets = list(renamed(drawn.targets))
        return drawn.picture(len(self._asks), used)

    def _stale(self, keys: Sequence[CalendarKey], known: Known) -> list[int]:
        """The places of calendars of which this answer takes what is old."""
        old = self._stores.busy.stale(known, now())
        # Of a calendar that is watched, what is old is as good as new.
        watched = self._stores.busy.watched([keys[place] for place in old])
        return [place for place, channel in zip(old, watched, strict=True) if channel is None]

    def _count(self, known_by_id: int, stale: int, missing: int, unlisted: int) -> None:
        """An account of which everything is wanted and no list is known counts as one calendar."""
        self._stores.counters.cache(
            hits=known_by_id - stale - missing, stale=stale, misses=missing + unlisted
        )

    def _refresh(self, keys: Sequence[CalendarKey], stale: Sequence[int], lists: Lists) -> None:
        """Have read, for those who come next, what this answer takes although it is stale."""
        hull = self._stores.busy.hull(self._start, self._end)
        jobs: list[Job] = [*_jobs(keys, dict.fromkeys(stale, hull)).values()]
        jobs += [ListCalendars(connection) for connection in self._lists_to_renew(lists)]
        try:
            services().fanout.refresh(jobs, queue=Queue.READS, deadline=self._deadline, shared=self._shared)
        except (RedisError, OperationalError, Overloaded) as error:
            # There is an answer; who asks for a fresh one will be told.
            log.warning("stale calendars could not be refreshed: %s", type(error).__name__)

    def _lists_to_renew(self, lists: Lists) -> Iterator[str]:
        """The accounts of which everything is wanted, as far as a stale list tells what that is."""
        for ask in self._asks:
            for connection in ask.connections if ask.wanted.everything else ():
                known = lists.get(connection.id)
                if known is not None and not self._stores.calendar_lists.fresh(known, now()):
                    yield connection.id

    def _readable(self, targets: Iterable[Sequence[Target]]) -> Iterator[CalendarKey]:
        refused = self._refused
        return (target.key for each in targets for target in each if target.key.connection not in refused)

    def _willing(self, connections: Iterable[ConnectionRef]) -> list[ConnectionRef]:
        return [connection for connection in connections if connection.id not in self._refused]

    def _gather(self, jobs: Mapping[str, Job], deadline: float) -> dict[str, Reply]:
        """The reply to each connection's job."""
        replies = services().fanout.gather(
            list(jobs.values()), queue=Queue.READS, deadline=deadline, shared=self._shared
        )
        return dict(zip(jobs, replies, strict=True))

    def _lists(self) -> Lists:
        """The calendar lists that say what to read, or in which account to look for it, as far as known."""
        asks = [ask for ask in self._asks if ask.wanted.ids or ask.wanted.everything]
        if not asks:
            return {}
        auth.verify_version_now()
        ids = [connection.id for ask in asks for connection in self._willing(ask.connections)]
        known = self._stores.calendar_lists.load(ids, newer_than=self._freshness.newer_than)
        unknown: dict[str, bool] = {}
        for ask in asks:
            for connection in self._willing(to_list(ask.connections, ask.wanted)):
                if connection.id not in known:
                    unknown[connection.id] = unknown.get(connection.id, True) and ask.wanted.everything
        watched = self._watched([each for each, everything in unknown.items() if everything])
        missing = {
            each: ListCalendars(each)
            for each, everything in unknown.items()
            # Where everything is wanted, one job lists and reads; what is watched need not be read again.
            if not everything or each in watched
        }
        replies = self._gather(missing, self._lists_deadline)
        return known | {
            connection_id: CalendarList(reply.read_at, reply.listed)
            for connection_id, reply in replies.items()
            if reply.listed is not None
        }

    def _watched(self, connections: Sequence[str]) -> set[str]:
        """Those of the connections whose main calendar is watched: what is kept of it outlives the list."""
        if self._freshness.newer_than is not None:
            return set()
        channels = self._stores.busy.watched([CalendarKey(each, PRIMARY) for each in connections])
        return {each for each, channel in zip(connections, channels, strict=True) if channel is not None}

    def _jobs_for_all(self, lists: Lists) -> dict[str, ReadBusy]:
        """Jobs that read every calendar of the accounts whose list is not known."""
        start, end = self._stores.busy.hull(self._start, self._end)
        return {
            connection.id: ReadBusy(connection.id, None, start, end)
            for ask in self._asks
            for connection in self._willing(_unlisted(ask, lists))
        }


_TO_READ = (Operation.FREE_BUSY,)
_TO_READ_EVERYTHING = (Operation.LIST_CALENDARS, Operation.FREE_BUSY)


@dataclass(slots=True)
class _ResultBuilder:
    """A picture under way, calendar by calendar."""

    keys: Sequence[CalendarKey]
    known: Known
    jobs: Mapping[str, ReadBusy]
    replies: Mapping[str, Reply]
    targets: list[Target] = field(default_factory=list)
    ask_of: list[int] = field(default_factory=list)
    # Of each target: its place among what is known, or what was read anew.
    busy: list[int | Intervals] = field(default_factory=list)
    unread: dict[int, UnreadCalendar] = field(default_factory=dict)
    accounts: dict[int, list[tuple[ConnectionRef, Failed]]] = field(default_factory=dict)
    read_at: int = NEVER
    _place: dict[CalendarKey, int] = field(init=False)

    def __post_init__(self) -> None:
        self._place = {key: place for place, key in enumerate(self.keys)}

    def calendars(self, ask: int, targets: Sequence[Target]) -> None:
        """Put in calendars known by id: what the cache had, joined with what was read."""
        for target in targets:
            place = self._place.get(target.key)
            if place is None or place in self.known.missing:
                self._read(ask, target, place)
            else:
                self._add(ask, target, place)

    def account(self, ask: int, connection: ConnectionRef) -> None:
        """Put in all of an account, each calendar by itself as soon as its list is known."""
        reply = self.replies[connection.id]
        if reply.listed is None:
            self.accounts.setdefault(ask, []).append((connection, reply.failed or LATE))
            return
        for target in listed(connection, reply.listed):
            self._read(ask, target, None)

    def _read(self, ask: int, target: Target, place: int | None) -> None:
        """Put in a calendar that workers were asked for, or that was refused."""
        reply = self.replies[target.connection.id]
        outcome = reply.failed or reply.outcomes[target.key.calendar]
        if isinstance(outcome, Failed):
            self.unread[len(self.targets)] = UnreadCalendar(outcome, of_account=reply.failed is not None)
            self._add(ask, target, _NOTHING)
            return
        self.read_at = min(self.read_at, reply.read_at)
        busy = (
            outcome.busy if place is None else self._joined(place, self.jobs[target.connection.id], outcome)
        )
        self._add(ask, target, busy)

    def _joined(self, place: int, job: ReadBusy, read: Read) -> Intervals:
        """The job's hull may be wider than what this calendar lacked: inside it the new picture counts."""
        self.read_at = min(self.read_at, int(self.known.read_at[place]))
        kept = self.known.busy.group(place)
        kept = kept.take((kept.ends <= job.start) | (kept.starts >= job.end))
        return Intervals(
            np.concatenate([kept.starts, read.busy.starts]), np.concatenate([kept.ends, read.busy.ends])
        )

    def _add(self, ask: int, target: Target, busy: int | Intervals) -> None:
        self.targets.append(target)
        self.ask_of.append(ask)
        self.busy.append(busy)

    def picture(self, asks: int, lists_read_at: Sequence[int]) -> BusyResult:
        """All of it."""
        known_at = self.known.read_at.tolist()
        places = [each for each in self.busy if isinstance(each, int)]
        read_at = min([self.read_at, *[known_at[place] for place in places], *lists_read_at])
        if len(places) < len(self.busy):
            busy = Groups.pack(
                [self.known.busy.group(each) if isinstance(each, int) else each for each in self.busy]
            )
        elif places == list(range(len(self.keys))):
            busy = self.known.busy
        else:
            busy = self.known.busy.take(np.array(places, np.int64))
        return BusyResult(
            self.targets,
            np.array(self.ask_of, np.int64),
            asks,
            busy,
            self.unread,
            self.accounts,
            None if read_at == NEVER else read_at,
        )


def _unlisted(ask: CalendarRequest, lists: Lists) -> list[ConnectionRef]:
    """The accounts of which everything is wanted and the list is not known."""
    if not ask.wanted.everything:
        return []
    return [each for each in ask.connections if each.id not in lists and not reads_main_only(each)]


def _targets(ask: CalendarRequest, lists: Lists) -> list[Target]:
    """The calendars of an ask that are known by id."""
    connections, wanted = ask
    if wanted.ids:
        return named(wanted.ids, connections, lists)
    if wanted.everything:
        targets: list[Target] = []
        for connection in connections:
            if reads_main_only(connection):
                targets.append(main_calendar(connection))
            elif connection.id in lists:
                targets += listed(connection, lists[connection.id].calendars)
        return targets
    return [main_calendar(connection) for connection in connections]


def _jobs(keys: Sequence[CalendarKey], hulls: Mapping[int, tuple[int, int]]) -> dict[str, ReadBusy]:
    """One job for each connection: the calendars that lack something, over the hull of what they lack."""
    lacking: dict[str, list[tuple[str, tuple[int, int]]]] = {}
    for place, hull in hulls.items():
        lacking.setdefault(keys[place].connection, []).append((keys[place].calendar, hull))
    return {
        connection: ReadBusy(
            connection,
            tuple(calendar for calendar, _ in each),
            min(start for _, (start, _) in each),
            max(end for _, (_, end) in each),
        )
        for connection, each in lacking.items()
    }

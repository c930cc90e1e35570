"""The worker's side of a fan-out: take jobs while there are places, push replies as they finish."""

from __future__ import annotations

import heapq
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

from redis.client import Pipeline
from redis.exceptions import RedisError

from providers.base import Failed
from providers.errors import Reason
from store.busy_cache import CalendarKey
from store.calendar_lists import CalendarList
from store.queries import connections
from store.queries.connections import Credentials, SealedConnection
from store.throttle import GO, Answer, Ask, Throttle, Why
from workers import traffic
from workers.fanout import LEFTOVER_SECONDS, reply_list, work_list
from workers.jobs import Job, ReadBusy, Reply, pack_reply, unpack_job
from workers.places import Share
from workers.reads import goes_on
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# Jobs taken at once: their credentials come in one statement, their replies in few round trips.
BATCH = 32

# While more than anybody has places for are on the list, some are taken before there is a place for them: the
# places that come free one by one then do not cost a statement each.
PLENTY = 2 * BATCH

# Who gives up at the deadline says so itself, within this share of the time; for who goes on, we do then.
TO_GIVE_UP = 0.01

# Seconds for which a lease outlasts the last moment of its call.
LEASE_MARGIN = 1.0

GONE = Failed(Reason.NOT_FOUND, "The connection was removed")
BROKEN = Failed(Reason.PROVIDER_ERROR, "Something went wrong on our side while asking this account")

# Does one job by a deadline; without credentials where no connection is there yet.
Perform = Callable[[Runtime, Job, Credentials | None, float], Reply]


@dataclass(slots=True)
class Taken:
    """A job that was taken; ``row`` is its connection, ``ask`` what it has to ask of the throttle."""

    number: int
    job: Job
    row: SealedConnection | None = None
    ask: Ask | None = None
    # What it says when it comes to nothing but waiting.
    failed: Failed = BROKEN


class Waiting(NamedTuple):
    """A job that has no turn before ``when``, a moment of ``time.monotonic()``. It holds no place."""

    when: float
    number: int
    taken: Taken


class Done(NamedTuple):
    """A job that is over. ``generation`` is that of its connection's cache, noted before it began."""

    taken: Taken
    reply: Reply
    generation: bytes


class Drain:
    """One task's share of one fan-out. ``deadline`` is a moment of ``time.monotonic()``."""

    def __init__(self, runtime: Runtime, fanout: str, deadline: float, perform: Perform) -> None:
        self._runtime = runtime
        self._fanout = fanout
        self._deadline = deadline
        self._overdue = deadline + max(0.0, deadline - time.monotonic()) * TO_GIVE_UP
        self._perform = perform
        self._share: Share[Done] = runtime.places.share()
        self._in_flight: dict[int, Taken] = {}
        self._waiting: list[Waiting] = []
        # Taken and loaded, for the next places.
        self._ahead: deque[Taken] = deque()
        # How many were on the list when it was last looked at.
        self._left = 0
        self._answered: list[tuple[int, Reply]] = []
        # Jobs in flight that have been answered already: what they read is for the cache alone.
        self._told: set[int] = set()
        self._exhausted = False

    def run(self) -> None:
        """Work until the list is empty or the deadline has passed, and every job taken is answered.

        Reads under way at the deadline are answered then, and go on for the cache for a while.
        """
        try:
            # One look at the clock for both: what comes due between two would be neither done nor waited for.
            while self._anything_left(now := time.monotonic()):
                finished, granted = self._share.wait(self._until(now))
                taken = self._next(granted)
                self._exchange(finished, granted - len(taken))
                taken += self._next(granted - len(taken))
                self._share.give_back(granted - self._start(taken))
        finally:
            self._share.close()

    def _anything_left(self, now: float) -> bool:
        """Give up what is too late, and say how many places the rest can use."""
        if now >= self._deadline:
            self._exhausted = True
            self._answered += [(number, Reply(failed=taken.failed)) for _, number, taken in self._waiting]
            self._waiting = []
            # As those still on the list: nobody has begun them.
            self._ahead.clear()
        if now >= self._overdue:
            self._tell_late()
        if not self._exhausted:
            self._share.want(BATCH)
        else:
            self._share.want(len(self._ahead) + sum(each.when <= now for each in self._waiting))
        idle = not (self._in_flight or self._waiting or self._ahead or self._answered)
        return not (idle and self._exhausted)

    def _until(self, now: float) -> float | None:
        """The next moment after ``now`` at which something is to be done although nothing has happened."""
        if self._answered:
            return now
        moments = [self._deadline, self._overdue] + [each.when for each in self._waiting[:1]]
        return min((moment for moment in moments if moment > now), default=None)

    def _next(self, places: int) -> list[Taken]:
        """Jobs for so many places: those whose turn may have come, then those taken ahead."""
        now = time.monotonic()
        taken: list[Taken] = []
        while self._waiting and len(taken) < places and self._waiting[0].when <= now:
            taken.append(heapq.heappop(self._waiting).taken)
        while self._ahead and len(taken) < places:
            taken.append(self._ahead.popleft())
        return taken

    def _exchange(self, finished: Sequence[Done], places: int) -> None:
        """Fill the caches, push replies and take jobs for the places left, all in one round trip."""
        room = self._room(places)
        replies, work = reply_list(self._fanout), work_list(self._fanout)
        with self._runtime.stores.redis.pipeline(transaction=False) as pipe:
            for each in finished:
                self._finish(pipe, each)
            if self._answered:
                pipe.rpush(replies, *(pack_reply(*numbered) for numbered in self._answered))
                pipe.expire(replies, LEFTOVER_SECONDS)
                self._answered = []
            if room:
                pipe.lpop(work, room)
                pipe.llen(work)
            # What the cache refuses, for lack of memory say, must not cost anybody a reply.
            results = pipe.execute(raise_on_error=False)
        for refused in {str(result) for result in results if isinstance(result, RedisError)}:
            log.error("Redis refused a part of an answer: %s", refused)
        if room:
            popped, left = results[-2:]
            if isinstance(popped, RedisError):
                raise popped
            self._take(cast(list[bytes], popped or []), room)
            self._left = left if isinstance(left, int) else 0

    def _room(self, places: int) -> int:
        """How many jobs to take: one for each place, and some ahead while there are plenty."""
        if self._exhausted or time.monotonic() >= self._deadline:
            return 0
        if self._left > PLENTY and len(self._ahead) <= BATCH // 2:
            return places + BATCH
        return places

    def _take(self, popped: Sequence[bytes], room: int) -> None:
        """Have these jobs ready for their places."""
        self._exhausted = len(popped) < room
        taken = [Taken(*unpack_job(data)) for data in popped]
        try:
            self._load(taken)
        except Exception:
            # Whatever it is: these jobs have been taken.
            log.exception("connections could not be loaded")
            self._answered += [(each.number, Reply(failed=BROKEN)) for each in taken]
        else:
            self._ahead += taken

    def _start(self, taken: Sequence[Taken]) -> int:
        """Start the jobs whose turn it is; returns how many."""
        if not taken:
            return 0
        try:
            generations, answers = self._ask(taken)
        except Exception:
            # Whatever it is: these jobs have been taken.
            log.exception("the turns of jobs could not be had")
            self._answered += [(each.number, Reply(failed=BROKEN)) for each in taken]
            return 0
        started = 0
        for each in taken:
            connection = each.job.connection
            if connection is not None and each.row is None:
                self._answered.append((each.number, Reply(failed=GONE)))
            elif self._has_turn(each, answers.get(each.number, GO)):
                self._in_flight[each.number] = each
                self._share.run(partial(self._work, each, generations.get(connection or "", b"")))
                started += 1
        return started

    def _load(self, taken: Sequence[Taken]) -> None:
        """The connections of these jobs in one statement."""
        ids = {each.job.connection for each in taken if each.job.connection is not None}
        if not ids:
            return
        with self._runtime.stores.database.reading() as session:
            rows = connections.sealed(session, ids)
        for each in taken:
            each.row = rows.get(each.job.connection or "")
            if each.row is not None:
                each.ask = traffic.ask(each.job, each.row, f"{self._fanout}:{each.number}")

    def _ask(self, taken: Sequence[Taken]) -> tuple[Mapping[str, bytes], Mapping[int, Answer]]:
        """The generations of the jobs' connections, and whose turn it is, in one round trip."""
        stores = self._runtime.stores
        ids = list(dict.fromkeys(each.row.id for each in taken if each.row is not None))
        asking = {each.number: each.ask for each in taken if each.ask is not None}
        asks = list(asking.values())
        if not ids:
            return {}, {}
        left = self._deadline - time.monotonic()
        with stores.redis.pipeline(transaction=False) as pipe:
            stores.busy.ask_generations(pipe, ids)
            if asks:
                lease = max(0.0, left) + self._runtime.grace + LEASE_MARGIN
                stores.throttle.ask(pipe, asks, left=left, lease=lease)
            generations, *throttled = pipe.execute(raise_on_error=False)
        if isinstance(generations, RedisError):
            raise generations
        answers = Throttle.answers(throttled[0], asks) if asks else []
        return (
            {each: value or b"" for each, value in zip(ids, generations, strict=True)},
            dict(zip(asking, answers, strict=True)),
        )

    def _has_turn(self, taken: Taken, answer: Answer) -> bool:
        """Whether a job may begin now; if not, it waits, or has failed when there is no time for that."""
        if taken.ask is not None and answer.paid:
            taken.ask = replace(taken.ask, calls=0)
        if not answer.wait:
            return True
        if taken.row is not None and (taken.failed is BROKEN or answer.why is not Why.MAILBOX):
            taken.failed = traffic.throttled(taken.row, answer)
        when = time.monotonic() + answer.wait
        if when < self._deadline:
            heapq.heappush(self._waiting, Waiting(when, taken.number, taken))
        else:
            self._answered.append((taken.number, Reply(failed=taken.failed)))
        return False

    def _work(self, taken: Taken, generation: bytes) -> Done:
        """Runs in a place. Whatever happens, the job is answered: nobody waits for nothing."""
        reply = Reply(failed=BROKEN)
        try:
            credentials = None
            if taken.row is not None:
                credentials = connections.open_credentials(taken.row, self._runtime.stores.keyring)
            reply = self._perform(self._runtime, taken.job, credentials, self._deadline)
        except Exception:
            log.exception("a job failed unexpectedly", extra={"connection": taken.job.connection})
        return Done(taken, reply, generation)

    def _tell_late(self) -> None:
        """Answer for the reads that go on beyond the deadline: their request gives up."""
        for number, taken in self._in_flight.items():
            if number not in self._told and taken.row is not None and goes_on(taken.job):
                self._answered.append((number, Reply(failed=traffic.overdue(taken.row))))
                self._told.add(number)

    def _finish(self, pipe: Pipeline, done: Done) -> None:
        """Queue what a job has read for the caches, and its reply unless it has been answered."""
        taken, reply = done.taken, done.reply
        stores, job = self._runtime.stores, taken.job
        del self._in_flight[taken.number]
        if taken.ask is not None:
            stores.throttle.release(pipe, taken.ask)
        if reply.listed is not None and job.connection is not None:
            calendars = CalendarList(reply.read_at, reply.listed)
            stores.calendar_lists.store(pipe, job.connection, calendars)
        if isinstance(job, ReadBusy):
            for calendar, busy in reply.read():
                stores.busy.store(
                    pipe,
                    CalendarKey(job.connection, calendar),
                    busy,
                    job.start,
                    job.end,
                    read_at=reply.read_at,
                    generation=done.generation,
                )
        if taken.number not in self._told:
            self._answered.append((taken.number, reply))

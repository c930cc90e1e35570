"""The worker's side of a fan-out: take jobs while there are places, push replies as they finish."""

from __future__ import annotations

import heapq
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from redis.client import Pipeline
from redis.exceptions import RedisError

from providers.base import Failed
from providers.errors import Reason
from store.cache.busy_cache import CalendarKey
from store.cache.calendar_lists import CalendarList
from store.coordination.provider_rate_limiter import GO, Permit, ProviderRateLimiter, WaitReason
from store.sql.queries import connections
from store.sql.queries.connections import Credentials
from workers.execution import call_policy
from workers.execution.reads import continues_past_deadline
from workers.fanout import failures
from workers.fanout.coalescing import Coalescing
from workers.fanout.codec import (
    LEFTOVER_SECONDS,
    DecodeError,
    Packed,
    address,
    numbered,
    pack_body,
    pack_reply,
    reply_list,
    unpack_job,
    work_list,
)
from workers.fanout.drain_state import FinishedJob, TakenJob, WaitingJob
from workers.fanout.egress import Attempt
from workers.fanout.failures import BROKEN
from workers.fanout.handover import HandOver
from workers.fanout.jobs import CalendarRead, Job, ReadBusy, Reply
from workers.fanout.pool import PoolShare
from workers.runtime import Runtime
from workers.telemetry import metrics, tracing

log = logging.getLogger(__name__)

# Jobs taken ahead at once: their credentials come in one statement.
BATCH = 32

# While more are on the list than so many processes of this size have places for, some are taken before
# there is a place for them: the places that come free one by one then do not cost a statement each. Taken
# too early, they would wait here while another process has places free.
PROCESSES_BESIDE = 4

# While so many are in flight, what finishes within so many seconds is handled in one turn: two round trips
# and a statement for each read that ends would cost as much time as the reads themselves.
MANY = 16
GATHER = 0.006

# Of the jobs taken ahead, so many are kept ready to begin in the very moment in which a place comes free:
# about as many as end within one turn.
STOCK = 16

# Who gives up at the deadline says so itself, within this share of the time; for who goes on, we do then.
TO_GIVE_UP = 0.01

# Seconds for which a lease outlasts the last moment of its call.
LEASE_MARGIN = 1.0

# Seconds between two looks at whether this worker still reaches the providers that its jobs call.
LOOK_AT_EGRESS = 0.5

GONE = Failed(Reason.NOT_FOUND, "The connection was removed")
ISOLATED = Failed(Reason.PROVIDER_ERROR, "The provider could not be reached", unsent=True)

# Does one job by a deadline; without credentials where no connection is there yet.
Perform = Callable[[Runtime, Job, Credentials | None, float], Reply]


class Drain:
    """One task's share of one fan-out: it wants places for ``most`` jobs, as long as there are any.

    ``deadline`` is a moment of ``time.monotonic()``. The jobs are on the list ``work``, by default that of
    the request. ``others`` is the way to other workers, for jobs that this one cannot do; without it all jobs
    are done here.
    """

    def __init__(
        self,
        runtime: Runtime,
        fanout: str,
        deadline: float,
        perform: Perform,
        *,
        most: int = BATCH,
        work: str | None = None,
        others: HandOver | None = None,
    ) -> None:
        self._runtime = runtime
        self._fanout = fanout
        self._work_list = work or work_list(fanout)
        self._others = others
        self._ids = itertools.count()
        self._most = most
        self._deadline = deadline
        self._overdue = deadline + max(0.0, deadline - time.monotonic()) * TO_GIVE_UP
        self._perform = perform
        self._share: PoolShare[FinishedJob] = runtime.pool.share()
        self._in_flight: dict[int, TakenJob] = {}
        self._waiting: list[WaitingJob] = []
        # Taken and loaded, for the next places.
        self._ahead: deque[TakenJob] = deque()
        # How many were on the list when it was last looked at.
        self._left = 0
        self._answered: list[bytes] = []
        # Jobs in flight that have been answered already: what they read is for the cache alone.
        self._told: set[int] = set()
        self._sharing = Coalescing(runtime.stores.single_flight)
        self._counters = runtime.stores.counters
        self._exhausted = False
        # Which calendars were read, each with its provider.
        self.read: list[tuple[str, CalendarKey]] = []

    def run(self) -> None:
        """Work until the list is empty or the deadline has passed, and every job taken is answered.

        Reads under way at the deadline are answered then, and go on for the cache for a while.
        """
        try:
            # One look at the clock for both: what comes due between two would be neither done nor waited for.
            while self._anything_left(now := time.monotonic()):
                gather = GATHER if len(self._in_flight) >= MANY else 0.0
                finished, granted = self._share.wait(self._until(now), gather=gather)
                taken = self._next(granted)
                self._exchange(finished, granted - len(taken))
                self._pass_on()
                taken += self._next(granted - len(taken))
                self._share.give_back(granted - self._start(taken + self._spare(), granted))
        finally:
            self._share.close()

    def _anything_left(self, now: float) -> bool:
        """Give up what is too late, and say how many places the rest can use."""
        if now >= self._deadline:
            self._exhausted = True
            for waiting in self._waiting:
                self._give_up(waiting.taken, waiting.taken.failed)
            self._waiting = []
            # As those still on the list: nobody has begun them.
            self._sharing.abandon(each.flight for each in self._ahead)
            self._ahead.clear()
        if now >= self._overdue:
            self._tell_late()
        if not self._exhausted:
            self._share.want(self._most)
        else:
            due = sum(each.when <= now for each in self._waiting)
            self._share.want(self._share.prefetched + len(self._ahead) + due)
        idle = not (self._in_flight or self._waiting or self._ahead or self._answered)
        return not (idle and self._exhausted and not self._sharing.urgent(now))

    def _until(self, now: float) -> float | None:
        """The next moment after ``now`` at which something is to be done although nothing has happened."""
        if self._answered or self._sharing.urgent(now) or self._room_to_pass_on():
            return now
        moments = [self._deadline, self._overdue, *self._sharing.until()]
        if self._others is not None:
            moments.append(now + LOOK_AT_EGRESS)
        moments += [each.when for each in self._waiting[:1]]
        return min((moment for moment in moments if moment > now), default=None)

    def _next(self, places: int) -> list[TakenJob]:
        """Jobs for so many places: those whose turn may have come, then those taken ahead."""
        now = time.monotonic()
        taken: list[TakenJob] = []
        while self._waiting and len(taken) < places and self._waiting[0].when <= now:
            taken.append(heapq.heappop(self._waiting).taken)
        while self._ahead and len(taken) < places:
            taken.append(self._ahead.popleft())
        return taken

    def _exchange(self, finished: Sequence[FinishedJob], places: int) -> None:
        """Fill the caches, push replies and take jobs for the places left, all in one round trip."""
        room = self._room(places)
        replies, work = reply_list(self._fanout), self._work_list
        with self._runtime.stores.redis.pipeline(transaction=False) as pipe:
            self._runtime.stores.circuit_breakers.tell(pipe)
            for each in finished:
                self._finish(pipe, each)
            # Before the replies: who has its own and asks again has begun after the landing.
            self._sharing.send(pipe, replies)
            if self._answered:
                pipe.rpush(replies, *self._answered)
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
            self._left = left if isinstance(left, int) else 0
            self._take(cast(list[bytes], popped or []))

    def _room(self, places: int) -> int:
        """How many jobs to take: one for each place, and some ahead while there are plenty."""
        if self._exhausted or time.monotonic() >= self._deadline:
            return 0
        if spare := self._room_to_pass_on():
            return places + spare
        plenty = PROCESSES_BESIDE * self._runtime.settings.reads_in_flight
        if self._left > plenty and len(self._ahead) <= BATCH // 2:
            return places + BATCH
        return places

    def _room_to_pass_on(self) -> int:
        """How many jobs to take beyond the free places, to hand over the jobs that this worker cannot do."""
        if self._others is None or self._exhausted or not self._runtime.egress.any_isolated():
            return 0
        return max(0, BATCH - len(self._ahead))

    def _pass_on(self) -> None:
        """Hand jobs for providers from which this worker is isolated to another worker.

        Reads under way are handed over as well, and continue here: the first answer counts.
        """
        if self._others is None or not self._runtime.egress.any_isolated():
            return
        ahead = [each for each in self._ahead if self._must_move(each)]
        waiting = [each.taken for each in self._waiting if self._must_move(each.taken)]
        if moved := self._move([*ahead, *waiting]):
            self._ahead = deque(each for each in self._ahead if each.id not in moved)
            self._waiting = [each for each in self._waiting if each.taken.id not in moved]
            heapq.heapify(self._waiting)
        held = [each for each in self._in_flight.values() if not each.handed and self._must_move(each)]
        reads = [each for each in held if isinstance(each.job, CalendarRead)]
        moved = self._move(reads)
        for each in reads:
            each.handed = each.id in moved

    def _must_move(self, taken: TakenJob) -> bool:
        """Whether a job calls a provider from which this worker is isolated."""
        if self._others is None:
            return False
        if taken.provider is None:
            egress = self._runtime.egress
            return taken.job.connection is None and egress.any_isolated() and egress.peer(None) is not None
        return self._runtime.egress.isolated(taken.provider)

    def _move(self, jobs: Sequence[TakenJob]) -> set[int]:
        """Hand jobs to other workers, one for each provider; returns the ids of the moved jobs."""
        moved: set[int] = set()
        by_provider: dict[str | None, list[TakenJob]] = {}
        for each in jobs:
            by_provider.setdefault(each.provider, []).append(each)
        for provider, some in by_provider.items():
            if self._others is not None and self._others.hand_over(provider, [each.message for each in some]):
                moved.update(each.id for each in some)
                for each in some:
                    self._sharing.release(each.flight)
        return moved

    def _take(self, popped: Sequence[bytes]) -> None:
        """Have these jobs ready for their places."""
        self._exhausted = not self._left
        taken = [TakenJob(next(self._ids), *job) for data in popped if (job := self._understood(data))]
        self._sharing.take(each.flight for each in taken)
        try:
            self._load(taken)
        except Exception as error:
            # Whatever it is: these jobs have been taken.
            log.exception("connections could not be loaded")
            for each in taken:
                self._give_up(each, failures.because(error))
        else:
            self._ahead += taken

    def _understood(self, data: bytes) -> Packed | None:
        """A job; one that cannot be read, as of a web server of another version, has failed."""
        try:
            return unpack_job(data)
        except DecodeError:
            log.exception("a job cannot be read")
        if to := address(data):
            self._answered.append(pack_reply(to.number, Reply(failed=BROKEN)))
            self._sharing.abandon([to.flight])
        return None

    def _spare(self) -> list[TakenJob]:
        """Jobs to have ready for places that come free before the next turn."""
        if len(self._in_flight) < MANY or time.monotonic() >= self._deadline:
            return []
        room = min(STOCK - self._share.prefetched, len(self._ahead))
        # What may not begin before the deadline must know how to end by itself.
        return [self._ahead.popleft() for _ in range(room) if continues_past_deadline(self._ahead[0].job)]

    def _start(self, taken: Sequence[TakenJob], places: int) -> int:
        """Start the jobs whose turn it is, keep those ready that have no place; returns how many began."""
        if not taken:
            return 0
        try:
            generations, answers = self._ask(taken)
        except Exception as error:
            # Whatever it is: these jobs have been taken.
            log.exception("the turns of jobs could not be had")
            for each in taken:
                self._give_up(each, failures.because(error))
            return 0
        started = 0
        for each in taken:
            connection = each.job.connection
            if connection is not None and each.row is None:
                self._give_up(each, GONE)
            elif self._has_turn(each, answers.get(each.id, GO)):
                self._in_flight[each.id] = each
                work = partial(self._work, each, generations.get(connection or "", b""))
                if started < places:
                    self._share.run(work)
                    started += 1
                else:
                    self._share.prefetch(work)
        return started

    def _load(self, taken: Sequence[TakenJob]) -> None:
        """The connections of these jobs in one statement."""
        ids = {each.job.connection for each in taken if each.job.connection is not None}
        if not ids:
            return
        with self._runtime.stores.database.engine.connect() as connection:
            rows = connections.sealed(connection, ids)
        for each in taken:
            each.row = rows.get(each.job.connection or "")
            if each.row is not None:
                lease = each.flight or f"{self._fanout}:{each.number}"
                each.ask = call_policy.ask(each.job, each.row, lease)

    def _ask(self, taken: Sequence[TakenJob]) -> tuple[Mapping[str, bytes], Mapping[int, Permit]]:
        """The generations of the jobs' connections, and whose turn it is, in one round trip."""
        stores = self._runtime.stores
        ids = list(dict.fromkeys(each.row.id for each in taken if each.row is not None))
        asking = {each.id: each.ask for each in taken if each.ask is not None}
        asks = list(asking.values())
        flights = [each.flight for each in taken if each.flight is not None]
        if not ids:
            return {}, {}
        left = self._deadline - time.monotonic()
        with stores.redis.pipeline(transaction=False) as pipe:
            stores.busy.ask_generations(pipe, ids)
            if flights:
                stores.single_flight.hold(pipe, flights)
            if asks:
                lease = max(0.0, left) + self._runtime.grace + LEASE_MARGIN
                stores.provider_rate_limiter.ask(pipe, asks, left=left, lease=lease)
            generations, *others = pipe.execute(raise_on_error=False)
        if isinstance(generations, RedisError):
            raise generations
        answers = ProviderRateLimiter.answers(others[-1], asks) if asks else []
        return (
            dict(zip(ids, generations, strict=True)),
            dict(zip(asking, answers, strict=True)),
        )

    def _has_turn(self, taken: TakenJob, answer: Permit) -> bool:
        """Whether a job may begin now; if not, it waits, or has failed when there is no time for that."""
        if taken.ask is not None and answer.paid:
            taken.ask = replace(taken.ask, calls=0)
        if not answer.wait:
            taken.probes = answer.why is WaitReason.PROBE
            if taken.ask is not None and taken.probes:
                self._runtime.stores.circuit_breakers.probes(taken.ask.guarded, taken.ask.account)
                self._sharing.probe(taken.flight)
            return True
        if taken.row is not None and answer.why is WaitReason.OPEN:
            self._give_up(taken, call_policy.refused(taken.row, answer))
            return False
        if taken.row is not None and (taken.failed is BROKEN or answer.why is not WaitReason.MAILBOX):
            taken.failed = call_policy.throttled(taken.row, answer)
        when = time.monotonic() + answer.wait
        if when < self._deadline:
            heapq.heappush(self._waiting, WaitingJob(when, taken.id, taken))
        else:
            self._give_up(taken, taken.failed)
        return False

    def _give_up(self, taken: TakenJob, failed: Failed) -> None:
        """Answer for a job that is not begun."""
        if not failures.by_us(failed):
            metrics.failed(self._counters, taken.job, taken.row, [failed])
        body = pack_body(Reply(failed=failed))
        self._answered.append(numbered(taken.number, body))
        if failed.reason is Reason.RATE_LIMITED or not failed.asked:
            # The provider has spoken for all who wait, and each would be told so after the other.
            self._sharing.complete(taken.flight, body, failed=False, whole=False)
        else:
            # Who else waits for it may find the time.
            self._sharing.abandon([taken.flight])

    def _work(self, taken: TakenJob, generation: bytes) -> FinishedJob:
        """Runs in a place. Whatever happens, the job is answered: nobody waits for nothing."""
        if self._must_move(taken):
            reply = Reply(failed=ISOLATED)
            return FinishedJob(taken, reply, pack_body(reply), generation, move=True)
        attempt = Attempt(movable=self._others is not None and taken.provider is not None)
        move = False
        try:
            credentials = None
            if taken.row is not None:
                credentials = connections.open_credentials(taken.row, self._runtime.stores.keyring)
            began = time.monotonic()
            performing = self._runtime.egress.performing(taken.provider, attempt)
            with tracing.job(taken.job, taken.row) as span, performing:
                reply = self._perform(self._runtime, taken.job, credentials, self._deadline)
                tracing.failed(span, reply.failed)
            move = attempt.movable and _another_may(taken.job, reply, attempt)
            if not move:
                metrics.done(self._counters, taken.job, taken.row, reply, time.monotonic() - began)
            body = pack_body(reply)
        except Exception as error:
            log.exception("a job failed unexpectedly", extra={"connection": taken.job.connection})
            reply = Reply(failed=failures.because(error))
            body = pack_body(reply)
        return FinishedJob(taken, reply, body, generation, move)

    def _tell_late(self) -> None:
        """Answer for the reads that go on beyond the deadline: their request gives up."""
        for taken in self._in_flight.values():
            if taken.id in self._told or taken.handed:
                continue
            if taken.row is not None and continues_past_deadline(taken.job):
                self._answered.append(pack_reply(taken.number, Reply(failed=call_policy.overdue(taken.row))))
                self._told.add(taken.id)

    def _finish(self, pipe: Pipeline, done: FinishedJob) -> None:
        """Queue what a job has read for the caches, and its reply unless it has been answered."""
        taken, reply = done.taken, done.reply
        stores, job = self._runtime.stores, taken.job
        del self._in_flight[taken.id]
        if taken.ask is not None:
            stores.provider_rate_limiter.release(pipe, taken.ask)
            if taken.probes:
                stores.circuit_breakers.leave(pipe, taken.ask.guarded, taken.ask.account, taken.ask.lease)
        if not reply.whole() and (taken.handed or (done.move and self._move([taken]))):
            # Another worker answers.
            self._sharing.release(taken.flight)
            return
        if reply.listed is not None and job.connection is not None:
            calendars = CalendarList(reply.read_at, reply.listed)
            stores.calendar_lists.store(pipe, job.connection, calendars)
        if isinstance(job, ReadBusy):
            for calendar, busy in reply.read():
                key = CalendarKey(job.connection, calendar)
                if taken.row is not None:
                    self.read.append((taken.row.provider, key))
                stores.busy.store(
                    pipe,
                    key,
                    busy,
                    job.start,
                    job.end,
                    read_at=reply.read_at,
                    generation=done.generation,
                )
        if taken.id not in self._told:
            self._answered.append(numbered(taken.number, done.body))
        if reply.whole() or time.monotonic() < self._deadline:
            failed = reply.refused() and not failures.by_us(reply.failed)
            self._sharing.complete(taken.flight, done.body, failed=failed, whole=reply.whole())
        else:
            # What has failed for want of time need not fail for who has more.
            self._sharing.abandon([taken.flight])


def _another_may(job: Job, reply: Reply, attempt: Attempt) -> bool:
    """Whether a job has failed so that another worker may do it.

    A read is safe to repeat, whatever was sent before. Anything else must have left no trace at the provider.
    """
    if isinstance(job, CalendarRead):
        return attempt.left and not reply.whole()
    return reply.failed is not None and reply.failed.unsent and not attempt.sent

"""The worker's side of a fan-out: takes jobs while threads are free, and pushes replies as jobs finish."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from functools import partial
from typing import cast

from redis.client import Pipeline
from redis.exceptions import RedisError

from providers.base import Failed
from providers.errors import Reason
from store.cache.busy_buckets import CalendarKey
from store.coordination import shares
from workers import failures
from workers.execution.reads import continues_past_deadline
from workers.fanout import bundles
from workers.fanout.codec import work_list
from workers.fanout.drain_state import DrainJobs, FinishedJob, TakenJob, Work
from workers.fanout.finishing import Finisher
from workers.fanout.handover import Handover, HandoverPolicy
from workers.fanout.intake import Intake
from workers.fanout.named_results import NamedResults
from workers.fanout.performing import Perform, Performer
from workers.fanout.permits import GrantedPermits, Permits
from workers.fanout.pool import PoolShare
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# The number of jobs that are taken in addition to the places: one statement loads all their connections.
LOAD_AHEAD = 32

# Jobs are loaded ahead only while the list is longer than the places of this many processes together. With
# none ahead, each free place would cost a statement. With too many, jobs would wait while another process
# has free places.
LOAD_AHEAD_PROCESSES = 4

# While this many jobs are in flight, results are collected for BATCHING_SECONDS and handled in one step.
# Three round trips and a statement for each finished read would cost as much time as the reads themselves.
BATCHING_THRESHOLD = 16
BATCHING_SECONDS = 0.006

# Loaded jobs that are handed to the pool, to begin as soon as a place becomes free: about as many as finish
# within one turn.
PREFETCH = 16

# Grace period after the deadline, as a share of the budget, for jobs to report their own timeout. After it,
# the drain reports one for reads that continue for the cache.
GRACE_FRACTION = 0.01

# Seconds between two checks whether this worker still reaches the providers of its jobs.
EGRESS_CHECK_SECONDS = 0.5

GONE = Failed(Reason.NOT_FOUND, "The connection was removed")


class Drain:
    """One task's share of a fan-out: performs jobs in threads of the pool, as long as there are jobs.

    It is one loop. Each turn reports the jobs that have finished and takes as many new ones in the same round
    trip, has the new ones admitted (permits), and begins to read those in threads of the pool.

    While the list has jobs, each turn requests ``places_per_turn`` more places in the pool. ``deadline`` is a
    moment of ``time.monotonic()``. The jobs are on the list ``list_name``, by default that of the request.
    ``others`` hands jobs over to other workers; without it all jobs are performed here.
    """

    def __init__(
        self,
        runtime: Runtime,
        fanout: str,
        deadline: float,
        perform: Perform,
        *,
        places_per_turn: int = LOAD_AHEAD,
        list_name: str | None = None,
        others: Handover | None = None,
    ) -> None:
        self._runtime = runtime
        self._work_list = list_name or work_list(fanout)
        self._places_per_turn = places_per_turn
        self._deadline = deadline
        # The moment at which the drain reports a timeout for reads that continue.
        self._overdue = deadline + max(0.0, deadline - time.monotonic()) * GRACE_FRACTION
        self._share: PoolShare[list[FinishedJob]] = runtime.pool.share(shares.current.get())
        self._jobs = DrainJobs()
        # The length of the list when it was last read, and whether it was empty or the deadline has passed.
        self._list_length = 0
        self._exhausted = False
        self._finisher = Finisher(runtime, fanout, deadline)
        self._flights = self._finisher.flights
        self._intake = Intake(runtime, fanout, self._jobs, self._finisher)
        self._permits = Permits(runtime, deadline)
        self._handover = HandoverPolicy(runtime.egress, others, self._flights)
        self._performer = Performer(runtime, perform, deadline, self._handover)

    @property
    def read(self) -> list[tuple[str, CalendarKey]]:
        """The calendars that were read, each with its provider."""
        return self._finisher.read

    def run(self) -> None:
        """Take jobs until the list is empty or the deadline has passed; return when the begun ones ended.

        Jobs that are loaded and not begun at the deadline get no reply: for the web tier they have timed out.
        Shortly after the deadline the drain replies for reads in flight, which continue to fill the cache.
        """
        try:
            while True:
                # One clock reading for the whole turn. A job that became due between two readings would be
                # neither started nor waited for.
                now = time.monotonic()
                self._apply_deadline(now)
                self._share.request(self._places_wanted(now))
                if self._is_over(now):
                    return
                linger = BATCHING_SECONDS if len(self._jobs.in_flight) >= BATCHING_THRESHOLD else 0.0
                ended, granted = self._share.wait(self._next_wakeup(now), linger=linger)
                self._run_step([job for work in ended for job in work], granted)
        finally:
            self._share.close()

    def _run_step(self, finished: Sequence[FinishedJob], granted: int) -> None:
        """Report finished jobs, and begin others in the places that were granted."""
        taken = self._jobs.next(granted, time.monotonic())
        self._report_and_take(finished, granted - len(taken))
        self._handover.hand_over_blocked(self._jobs)
        taken += self._jobs.next(granted - len(taken), time.monotonic())
        started = self._begin_permitted(taken + self._prefetchable(), granted)
        self._share.release(granted - started)

    def _apply_deadline(self, now: float) -> None:
        """After the deadline, fail the jobs that wait for a permit, and abandon the flights of loaded jobs.

        Later, reply for reads that continue.
        """
        if now >= self._deadline:
            self._exhausted = True
            for taken in self._jobs.drop_waiting():
                self._finisher.fail_unstarted(taken, taken.failed)
            # Loaded jobs get no reply, like those still on the list: no worker has begun them.
            self._flights.abandon(each.flight for each in self._jobs.drop_loaded())
        if now >= self._overdue:
            self._finisher.report_timeouts(self._jobs.in_flight.values())

    def _places_wanted(self, now: float) -> int:
        """How many places the drain can use."""
        if not self._exhausted:
            return self._places_per_turn
        return self._share.prefetched + self._jobs.places(now)

    def _is_over(self, now: float) -> bool:
        """Whether no job is left, and nothing must be sent."""
        idle = not (self._jobs or self._finisher.has_replies or self._flights.urgent(now))
        return idle and self._exhausted

    def _next_wakeup(self, now: float) -> float | None:
        """The moment of the next turn if no job finishes and no place is granted; None for no limit."""
        if self._finisher.has_replies or self._flights.urgent(now) or self._extra_jobs_to_hand_over():
            return now
        moments = [self._deadline, self._overdue, *self._flights.next_renewal()]
        if self._handover.enabled:
            moments.append(now + EGRESS_CHECK_SECONDS)
        if (due := self._jobs.next_due()) is not None:
            moments.append(due)
        return min((moment for moment in moments if moment > now), default=None)

    def _report_and_take(self, finished: Sequence[FinishedJob], places: int) -> None:
        """Fill the caches, push replies and take jobs for the free places, in one round trip."""
        room = self._jobs_to_take(places)
        with self._runtime.stores.redis.pipeline(transaction=False) as pipe:
            named = NamedResults(pipe)
            handed_over = self._handover.hand_over_failed(finished)
            for each in finished:
                self._finish(pipe, each, handed_over)
            self._finisher.send(pipe)
            if room:
                pipe.lpop(self._work_list, room)
                named.name("popped")
                pipe.llen(self._work_list)
                named.name("list_length")
            # A command that Redis refuses, for lack of memory for example, must not cost other jobs a reply.
            results = pipe.execute(raise_on_error=False)
        for refused in {str(result) for result in results if isinstance(result, RedisError)}:
            log.error("Redis rejected a command of a reply: %s", refused)
        if room:
            found = named.by_name(results)
            if isinstance(found["popped"], RedisError):
                raise found["popped"]
            self._list_length = found["list_length"] if isinstance(found["list_length"], int) else 0
            self._exhausted = not self._list_length
            self._intake.take(cast(list[bytes], found["popped"] or []))

    def _finish(self, pipe: Pipeline, done: FinishedJob, handed_over: Collection[int]) -> None:
        """Queue the results of a job on ``pipe``, unless another worker replies for it."""
        taken = done.taken
        del self._jobs.in_flight[taken.id]
        self._permits.release(pipe, taken)
        if taken.id in handed_over:
            return
        if done.alone is None:
            self._finisher.finish(done)
        else:
            bundles.leave(taken, done.alone)
            self._jobs.wait(taken, time.monotonic())

    def _jobs_to_take(self, places: int) -> int:
        """How many elements to take: one for each place, and some more while the list is long."""
        if self._exhausted or time.monotonic() >= self._deadline:
            return 0
        if spare := self._extra_jobs_to_hand_over():
            return places + spare
        plenty = LOAD_AHEAD_PROCESSES * self._runtime.settings.reads_in_flight
        if self._list_length > plenty and len(self._jobs.loaded) <= LOAD_AHEAD // 2:
            return places + LOAD_AHEAD
        return places

    def _extra_jobs_to_hand_over(self) -> int:
        """How many jobs to take beyond the free places, to hand over the ones for isolated providers."""
        if self._exhausted or not self._handover.needed:
            return 0
        return max(0, LOAD_AHEAD - len(self._jobs.loaded))

    def _prefetchable(self) -> list[Work]:
        """Work to prefetch for places that become free before the next turn."""
        if len(self._jobs.in_flight) < BATCHING_THRESHOLD or time.monotonic() >= self._deadline:
            return []
        room = PREFETCH - self._share.prefetched
        found: list[Work] = []
        # The drain can answer at the deadline only for reads that continue past it.
        while len(found) < room and self._jobs.loaded and continues_past_deadline(self._jobs.loaded[0].job):
            found += self._jobs.next_loaded(1)
        return found

    def _begin_permitted(self, works: Sequence[Work], places: int) -> int:
        """Begin the work that has a permit, and prefetch what has no place; returns how much began."""
        taken = [each for work in works for each in work]
        if not taken:
            return 0
        try:
            permits = self._permits.request(taken)
        except Exception as error:
            # Any error: the jobs are no longer on the list, so they must be answered.
            log.exception("permits could not be requested")
            for each in taken:
                self._finisher.fail_unstarted(each, failures.failure_from(error))
            return 0
        started = 0
        for work in works:
            admitted = [each for each in work if self._begin_or_settle(each, permits)]
            if not admitted:
                continue
            self._jobs.in_flight |= {each.id: each for each in admitted}
            if started < places:
                self._share.run(partial(self._performer.run, admitted))
                started += 1
            else:
                self._share.prefetch(partial(self._performer.run, admitted))
        return started

    def _begin_or_settle(self, taken: TakenJob, permits: GrantedPermits) -> bool:
        """Whether a job may begin. If not, it waits, or its failure is reported."""
        if taken.job.connection is not None and taken.row is None:
            self._finisher.fail_unstarted(taken, GONE)
            return False
        match self._permits.decide(taken, permits):
            case Failed() as failed:
                self._finisher.fail_unstarted(taken, failed)
            case float(when):
                if bundles.waits_alone(taken):
                    bundles.leave(taken)
                self._jobs.wait(taken, when)
            case None:
                return True
        return False

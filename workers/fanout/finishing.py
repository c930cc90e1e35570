"""Reports the results of a drain's jobs: stores them in the caches, replies, and completes their flights."""

from __future__ import annotations

import time
from collections.abc import Iterable

from redis.client import Pipeline

from providers.base import Failed
from providers.errors import Reason
from store.cache.busy_buckets import CalendarKey
from store.cache.busy_cache import BusyRead
from store.cache.calendar_lists import CalendarList
from store.coordination.single_flight import Completion
from workers import failures
from workers.execution import call_policy
from workers.execution.reads import continues_past_deadline
from workers.failures import BROKEN
from workers.fanout.codec import LEFTOVER_SECONDS, addresses, numbered, pack_body, pack_reply, reply_list
from workers.fanout.drain_state import FinishedJob, TakenJob
from workers.fanout.taken_flights import TakenFlights
from workers.jobs import ReadBusy, Reply
from workers.runtime import Runtime
from workers.telemetry import metrics


class Finisher:
    """Collects the replies, flights and cached results of one drain until the next round trip.

    ``read`` has the calendars that were read, each with its provider.
    """

    def __init__(self, runtime: Runtime, fanout: str, deadline: float) -> None:
        self._stores = runtime.stores
        self._reply_list = reply_list(fanout)
        self._deadline = deadline
        self._replies: list[bytes] = []
        self._lists: list[tuple[str, CalendarList]] = []
        self._reads: list[BusyRead] = []
        self.flights = TakenFlights(runtime.stores.single_flight)
        self.read: list[tuple[str, CalendarKey]] = []

    @property
    def has_replies(self) -> bool:
        """Whether replies must be sent."""
        return bool(self._replies)

    def fail_unstarted(self, taken: TakenJob, failed: Failed) -> None:
        """Reply for a job that was not begun."""
        if not failures.is_internal(failed):
            metrics.count_failures(self._stores.counters, taken.job, taken.row, [failed])
        body = pack_body(Reply(failed=failed))
        if failed.reason is Reason.RATE_LIMITED or not failed.called:
            # The followers would get the same refusal, one after the other.
            self._complete(taken, body, failed=False, whole=False)
        else:
            # A follower claims the read again: it may have more time, or the outage may be over.
            self._reply(taken, body)
            self.flights.abandon([taken.flight])

    def reject(self, data: bytes) -> None:
        """Reply for a job, or a bundle, that cannot be decoded."""
        for to in addresses(data):
            self._replies.append(pack_reply(to.number, Reply(failed=BROKEN)))
            self.flights.abandon([to.flight])

    def report_timeouts(self, in_flight: Iterable[TakenJob]) -> None:
        """Reply for reads that continue past the deadline, because their request times out."""
        for taken in in_flight:
            if taken.timeout_reported or taken.handed_over:
                continue
            if taken.row is not None and continues_past_deadline(taken.job):
                self._replies.append(
                    pack_reply(taken.number, Reply(failed=call_policy.timeout_failure(taken.row)))
                )
                taken.timeout_reported = True

    def finish(self, done: FinishedJob) -> None:
        """Take the results of a job for the caches, and its reply unless it was answered."""
        taken, reply = done.taken, done.reply
        self._keep(done)
        if reply.whole() or time.monotonic() < self._deadline:
            failed = reply.failed_without_retry_time() and not failures.is_internal(reply.failed)
            self._complete(taken, done.body, failed=failed, whole=reply.whole())
        else:
            # Too little time may be the cause of the failure. A follower may have more.
            self._reply(taken, done.body)
            self.flights.abandon([taken.flight])

    def send(self, pipe: Pipeline) -> None:
        """Queue everything on ``pipe``: the caches before the flights.

        A request that began after the completion of a flight expects its result in the cache.
        """
        for connection, calendars in self._lists:
            self._stores.calendar_lists.store(pipe, connection, calendars)
        self._stores.busy.store(pipe, self._reads)
        self._lists, self._reads = [], []
        self.flights.send(pipe, self._reply_list)
        if self._replies:
            pipe.rpush(self._reply_list, *self._replies)
            pipe.expire(self._reply_list, LEFTOVER_SECONDS)
            self._replies = []

    def _complete(self, taken: TakenJob, body: bytes, *, failed: bool, whole: bool) -> None:
        """Complete the flight of a job, with the reply to its request. A job without a flight has a reply."""
        if taken.flight is None:
            self._reply(taken, body)
        else:
            number = None if taken.timeout_reported else taken.number
            self.flights.complete(Completion(taken.flight, body, failed, whole, number))

    def _reply(self, taken: TakenJob, body: bytes) -> None:
        if not taken.timeout_reported:
            self._replies.append(numbered(taken.number, body))

    def _keep(self, done: FinishedJob) -> None:
        reply, job = done.reply, done.taken.job
        if reply.listed is not None and job.connection is not None:
            self._lists.append((job.connection, CalendarList(reply.read_at, reply.listed)))
        if not isinstance(job, ReadBusy):
            return
        for calendar, busy in reply.read():
            key = CalendarKey(job.connection, calendar)
            if done.taken.row is not None:
                self.read.append((done.taken.row.provider, key))
            self._reads.append(BusyRead(key, busy, job.start, job.end, reply.read_at, done.taken.generation))

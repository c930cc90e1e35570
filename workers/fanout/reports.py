"""The results of jobs: what each leaves behind, how it counts, and the thread that stores them all.

The thread stores results, replies, and releases what the jobs held. This is a group commit: whatever ends
while one pipeline is under way goes into the next one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from queue import Empty, SimpleQueue
from typing import get_args

from redis.client import Pipeline
from redis.exceptions import RedisError

from providers.base import PRIMARY, Failed
from store.cache.busy_cache import BusyRead, CalendarKey, now_ms
from store.cache.calendar_lists import CalendarList
from store.cache.last_reads import LastRead
from store.coordination.provider_limits import AcquireRequest, rejection_key
from store.coordination.single_flight import Ended, ReadLock
from store.metrics.counters import Counters
from store.sql.queries.connection_rows import SealedConnection
from store.stores import Stores
from workers import failures
from workers.fanout.codec import LEFTOVER_SECONDS, numbered, pack_body, reply_list
from workers.fanout.waiting import ReadLocks
from workers.fanout.work import FanoutRequest, FinishedJob, TakenJob
from workers.jobs import CalendarRead, EventWrite, Job, ReadBusy, ReadChanges, Reply

log = logging.getLogger(__name__)

# Other jobs concern a grant or a channel and are not counted.
_READS, _WRITES = get_args(CalendarRead), get_args(EventWrite)


@dataclass(slots=True)
class Report:
    """What one or several jobs of a request leave behind.

    ``released`` are permits, each with whether it was a circuit breaker's probe. ``deleted`` are keys that no
    longer hold.
    """

    reply_list: str
    lists: list[tuple[str, CalendarList]] = field(default_factory=list)
    reads: list[BusyRead] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    replies: list[bytes] = field(default_factory=list)
    released: list[tuple[AcquireRequest, bool]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    last_reads: list[tuple[str, LastRead]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self) if each.name != "reply_list")


class Reporter:
    """Sends reports in the order of their arrival."""

    def __init__(self, stores: Stores, locks: ReadLocks) -> None:
        self._stores = stores
        self._locks = locks
        self._queue: SimpleQueue[Report | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def report(self, report: Report) -> None:
        """Send a report soon, without waiting for it."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
                self._thread.start()
        self._queue.put(report)

    def stop(self) -> None:
        """End the thread once everything that was reported before is sent."""
        self._queue.put(None)

    def join(self, seconds: float) -> None:
        """Wait for the end of the thread."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        running = True
        while running:
            found = [self._queue.get()]
            try:
                while True:
                    found.append(self._queue.get_nowait())
            except Empty:
                reports = [each for each in found if each is not None]
            running = len(reports) == len(found)
            try:
                self._send(reports)
            except Exception:
                # If this thread ended, no job would be answered any more. Locks and leases expire.
                log.exception("results of jobs could not be reported")
            try:
                self._locks.drop([ended.lock for each in reports for ended in each.ended])
            except Exception:
                log.exception("waiting jobs could not be resumed")

    def _send(self, reports: Sequence[Report]) -> None:
        """Fill the caches, then end the reads, then reply: who sees an end or a reply finds a full cache."""
        with self._stores.redis.pipeline(transaction=False) as pipe:
            self._store(pipe, reports)
            if ended := [each for report in reports for each in report.ended]:
                self._stores.single_flight.end(pipe, ended)
            self._reply(pipe, reports)
            for report in reports:
                self._release(pipe, report)
            # A command that Redis refuses, for lack of memory for example, must not cost other jobs a reply.
            results = pipe.execute(raise_on_error=False)
        for refused in {str(result) for result in results if isinstance(result, RedisError)}:
            log.error("Redis rejected a command of a reply: %s", refused)

    def _store(self, pipe: Pipeline, reports: Sequence[Report]) -> None:
        for report in reports:
            for connection, calendars in report.lists:
                self._stores.calendar_lists.store(pipe, connection, calendars)
        self._stores.busy.store(pipe, [each for report in reports for each in report.reads])
        self._stores.last_reads.note(pipe, [each for report in reports for each in report.last_reads])

    def _reply(self, pipe: Pipeline, reports: Sequence[Report]) -> None:
        replies: dict[str, list[bytes]] = {}
        for report in reports:
            replies.setdefault(report.reply_list, []).extend(report.replies)
        for name, messages in replies.items():
            if messages:
                pipe.rpush(name, *messages)
                pipe.expire(name, LEFTOVER_SECONDS)

    def _release(self, pipe: Pipeline, report: Report) -> None:
        for request, probes in report.released:
            self._stores.provider_limits.release(pipe, request, probed=probes)
        if report.deleted:
            pipe.delete(*report.deleted)


def new(request: FanoutRequest) -> Report:
    """An empty report."""
    return Report(reply_list(request.name))


def finished(
    request: FanoutRequest, jobs: Sequence[FinishedJob]
) -> tuple[Report, list[tuple[str, CalendarKey]]]:
    """The results of jobs, and the calendars that were read, each with its provider."""
    report, read = new(request), []
    for done in jobs:
        taken, reply = done.taken, done.reply
        read += _cache(report, done)
        provider = None if taken.row is None else taken.row.provider
        if (found := last_read(taken.job, reply, provider)) is not None and isinstance(taken.job, ReadBusy):
            report.last_reads.append((taken.job.connection, found))
        if isinstance(taken.job, _READS) and reply.failed is None and taken.job.connection is not None:
            report.deleted.append(rejection_key(taken.job.connection))
        report.released += taken.permit.given_back()
        elsewhere = reply.failed is not None and reply.failed.elsewhere
        if reply.whole() or (request.seconds_left and not elsewhere):
            _end(report, request, taken, done.body, reply)
        else:
            # Too little time, or this worker, may be the cause of the failure. Another job reads again.
            _end(report, request, taken)
        _reply(report, taken, done.body)
    return report, read


def failed(stores: Stores, request: FanoutRequest, taken: TakenJob, failure: Failed) -> Report:
    """The failure of a job that was not begun."""
    if not failures.is_internal(failure):
        count_failures(stores.counters, taken.job, taken.row, [failure])
    report = new(request)
    report.released += taken.permit.given_back()
    # Another job takes the lock: it may have more time, or the outage may be over.
    _end(report, request, taken)
    _reply(report, taken, pack_body(Reply(failed=failure)))
    return report


def answered(
    request: FanoutRequest,
    jobs: Iterable[TakenJob],
    failure: Callable[[TakenJob], Failed],
    *,
    ends: bool = True,
) -> Report:
    """Failures of jobs that continue for the cache alone. ``ends``: another job may read in the meantime."""
    report = new(request)
    for taken in jobs:
        _reply(report, taken, pack_body(Reply(failed=failure(taken))))
        if ends:
            _end(report, request, taken)
    return report


def recorded(request: FanoutRequest, jobs: Iterable[tuple[TakenJob, bytes]]) -> Report:
    """The results of other jobs that have read the same."""
    report = new(request)
    for taken, body in jobs:
        _reply(report, taken, body)
    return report


def dropped(request: FanoutRequest, jobs: Iterable[TakenJob]) -> Report:
    """The end of jobs that get no reply."""
    report = new(request)
    for taken in jobs:
        report.released += taken.permit.given_back()
        _end(report, request, taken)
    return report


def _cache(report: Report, done: FinishedJob) -> list[tuple[str, CalendarKey]]:
    reply, job, taken = done.reply, done.taken.job, done.taken
    read: list[tuple[str, CalendarKey]] = []
    if reply.listed is not None and job.connection is not None:
        report.lists.append((job.connection, CalendarList(reply.read_at, reply.listed)))
    if isinstance(job, ReadBusy):
        for calendar, busy in reply.read():
            key = CalendarKey(job.connection, calendar)
            if taken.row is not None:
                read.append((taken.row.provider, key))
            generation = taken.cache_generation or b""
            report.reads.append(BusyRead(key, busy, job.start, job.end, reply.read_at, generation))
    elif isinstance(job, ReadChanges) and reply.changes is not None and taken.row is not None:
        # Nothing is cached. A client that keeps a copy waits for the notifications of the calendar.
        read.append((taken.row.provider, CalendarKey(job.connection, job.calendar)))
    return read


def last_read(job: Job, reply: Reply, provider: str | None) -> LastRead | None:
    """The result of a read of a main calendar; None for other jobs and for failures of Almanac."""
    if not isinstance(job, ReadBusy) or not (job.calendars is None or PRIMARY in job.calendars):
        return None
    outcome = reply.failed or reply.outcomes.get(PRIMARY)
    if not isinstance(outcome, Failed):
        return None if outcome is None else LastRead(reply.read_at)
    if outcome.elsewhere or failures.is_internal(outcome):
        return None
    at = reply.read_at or now_ms()
    return LastRead(at, outcome.reason, outcome.message, provider=provider)


def _end(
    report: Report,
    request: FanoutRequest,
    taken: TakenJob,
    body: bytes = b"",
    reply: Reply | None = None,
) -> None:
    """End the read of a job that has its lock, with a result or without."""
    if taken.flight is not None:
        # Requests of release 0.1 that wait for this read then send it again, and find it in the cache.
        report.deleted.append(f"flight:{taken.flight.rpartition(':')[0]}")
        taken.flight = None
    if taken.read is None or not taken.lock_generation or request.terms is None:
        return
    ended = Ended(ReadLock(taken.read, taken.name), taken.lock_generation, request.terms.sent)
    if reply is not None:
        repeatable = reply.failed_without_retry_time() and not failures.is_internal(reply.failed)
        lifetime = request.terms.lifetime(whole=reply.whole())
        ended = replace(ended, body=body, failure_counts=repeatable, lifetime=lifetime)
    report.ended.append(ended)
    taken.lock_generation = ""


def _reply(report: Report, taken: TakenJob, body: bytes) -> None:
    if not taken.answered:
        report.replies.append(numbered(taken.number, body))
        taken.answered = True


def count_job(
    counters: Counters, job: Job, row: SealedConnection | None, reply: Reply, seconds: float
) -> None:
    """Count a finished job and its duration, which includes the refresh of its token and retries."""
    if row is not None and isinstance(job, _READS):
        counters.read(row.provider, seconds)
    elif row is not None and isinstance(job, _WRITES):
        counters.write(row.provider, seconds)
    count_failures(counters, job, row, _failures(reply))


def count_failures(
    counters: Counters, job: Job, row: SealedConnection | None, failures: Iterable[Failed]
) -> None:
    """Count the reasons of a failed job, each one once, however many calendars it concerns.

    An invalid event is a mistake of the API client and not counted as a failure of the provider.
    """
    if row is not None and isinstance(job, _READS + _WRITES):
        for reason in {each.reason for each in failures if each.problem is None}:
            counters.failure(row.provider, reason.value)


def _failures(reply: Reply) -> Iterator[Failed]:
    if reply.failed is not None:
        yield reply.failed
    for outcome in (*reply.outcomes.values(), *reply.events.values()):
        if isinstance(outcome, Failed):
            yield outcome

"""The worker's side of a fan-out: the steps of one task perform jobs of one request, in threads of the pool.

A step takes a job, performs it, hands the result to the reporter of the process, and submits itself again.
It ends when the list of the request is empty or the deadline has passed. Jobs come from the list in chunks:
large ones while the list is long, and single jobs at its end, so that no thread waits while another has work.

A job that must wait, for a permit or for the read of another job, holds no thread: the timer resumes it.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import cast

from redis.exceptions import RedisError

from providers.base import Failed, ReadAlone
from providers.errors import Reason
from store.cache.busy_cache import CalendarKey
from store.coordination import shares
from store.sql.queries import connection_rows
from store.sql.queries.connection_rows import Credentials
from workers import failures
from workers.egress import Attempt
from workers.execution import call_policy, member_reads
from workers.execution.member_reads import MemberRead
from workers.execution.reads import continues_past_deadline
from workers.failures import TIMED_OUT
from workers.fanout import chunks, reports
from workers.fanout.codec import pack_body, work_list
from workers.fanout.reports import Report
from workers.fanout.work import FanoutRequest, FinishedJob, TakenJob, Work, divide, separate
from workers.jobs import CalendarRead, Job, ReadBusy, Reply
from workers.runtime import Runtime
from workers.telemetry import tracing

log = logging.getLogger(__name__)

# The most steps of one task: a large request leaves threads to small ones.
MAX_STEPS = 32
# The most elements of the list in one chunk.
MAX_CHUNK = 16
# A chunk has this many times the share of one thread in the rest of the list: chunks are large at first, and
# single elements at the end.
SHARES_IN_CHUNK = 4
# Grace period after the deadline, as a share of the budget, for jobs to report their own timeout. After it,
# a timeout is reported for reads that continue for the cache.
GRACE_FRACTION = 0.01

# The answer of a worker that cannot reach a provider while another may: the request sends the job again.
ELSEWHERE = Failed(Reason.PROVIDER_ERROR, "The provider could not be reached", unsent=True, elsewhere=True)

# Performs one job by a deadline; the credentials are None for a job without a connection.
Perform = Callable[[Runtime, Job, Credentials | None, float], Reply]


class Steps:
    """The steps of one task. ``used`` is called with the calendars that were read, when no step is left."""

    def __init__(
        self,
        runtime: Runtime,
        request: FanoutRequest,
        perform: Perform,
        used: Callable[[Sequence[tuple[str, CalendarKey]]], None] = lambda _: None,
    ) -> None:
        self._runtime = runtime
        self._pool = runtime.pool
        self._request = request
        self._perform = perform
        self._used = used
        self._context = copy_context()
        self._tenant = shares.current.get()
        # Held while jobs are taken from the list.
        self._taking = threading.Lock()
        # Guards everything below, for moments.
        self._lock = threading.Lock()
        self._ready: deque[Work] = deque()
        self._resumed: list[Work] = []
        self._in_flight: dict[int, Work] = {}
        self._read: list[tuple[str, CalendarKey]] = []
        # Steps that perform a job or look for one, and jobs and bundles that wait.
        self._steps = self._waiting = 0
        # The last known length of the list; 0 when no more jobs are taken.
        self._listed = 1

    def start(self, share: int) -> None:
        """Start the steps of a task whose share of the list has this many elements."""
        self._pool.tasks.add(self)
        left = self._request.seconds_left
        self._pool.timer.call_at(self._request.deadline + left * GRACE_FRACTION, self._report_timeouts)
        self._start_steps(max(1, share))

    @property
    def busy(self) -> bool:
        """Whether a job is under way or waits."""
        return bool(self._steps or self._waiting)

    def _start_steps(self, wanted: int) -> None:
        """Start more steps, because a step that has ended does not start again."""
        with self._lock:
            more = max(0, min(wanted, MAX_STEPS - self._steps))
            self._steps += more
        for _ in range(more):
            self._submit(self._step)

    def _submit(self, step: Callable[[], None]) -> None:
        self._pool.submit(partial(self._context.copy().run, step), self._tenant)

    def _step(self) -> None:
        """Perform one job or bundle, and queue for the next one."""
        try:
            work = self._next()
        except Exception:
            log.exception("no jobs could be taken")
            work = None
        if work is None:
            self._end_step()
            return
        try:
            self._run(work)
        finally:
            self._submit(self._step)

    def _end_step(self) -> None:
        with self._lock:
            self._steps -= 1
            read, self._read = (self._read, []) if not self._steps else ([], self._read)
        # For jobs that became ready after this step had looked.
        self._start_steps(len(self._ready))
        if read:
            self._used(read)

    def _next(self) -> Work | None:
        """The next job or bundle; None when there is none."""
        work = self._pop()
        if work is None:
            with self._taking:
                # Another step may have taken jobs in the meantime.
                while (work := self._pop()) is None and self._listed:
                    self._take()
        return work

    def _pop(self) -> Work | None:
        """A job or bundle that may begin. After the deadline none begins, and all are dropped."""
        with self._lock:
            if self._request.seconds_left:
                return self._ready.popleft() if self._ready else None
            dropped, self._listed = [each for work in self._ready for each in work], 0
            self._ready.clear()
        # They get no reply, like those still on the list: for the request they have timed out.
        self._report(reports.dropped(self._request, dropped))
        return None

    def _take(self) -> None:
        """Take a chunk of the list, at least one element for each step without work."""
        share = self._listed / self._runtime.settings.reads_in_flight
        without_work = self._steps - len(self._in_flight)
        size = min(MAX_CHUNK, max(without_work, math.ceil(SHARES_IN_CHUNK * share)))
        name = work_list(self._request.name)
        try:
            with self._runtime.stores.redis.pipeline(transaction=False) as pipe:
                pipe.lpop(name, size)
                pipe.llen(name)
                messages, self._listed = pipe.execute()
        except RedisError:
            self._listed = 0
            raise
        taken, rejected = chunks.decode(self._request, cast(list[bytes], messages or []))
        self._report(rejected)
        jobs = [each for work in taken for each in work]
        try:
            chunks.load(self._runtime, jobs)
        except Exception as error:
            # Any error: the jobs are no longer on the list, so they must be answered.
            log.exception("jobs could not be prepared")
            for each in jobs:
                self._fail(each, failures.failure_from(error))
            return
        self._admit([part for work in taken for part in divide(work)])

    def _admit(self, works: Sequence[Work]) -> None:
        """Get locks and permits. What may begin is ready; what must wait is resumed; the rest is answered."""
        if not self._request.seconds_left:
            self._report(reports.dropped(self._request, [each for work in works for each in work]))
            return
        try:
            admitted = chunks.admit(self._runtime, self._request, works)
        except Exception as error:
            log.exception("locks or permits could not be requested")
            for each in (each for work in works for each in work):
                self._fail(each, failures.failure_from(error))
            return
        for taken, failed in admitted.failed:
            self._fail(taken, failed)
        self._report(reports.recorded(self._request, admitted.recorded))
        with self._lock:
            self._ready.extend(admitted.ready)
            self._waiting += len(admitted.waiting) + len(admitted.following)
        for when, work in admitted.waiting:
            self._pool.timer.call_at(when, partial(self._resume, work))
        for lock, taken in admitted.following:
            self._pool.locks.wait(lock, partial(self._resume, [taken]))

    def _resume(self, work: Work) -> None:
        """Have jobs that waited admitted again, together with others; does not block."""
        with self._lock:
            self._resumed.append(work)
            first = len(self._resumed) == 1
        if first:
            self._submit(self._admit_resumed)

    def _admit_resumed(self) -> None:
        with self._lock:
            works, self._resumed = self._resumed, []
        self._admit(works)
        with self._lock:
            self._waiting -= len(works)
        self._start_steps(len(self._ready))

    def _run(self, work: Work) -> None:
        with self._lock:
            self._in_flight[id(work)] = work
        attempt = Attempt(leave=partial(self._leave, work))
        finished = perform_work(self._runtime, self._request, self._perform, work, attempt)
        with self._lock:
            del self._in_flight[id(work)]
        report, read = reports.finished(self._request, [each for each in finished if each.alone is None])
        alone = [each for each in finished if each.alone is not None]
        for done in alone:
            report.released += done.taken.permit.given_back()
            separate(done.taken, done.alone)
        with self._lock:
            self._read += read
        self._report(report)
        if not self._request.seconds_left:
            for done in alone:
                self._fail(done.taken, done.taken.if_late)
        elif alone:
            self._admit([[done.taken] for done in alone])
            # There are more of them than elements for which the task has started steps.
            self._start_steps(len(self._ready))

    def _leave(self, work: Work) -> None:
        """Answer reads of a provider that this worker cannot reach; the request sends them again."""
        reads = [each for each in work if isinstance(each.job, CalendarRead) and not each.answered]
        self._report(reports.answered(self._request, reads, lambda _: ELSEWHERE))

    def _report_timeouts(self) -> None:
        """Reply for reads that continue past the deadline, because their request times out."""
        with self._lock:
            jobs = [each for work in self._in_flight.values() for each in work]
        late = [each for each in jobs if not each.answered and continues_past_deadline(each.job)]
        self._report(reports.answered(self._request, late, _timeout, ends=False))

    def _fail(self, taken: TakenJob, failed: Failed) -> None:
        self._report(reports.failed(self._runtime.stores, self._request, taken, failed))

    def _report(self, report: Report) -> None:
        if report:
            self._pool.reporter.report(report)


def run(
    runtime: Runtime,
    request: FanoutRequest,
    perform: Perform,
    share: int,
    used: Callable[[Sequence[tuple[str, CalendarKey]]], None] = lambda _: None,
) -> Steps:
    """Start the steps of one task, and wait until the threads of this process can take more."""
    steps = Steps(runtime, request, perform, used)
    steps.start(share)
    runtime.pool.wait_for_room(request.seconds_left, shares.current.get())
    return steps


def perform_work(
    runtime: Runtime, request: FanoutRequest, perform: Perform, work: Work, attempt: Attempt
) -> Sequence[FinishedJob]:
    """Perform a job or a bundle. An exception becomes failed replies, so that each job is answered."""
    provider = work[0].provider
    try:
        if provider is not None and runtime.egress.isolated(provider):
            return [_failed(each, ELSEWHERE) for each in work]
        with runtime.egress.performing(provider, attempt):
            if len(work) == 1:
                return [_perform_one(runtime, request, perform, work[0], attempt)]
            return _perform_bundle(runtime, request, work, attempt)
    except Exception as error:
        log.exception("a job failed unexpectedly", extra={"connection": work[0].job.connection})
        return [_failed(each, failures.failure_from(error)) for each in work]


def _perform_one(
    runtime: Runtime, request: FanoutRequest, perform: Perform, taken: TakenJob, attempt: Attempt
) -> FinishedJob:
    credentials = None
    if taken.row is not None:
        credentials = connection_rows.open_credentials(taken.row, runtime.stores.keyring)
    began = time.monotonic()
    with tracing.job(taken.job, taken.row) as span:
        reply = perform(runtime, taken.job, credentials, request.deadline)
        tracing.failed(span, reply.failed)
    return _finished(runtime, taken, reply, attempt, time.monotonic() - began)


def _perform_bundle(
    runtime: Runtime, request: FanoutRequest, work: Work, attempt: Attempt
) -> list[FinishedJob]:
    """Perform the jobs of a bundle with one request to the provider."""
    reads = [
        MemberRead(each.job, connection_rows.open_credentials(each.row, runtime.stores.keyring))
        for each in work
        if isinstance(each.job, ReadBusy) and each.row is not None
    ]
    began = time.monotonic()
    with tracing.bundle(work[0].provider, len(work)):
        results = member_reads.perform(runtime, reads, request.deadline)
    took = time.monotonic() - began
    return [
        replace(_failed(taken, result.failed), alone=result.failed)
        if isinstance(result, ReadAlone)
        else _finished(runtime, taken, result, attempt, took)
        for taken, result in zip(work, results, strict=True)
    ]


def _finished(
    runtime: Runtime, taken: TakenJob, reply: Reply, attempt: Attempt, seconds: float
) -> FinishedJob:
    if _may_repeat(taken.job, reply, attempt):
        failed = reply.failed or ELSEWHERE
        reply = replace(reply, failed=replace(failed, elsewhere=True))
    else:
        reports.count_job(runtime.stores.counters, taken.job, taken.row, reply, seconds)
    return FinishedJob(taken, reply, pack_body(reply))


def _failed(taken: TakenJob, failed: Failed) -> FinishedJob:
    reply = Reply(failed=failed)
    return FinishedJob(taken, reply, pack_body(reply))


def _may_repeat(job: Job, reply: Reply, attempt: Attempt) -> bool:
    """Whether a job has failed in such a way that another worker may perform it.

    A read is safe to repeat, even if calls were sent. Any other job must have had no effect at the provider.
    """
    if not attempt.elsewhere:
        return False
    if isinstance(job, CalendarRead):
        return not reply.whole()
    return reply.failed is not None and reply.failed.unsent and not attempt.sent


def _timeout(taken: TakenJob) -> Failed:
    return TIMED_OUT if taken.row is None else call_policy.timeout_failure(taken.row)

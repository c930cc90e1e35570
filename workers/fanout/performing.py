"""Performs one job of a request, or the jobs of a bundle, in a step."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from providers.base import Failed, ReadAlone
from providers.errors import Reason
from store.sql.queries import connection_rows
from store.sql.queries.connection_rows import Credentials
from workers import failures
from workers.egress import Attempt
from workers.execution import member_reads
from workers.execution.member_reads import MemberRead
from workers.fanout.codec import pack_body
from workers.fanout.taken import FinishedJob, Request, TakenJob, Work
from workers.jobs import CalendarRead, Job, ReadBusy, Reply
from workers.runtime import Runtime
from workers.telemetry import metrics, tracing

log = logging.getLogger(__name__)

# The answer of a worker that cannot reach a provider while another may: the request sends the job again.
ELSEWHERE = Failed(Reason.PROVIDER_ERROR, "The provider could not be reached", unsent=True, elsewhere=True)

# Performs one job by a deadline; the credentials are None for a job without a connection.
Perform = Callable[[Runtime, Job, Credentials | None, float], Reply]


def run(runtime: Runtime, request: Request, perform: Perform, work: Work) -> Sequence[FinishedJob]:
    """Perform a job or a bundle. An exception becomes failed replies, so that each job is answered."""
    provider = work[0].provider
    try:
        if provider is not None and runtime.egress.isolated(provider):
            return [_failed(each, ELSEWHERE) for each in work]
        if len(work) == 1:
            return [_run_one(runtime, request, perform, work[0])]
        return _run_bundle(runtime, request, work)
    except Exception as error:
        log.exception("a job failed unexpectedly", extra={"connection": work[0].job.connection})
        return [_failed(each, failures.failure_from(error)) for each in work]


def _run_one(runtime: Runtime, request: Request, perform: Perform, taken: TakenJob) -> FinishedJob:
    attempt, credentials = Attempt(), None
    if taken.row is not None:
        credentials = connection_rows.open_credentials(taken.row, runtime.stores.keyring)
    began = time.monotonic()
    performing = runtime.egress.performing(taken.provider, attempt)
    with tracing.job(taken.job, taken.row) as span, performing:
        reply = perform(runtime, taken.job, credentials, request.deadline)
        tracing.failed(span, reply.failed)
    return _finished(runtime, taken, reply, attempt, time.monotonic() - began)


def _run_bundle(runtime: Runtime, request: Request, work: Work) -> list[FinishedJob]:
    """Perform the jobs of a bundle with one request to the provider."""
    attempt = Attempt()
    reads = [
        MemberRead(each.job, connection_rows.open_credentials(each.row, runtime.stores.keyring))
        for each in work
        if isinstance(each.job, ReadBusy) and each.row is not None
    ]
    began = time.monotonic()
    performing = runtime.egress.performing(work[0].provider, attempt)
    with tracing.bundle(work[0].provider, len(work)), performing:
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
        metrics.count_job(runtime.stores.counters, taken.job, taken.row, reply, seconds)
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

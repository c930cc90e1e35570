"""Performs one job of a drain, or the jobs of a bundle, in a thread of the pool."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from providers.base import Failed, ReadAlone
from providers.errors import Reason
from store.sql.queries import connection_tokens
from store.sql.queries.connection_tokens import Credentials
from workers import failures
from workers.egress import Attempt
from workers.execution import member_reads
from workers.execution.member_reads import MemberRead
from workers.fanout.codec import pack_body
from workers.fanout.drain_state import FinishedJob, TakenJob, Work
from workers.fanout.handover import HandoverPolicy
from workers.jobs import CalendarRead, Job, ReadBusy, Reply
from workers.runtime import Runtime
from workers.telemetry import metrics, tracing

log = logging.getLogger(__name__)

ISOLATED = Failed(Reason.PROVIDER_ERROR, "The provider could not be reached", unsent=True)

# Performs one job by a deadline; the credentials are None for a job without a connection.
Perform = Callable[[Runtime, Job, Credentials | None, float], Reply]


class Performer:
    """Performs jobs with ``perform``. The methods are thread-safe."""

    def __init__(self, runtime: Runtime, perform: Perform, deadline: float, handover: HandoverPolicy) -> None:
        self._runtime = runtime
        self._perform = perform
        self._deadline = deadline
        self._handover = handover

    def run(self, work: Work) -> list[FinishedJob]:
        """Perform a job or a bundle. An exception becomes failed replies, so that each job is answered."""
        if self._handover.must_hand_over(work[0]):
            return [_failed(each, ISOLATED, hand_over=True) for each in work]
        try:
            return [self._attempt(work[0])] if len(work) == 1 else self._attempt_together(work)
        except Exception as error:
            log.exception("a job failed unexpectedly", extra={"connection": work[0].job.connection})
            return [_failed(each, failures.failure_from(error)) for each in work]

    def _attempt(self, taken: TakenJob) -> FinishedJob:
        """Perform one job."""
        stores = self._runtime.stores
        attempt = Attempt(may_hand_over=self._handover.enabled and taken.provider is not None)
        credentials = None
        if taken.row is not None:
            credentials = connection_tokens.open_credentials(taken.row, stores.keyring)
        began = time.monotonic()
        performing = self._runtime.egress.performing(taken.provider, attempt)
        with tracing.job(taken.job, taken.row) as span, performing:
            reply = self._perform(self._runtime, taken.job, credentials, self._deadline)
            tracing.failed(span, reply.failed)
        hand_over = attempt.may_hand_over and _may_repeat(taken.job, reply, attempt)
        if not hand_over:
            metrics.count_job(stores.counters, taken.job, taken.row, reply, time.monotonic() - began)
        return FinishedJob(taken, reply, pack_body(reply), hand_over)

    def _attempt_together(self, work: Work) -> list[FinishedJob]:
        """Perform the jobs of a bundle with one request."""
        stores = self._runtime.stores
        attempt = Attempt(may_hand_over=self._handover.enabled)
        reads = [
            MemberRead(each.job, connection_tokens.open_credentials(each.row, stores.keyring))
            for each in work
            if isinstance(each.job, ReadBusy) and each.row is not None
        ]
        began = time.monotonic()
        performing = self._runtime.egress.performing(work[0].provider, attempt)
        with tracing.bundle(work[0].provider, len(work)), performing:
            results = member_reads.perform(self._runtime, reads, self._deadline)
        took = time.monotonic() - began
        finished: list[FinishedJob] = []
        for taken, result in zip(work, results, strict=True):
            if isinstance(result, ReadAlone):
                finished.append(_failed(taken, result.failed)._replace(alone=result.failed))
                continue
            hand_over = attempt.may_hand_over and _may_repeat(taken.job, result, attempt)
            if not hand_over:
                metrics.count_job(stores.counters, taken.job, taken.row, result, took)
            finished.append(FinishedJob(taken, result, pack_body(result), hand_over))
        return finished


def _failed(taken: TakenJob, failed: Failed, *, hand_over: bool = False) -> FinishedJob:
    reply = Reply(failed=failed)
    return FinishedJob(taken, reply, pack_body(reply), hand_over)


def _may_repeat(job: Job, reply: Reply, attempt: Attempt) -> bool:
    """Whether a job has failed in such a way that another worker may perform it.

    A read is safe to repeat, even if calls were sent. Any other job must have had no effect at the provider.
    """
    if isinstance(job, CalendarRead):
        return attempt.handing_over and not reply.whole()
    return reply.failed is not None and reply.failed.unsent and not attempt.sent

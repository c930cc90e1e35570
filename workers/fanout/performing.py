"""Performs one job of a drain in a thread of the pool."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from providers.base import Failed
from providers.errors import Reason
from store.sql.queries import connections
from store.sql.queries.connections import Credentials
from workers.fanout import failures
from workers.fanout.codec import pack_body
from workers.fanout.drain_state import FinishedJob, TakenJob
from workers.fanout.egress import Attempt
from workers.fanout.handover import Mover
from workers.fanout.jobs import CalendarRead, Job, Reply
from workers.runtime import Runtime
from workers.telemetry import metrics, tracing

log = logging.getLogger(__name__)

ISOLATED = Failed(Reason.PROVIDER_ERROR, "The provider could not be reached", unsent=True)

# Performs one job by a deadline; the credentials are None for a job without a connection.
Perform = Callable[[Runtime, Job, Credentials | None, float], Reply]


class Performer:
    """Performs jobs with ``perform``. The methods are thread-safe."""

    def __init__(self, runtime: Runtime, perform: Perform, deadline: float, mover: Mover) -> None:
        self._runtime = runtime
        self._perform = perform
        self._deadline = deadline
        self._mover = mover

    def run(self, taken: TakenJob) -> FinishedJob:
        """Perform a job. Every exception becomes a failed reply, so that each job is answered."""
        if self._mover.must_move(taken):
            reply = Reply(failed=ISOLATED)
            return FinishedJob(taken, reply, pack_body(reply), move=True)
        move = False
        try:
            reply, move = self._attempt(taken)
            body = pack_body(reply)
        except Exception as error:
            log.exception("a job failed unexpectedly", extra={"connection": taken.job.connection})
            reply = Reply(failed=failures.because(error))
            body = pack_body(reply)
        return FinishedJob(taken, reply, body, move)

    def _attempt(self, taken: TakenJob) -> tuple[Reply, bool]:
        """The reply to a job, and whether another worker may perform it instead."""
        stores = self._runtime.stores
        attempt = Attempt(movable=self._mover.enabled and taken.provider is not None)
        credentials = None
        if taken.row is not None:
            credentials = connections.open_credentials(taken.row, stores.keyring)
        began = time.monotonic()
        performing = self._runtime.egress.performing(taken.provider, attempt)
        with tracing.job(taken.job, taken.row) as span, performing:
            reply = self._perform(self._runtime, taken.job, credentials, self._deadline)
            tracing.failed(span, reply.failed)
        move = attempt.movable and _may_repeat(taken.job, reply, attempt)
        if not move:
            metrics.done(stores.counters, taken.job, taken.row, reply, time.monotonic() - began)
        return reply, move


def _may_repeat(job: Job, reply: Reply, attempt: Attempt) -> bool:
    """Whether a job has failed in such a way that another worker may perform it.

    A read is safe to repeat, even if calls were sent. Any other job must have had no effect at the provider.
    """
    if isinstance(job, CalendarRead):
        return attempt.left and not reply.whole()
    return reply.failed is not None and reply.failed.unsent and not attempt.sent

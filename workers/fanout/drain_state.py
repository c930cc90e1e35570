"""A job on its way through a drain: taken, waiting for its turn, done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from providers.base import Failed
from store.coordination.provider_rate_limiter import AcquireRequest
from store.sql.queries.connections import SealedConnection
from workers.fanout.codec import pack_job
from workers.fanout.failures import BROKEN
from workers.fanout.jobs import Job, Reply


@dataclass(slots=True)
class TakenJob:
    """A job that was taken; ``row`` is its connection, ``ask`` what it has to ask of the throttle.

    ``id`` is its own: a request may send a job twice, under the same number.
    """

    id: int
    number: int
    job: Job
    # Who else waits for it, if others may.
    flight: str | None = None
    row: SealedConnection | None = None
    ask: AcquireRequest | None = None
    # What it says when it comes to nothing but waiting.
    failed: Failed = BROKEN
    # It finds out whether they answer again.
    probes: bool = False
    # Another worker does it too, and answers for it unless this one is first.
    handed: bool = False

    @property
    def provider(self) -> str | None:
        """The provider that it calls; None while that is not known, or the connection is gone."""
        return None if self.row is None else self.row.provider

    @property
    def message(self) -> bytes:
        """The job as it was taken."""
        return pack_job(self.number, self.job, self.flight)


class WaitingJob(NamedTuple):
    """A job that has no turn before ``when``, a moment of ``time.monotonic()``. It holds no place."""

    when: float
    id: int
    taken: TakenJob


class FinishedJob(NamedTuple):
    """A job that is over. ``body`` is its reply as it travels; ``generation`` is that of its connection's
    cache, noted before it began. ``move``: nothing was sent, and another worker may do it.
    """

    taken: TakenJob
    reply: Reply
    body: bytes
    generation: bytes
    move: bool = False

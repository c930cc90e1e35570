"""A job that a worker has taken from the list of a request, and its state in the worker."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from providers.base import Failed
from store.coordination.provider_rate_limiter import AcquireRequest
from store.coordination.single_flight import ReadTerms, SharedRead
from store.sql.queries.connection_rows import SealedConnection
from workers.failures import BROKEN
from workers.jobs import Job, Reply


class Request(NamedTuple):
    """The request whose jobs a task performs. ``deadline`` is a moment of ``time.monotonic()``.

    ``terms`` are those on which its reads are shared with other requests; None if they are not.
    """

    name: str
    deadline: float
    terms: ReadTerms | None = None

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, 0 after it."""
        return max(0.0, self.deadline - time.monotonic())


@dataclass(slots=True, eq=False)
class TakenJob:
    """A job of a request. ``name`` is that of its locks and leases; ``row`` is its connection."""

    number: int
    job: Job
    name: str
    # The flight of the job, if a web server of an earlier release has sent it.
    flight: str | None = None
    row: SealedConnection | None = None
    # The read that other jobs may share, the holder that this job waits for, and the generation with which it
    # has the lock; "" without it.
    read: SharedRead | None = None
    following: str = ""
    locked: str = ""
    # That of the connection's cache, looked up before the job began; None before that.
    generation: bytes | None = None
    acquire_request: AcquireRequest | None = None
    # The permit was granted; as a circuit breaker's probe.
    permitted: bool = False
    probes: bool = False
    # The failure that is reported if the job gets no permit before the deadline.
    failed: Failed = BROKEN
    # The reply was sent. A read that still runs continues only for the cache.
    answered: bool = False

    @property
    def provider(self) -> str | None:
        """The provider that the job calls; None until the connection is loaded, or if it was removed."""
        return None if self.row is None else self.row.provider


# The work of one step: one job, or a bundle (``workers.fanout.bundles``).
Work = list[TakenJob]


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that has ended. ``body`` is its encoded reply.

    ``alone``: the job leaves its bundle and is performed again, with this failure if no time is left.
    """

    taken: TakenJob
    reply: Reply
    body: bytes = field(repr=False)
    alone: Failed | None = None

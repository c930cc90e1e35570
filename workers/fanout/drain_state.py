"""The jobs of one drain: taken, waiting for a permit, in flight, finished."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from providers.base import Failed
from store.coordination.provider_rate_limiter import AcquireRequest
from store.sql.queries.connection_tokens import SealedConnection
from workers.failures import BROKEN
from workers.fanout.codec import Packed
from workers.jobs import Job, Reply


@dataclass(slots=True)
class TakenJob:
    """A job that was taken; ``row`` is its connection, ``acquire_request`` its request to the rate limiter.

    ``id`` is unique in the drain: a request may send a job twice, under the same number.
    """

    id: int
    number: int
    job: Job
    # The flight that the job leads, if other requests may share it.
    flight: str | None = None
    row: SealedConnection | None = None
    acquire_request: AcquireRequest | None = None
    # The name of its lease at the rate limiter.
    lease_name: str = ""
    # The id of the first job of its bundle, None for a job that is performed separately.
    bundle: int | None = None
    # That of the connection's cache, looked up before the job began.
    generation: bytes = b""
    # The failure that is reported if the job gets no permit before the deadline.
    failed: Failed = BROKEN
    # The job is a circuit breaker's probe.
    probes: bool = False
    # Another worker performs the job too. This worker replies only if it succeeds.
    handed_over: bool = False
    # The reply was sent at the deadline. The read continues only for the cache.
    timeout_reported: bool = False

    @property
    def provider(self) -> str | None:
        """The provider that the job calls; None until the connection is loaded, or if it was removed."""
        return None if self.row is None else self.row.provider

    @property
    def packed(self) -> Packed:
        """The job as it was on the list."""
        return Packed(self.number, self.job, self.flight)


# What one place performs: one job, or the jobs of a bundle.
Work = list[TakenJob]


class WaitingJob(NamedTuple):
    """A job that gets no permit before ``when``, a moment of ``time.monotonic()``. It holds no place."""

    when: float
    id: int
    taken: TakenJob


class FinishedJob(NamedTuple):
    """A job that has ended. ``body`` is its encoded reply.

    ``hand_over``: the job has failed, and another worker may perform it. ``alone``: the job leaves its bundle
    and is performed again, with this failure if there is no time for that.
    """

    taken: TakenJob
    reply: Reply
    body: bytes
    hand_over: bool = False
    alone: Failed | None = None


class DrainJobs:
    """The jobs that a drain has taken and not finished."""

    def __init__(self) -> None:
        # Loaded, for the next places.
        self.loaded: deque[TakenJob] = deque()
        # Running in a place or prefetched for one, by id.
        self.in_flight: dict[int, TakenJob] = {}
        # A heap, by the moment of the next attempt to get a permit.
        self._waiting: list[WaitingJob] = []

    def __bool__(self) -> bool:
        return bool(self.in_flight or self._waiting or self.loaded)

    @property
    def waiting(self) -> list[TakenJob]:
        """The jobs that wait for a permit."""
        return [each.taken for each in self._waiting]

    def next_due(self) -> float | None:
        """The moment at which the first waiting job may try again."""
        return self._waiting[0].when if self._waiting else None

    def places(self, now: float) -> int:
        """How many places the loaded jobs need, and the waiting jobs that may try again now."""
        due = [each.taken for each in self._waiting if each.when <= now]
        ready = [*self.loaded, *due]
        bundles = {each.bundle for each in ready if each.bundle is not None}
        return len(bundles) + sum(each.bundle is None for each in ready)

    def wait(self, taken: TakenJob, when: float) -> None:
        """Have a job try again at ``when``."""
        heapq.heappush(self._waiting, WaitingJob(when, taken.id, taken))

    def next(self, places: int, now: float) -> list[Work]:
        """Take out work for this many places: first the due jobs, then loaded jobs."""
        taken: list[Work] = []
        while self._waiting and len(taken) < places and self._waiting[0].when <= now:
            taken.append(self._next_due())
        return taken + self.next_loaded(places - len(taken))

    def next_loaded(self, places: int) -> list[Work]:
        """Take out work for this many places, of the loaded jobs; a bundle is in a row there."""
        taken: list[Work] = []
        while self.loaded and len(taken) < places:
            work = [self.loaded.popleft()]
            while self.loaded and work[0].bundle is not None and self.loaded[0].bundle == work[0].bundle:
                work.append(self.loaded.popleft())
            taken.append(work)
        return taken

    def _next_due(self) -> Work:
        """Take out the first waiting job, with all of its bundle: they wait for one permit."""
        first = heapq.heappop(self._waiting).taken
        if first.bundle is None:
            return [first]
        others = [each for each in self.waiting if each.bundle == first.bundle]
        self.remove({each.id for each in others})
        return [first, *sorted(others, key=lambda each: each.id)]

    def drop_waiting(self) -> list[TakenJob]:
        """Take out all jobs that wait for a permit."""
        dropped, self._waiting = self.waiting, []
        return dropped

    def drop_loaded(self) -> list[TakenJob]:
        """Take out all loaded jobs."""
        dropped = list(self.loaded)
        self.loaded.clear()
        return dropped

    def remove(self, ids: Collection[int]) -> None:
        """Remove jobs that have not begun."""
        self.loaded = deque(each for each in self.loaded if each.id not in ids)
        self._waiting = [each for each in self._waiting if each.id not in ids]
        heapq.heapify(self._waiting)

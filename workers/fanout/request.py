"""The state of one request in the web tier while workers perform its jobs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from store.coordination.single_flight import ReadKey
from workers.fanout.codec import read_digest, reply_list, work_list
from workers.jobs import Job, Reply
from workers.queues import Queue

# Seconds after which a request checks whether the leases of its reads are renewed, plus a share for each job
# without a reply.
CHECK_SECONDS = 1.0
CHECK_SECONDS_PER_JOB = 0.001


@dataclass(frozen=True, slots=True)
class CoalescingPolicy:
    """Lets a request use reads that other requests have claimed; times in milliseconds.

    ``began`` is when the request looked into the cache, or earlier: reads that finished before are cached.
    Reads that were claimed before ``newer_than`` are not used.
    """

    began: float
    newer_than: int | None = None


@dataclass(slots=True)
class PendingRequest:
    """The jobs of one request by number, and the replies so far.

    ``flights`` has the flight of each job that others may share. ``sent`` has the numbers of the jobs that
    this request has sent to workers, as a leader or without a flight.
    """

    name: str
    jobs: Mapping[int, Job]
    queue: Queue
    deadline: float
    coalescing: CoalescingPolicy | None
    replies: dict[int, Reply] = field(default_factory=dict)
    flights: dict[int, str] = field(default_factory=dict)
    sent: set[int] = field(default_factory=set)
    _keys: dict[int, ReadKey] = field(default_factory=dict)

    @property
    def work_list(self) -> str:
        """The Redis list of its jobs."""
        return work_list(self.name)

    @property
    def reply_list(self) -> str:
        """The Redis list of its replies."""
        return reply_list(self.name)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, 0 after it."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def unanswered(self) -> int:
        """The number of jobs without a reply."""
        return len(self.jobs) - len(self.replies)

    def unanswered_flights(self) -> dict[int, str]:
        """The flights, by number of the job, that have not replied."""
        return {number: flight for number, flight in self.flights.items() if number not in self.replies}

    def key(self, number: int) -> ReadKey:
        """The single-flight key of a job."""
        if number not in self._keys:
            job = self.jobs[number]
            if job.connection is None:
                raise TypeError(f"{job!r} is not a read and cannot be shared")
            self._keys[number] = ReadKey(job.connection, read_digest(job), number)
        return self._keys[number]

    def span_attributes(self) -> dict[str, int]:
        """The attributes of the fan-out's span."""
        return {"almanac.asked": len(self.sent), "almanac.late": self.unanswered}

    def check_interval(self) -> float:
        """Seconds between two checks of the leases; longer with many missing replies, which cost more."""
        if self.coalescing is None:
            return math.inf
        return CHECK_SECONDS + self.unanswered * CHECK_SECONDS_PER_JOB

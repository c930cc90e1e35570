"""The state of one request in the web tier while workers perform its jobs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from store.coordination.single_flight import ReadTerms, SharedRead
from workers.fanout.codec import read_digest, reply_list, work_list
from workers.jobs import Job, Reply
from workers.queues import Queue

# Seconds after which a request checks whether its reads are still under way, plus a share for each job
# without a reply.
CHECK_SECONDS = 1.0
CHECK_SECONDS_PER_JOB = 0.001


@dataclass(frozen=True, slots=True)
class CoalescingPolicy:
    """Lets a request use reads of other requests; times in milliseconds.

    ``began`` is when the request looked into the cache, or earlier: reads that finished before are cached.
    Reads that were sent before ``newer_than`` are not used.
    """

    began: float
    newer_than: int | None = None


@dataclass(slots=True)
class PendingRequest:
    """The jobs of one request by number, and the replies so far.

    ``sent`` has the numbers of the jobs that were sent to workers. ``again`` are the moments at which jobs
    are sent again that a worker could not perform, ``attempts`` how often each was.
    """

    name: str
    jobs: Mapping[int, Job]
    queue: Queue
    deadline: float
    terms: ReadTerms | None = None
    replies: dict[int, Reply] = field(default_factory=dict)
    sent: set[int] = field(default_factory=set)
    again: dict[int, float] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    # Jobs that no worker had under way when the request last checked.
    idle: set[int] = field(default_factory=set)
    # Tasks were sent for jobs that were on the list already.
    tasks_sent_again: bool = False
    _reads: dict[int, SharedRead] = field(default_factory=dict)

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
    def unanswered(self) -> list[int]:
        """The numbers of the jobs without a reply."""
        return [number for number in self.jobs if number not in self.replies]

    def read(self, number: int) -> SharedRead:
        """The read of a job, which other requests may share."""
        if number not in self._reads:
            job = self.jobs[number]
            if job.connection is None:
                raise TypeError(f"{job!r} is not a read and cannot be shared")
            self._reads[number] = SharedRead(job.connection, read_digest(job))
        return self._reads[number]

    def next_check(self, checked_at: float) -> float:
        """The moment of the next check; later with many missing replies, which cost more."""
        if self.terms is None:
            return self.deadline
        return checked_at + CHECK_SECONDS + len(self.unanswered) * CHECK_SECONDS_PER_JOB

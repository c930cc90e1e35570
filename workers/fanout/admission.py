"""Admission: limits how many requests wait for workers at once. Further requests are refused immediately.

A waiting request occupies a thread of its web process. So each process reserves threads for requests that
need no worker, and all processes together admit no more requests than the workers can serve. Reads and writes
are limited separately: a provider that hangs does not block writes at the other.

An admitted request has a lease in Redis until its deadline. The lease of a process that was killed expires.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from redis import Redis
from redis.client import Pipeline

from store.coordination.heartbeats import AWAY_SECONDS, WORKERS
from store.lua import Script, json_argument
from workers.queues import Queue

# Limits for one web process; its other threads serve requests that need no worker.
MAX_PER_PROCESS = {Queue.READS: 64, Queue.WRITES: 32}
# Limits for all processes.
MAX_TOTAL = {Queue.READS: 256, Queue.WRITES: 64}

# Seconds for which a lease outlasts the deadline, while the request collects its last replies.
MARGIN = 1.0

_ENTER = Script("coordination/scripts/admission.lua")


class Overloaded(Exception):
    """The request was refused before any job was sent. ``retry_after`` is in seconds."""

    retry_after = 1


class QueueFull(Overloaded):
    """The limit of waiting requests is reached."""

    retry_after = 2


class NoWorker(Overloaded):
    """There were workers, but none has sent a heartbeat for a while."""

    retry_after = 5


class Admission:
    """Admits at most ``most`` requests at once for each queue, over all processes."""

    def __init__(self, redis: Redis, most: Mapping[Queue, int] = MAX_TOTAL) -> None:
        self._redis = redis
        self._most = most
        self._here = {queue: threading.BoundedSemaphore(limit) for queue, limit in MAX_PER_PROCESS.items()}

    @contextmanager
    def admit_in_process(self, queue: Queue) -> Iterator[None]:
        """Admit a request to this process.

        :raise QueueFull: if the limit of this process is reached
        """
        semaphore = self._here[queue]
        if not semaphore.acquire(blocking=False):
            raise QueueFull(f"the limit of waiting {queue} in this process is reached")
        try:
            yield
        finally:
            semaphore.release()

    def enter(self, queue: Queue, name: str, seconds: float) -> None:
        """Admit a request to all processes, until ``leave`` or for this number of seconds.

        :raise Overloaded: if the limit is reached, or no worker is alive
        :raise redis.RedisError: when Redis is down
        """
        self._run(queue, name, int((seconds + MARGIN) * 1000))

    def check(self, queue: Queue) -> None:
        """Check without admitting; raises like ``enter``. For optional work, which can be skipped."""
        self._run(queue, "", 0)

    def _run(self, queue: Queue, name: str, lease: int) -> None:
        arguments = json_argument(name=name, lease=lease, limit=self._most[queue], away=AWAY_SECONDS)
        result = _ENTER.run(self._redis, [admitted_key(queue), WORKERS], arguments)
        if result == -1:
            raise NoWorker(f"no worker for {AWAY_SECONDS:.0f} seconds")
        if not result:
            raise QueueFull(f"the limit of waiting {queue} is reached")

    def leave(self, pipe: Pipeline, queue: Queue, name: str) -> None:
        """Queue on ``pipe`` that the request has ended."""
        pipe.zrem(admitted_key(queue), name)


def admitted_key(queue: Queue) -> str:
    """The Redis key of the admitted requests, scored by the end of their leases."""
    return f"waiting:{queue}"

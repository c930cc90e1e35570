"""How many requests may wait for workers at once. Who comes when it is full is told to come back, at once.

A request that waits holds a thread of its web process and, where they are behind, has only others to wait
for. So each process keeps threads for what needs no worker, and all processes together let no more wait than
workers can attend to. Reads and writes have rooms of their own: a provider that hangs does not keep anybody
from writing at the other.

Who waits has a lease in Redis until its deadline: the place of a process that was killed comes free by
itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from redis import Redis
from redis.client import Pipeline

from store.coordination.heartbeats import AWAY_SECONDS, WORKERS
from store.lua import Script, named
from workers.queues import Queue

# Of the threads of one web process; the rest answers what needs no worker.
MOST_HERE = {Queue.READS: 64, Queue.WRITES: 32}
MOST = {Queue.READS: 256, Queue.WRITES: 64}

# Seconds by which a lease outlasts its request, which takes its last replies.
MARGIN = 1.0

_ENTER = Script("coordination/scripts/admission.lua")


class Overloaded(Exception):
    """Nothing was asked of any worker. ``retry_after`` is in seconds."""

    retry_after = 1


class QueueFull(Overloaded):
    """As many requests wait as may."""

    retry_after = 2


class NoWorker(Overloaded):
    """There were workers, and none has been there for a while."""

    retry_after = 5


class Admission:
    """``most`` may wait at once, for each queue, over all processes."""

    def __init__(self, redis: Redis, most: Mapping[Queue, int] = MOST) -> None:
        self._redis = redis
        self._most = most
        self._here = {queue: threading.BoundedSemaphore(places) for queue, places in MOST_HERE.items()}

    @contextmanager
    def here(self, queue: Queue) -> Iterator[None]:
        """One of the places of this process.

        :raise Full: when there is none
        """
        places = self._here[queue]
        if not places.acquire(blocking=False):
            raise QueueFull(f"as many {queue} as may wait in this process")
        try:
            yield
        finally:
            places.release()

    def enter(self, queue: Queue, name: str, seconds: float) -> None:
        """One of the places of all processes, until it is left or so many seconds are over.

        :raise Overloaded: when there is none, or nobody to wait for
        :raise redis.RedisError: when Redis is down
        """
        self._ask(queue, name, int((seconds + MARGIN) * 1000))

    def look(self, queue: Queue) -> None:
        """Take no place; raises as ``enter``, for work that can as well be left undone."""
        self._ask(queue, "", 0)

    def _ask(self, queue: Queue, name: str, lease: int) -> None:
        arguments = named(name=name, lease=lease, limit=self._most[queue], away=AWAY_SECONDS)
        found = _ENTER.run(self._redis, [room(queue), WORKERS], arguments)
        if found == -1:
            raise NoWorker(f"no worker for {AWAY_SECONDS:.0f} seconds")
        if not found:
            raise QueueFull(f"as many {queue} as may wait")

    def leave(self, pipe: Pipeline, queue: Queue, name: str) -> None:
        """Queue on ``pipe`` that a place is free."""
        pipe.zrem(room(queue), name)


def room(queue: Queue) -> str:
    """The set of those who wait, each until its lease ends."""
    return f"waiting:{queue}"

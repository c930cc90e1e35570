"""The web tier's side of a fan-out: put the jobs on a list, send a few tasks, join what comes back.

The jobs of one request are a Redis list of its own; each of a handful of identical tasks pulls from it
until it is empty, and pushes replies to the request's reply list. The join is a blocking pop on that
list under one deadline: what has not arrived by then has failed, what did arrive counts.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import cast

from redis import Redis

from providers.base import Failed
from providers.errors import Reason
from store.stores import LONGEST_POP
from workers.celery_app import Almanac
from workers.jobs import Job, Reply, pack_job, unpack_reply
from workers.queues import Queue

DRAIN = {Queue.READS: "reads.drain", Queue.WRITES: "writes.drain"}

# One task keeps this many reads in flight before a second process is worth a message of its own.
JOBS_PER_TASK = 16

# Replies that arrive after the join are deleted by time.
LEFTOVER_SECONDS = 60

# How much of the time workers may use: what they give up on themselves still arrives, with its reason.
WORKERS_SHARE = 0.97

# Redis before 7 counts a pop's time in milliseconds, and takes 0 for ever.
SHORTEST_POP = 0.01

LATE = Failed(Reason.PROVIDER_ERROR, "The provider did not answer in time")


def work_list(fanout: str) -> str:
    """The Redis list of jobs that nobody has taken."""
    return f"fanout:{fanout}:work"


def reply_list(fanout: str) -> str:
    """The Redis list of replies that the request has not seen."""
    return f"fanout:{fanout}:replies"


class Fanout:
    """Hands jobs to the workers and waits for them."""

    def __init__(self, celery: Almanac, redis: Redis, *, tasks: int) -> None:
        self._celery = celery
        self._redis = redis
        self._tasks = tasks

    def prepare(self) -> None:
        """Connect to the broker.

        :raise kombu.exceptions.OperationalError: when it is down
        """
        with self._celery.producer_pool.acquire(block=True) as producer:
            producer.connection.ensure_connection(max_retries=1)
            # Opening the channel is a round trip of its own.
            _ = producer.channel

    def gather(self, jobs: Sequence[Job], *, queue: Queue, deadline: float) -> list[Reply]:
        """A reply for each job, in order. ``deadline`` is a moment of ``time.monotonic()``.

        :raise redis.RedisError, kombu.exceptions.OperationalError: when Redis or the broker is down
        """
        if not jobs:
            return []
        fanout = secrets.token_hex(12)
        try:
            self._send(fanout, jobs, queue, deadline)
            replies = self._join(fanout, len(jobs), deadline)
        finally:
            self._redis.delete(work_list(fanout), reply_list(fanout))
        late = Reply(failed=LATE)
        return [replies.get(number, late) for number in range(len(jobs))]

    def _send(self, fanout: str, jobs: Sequence[Job], queue: Queue, deadline: float) -> None:
        left = max(0.0, deadline - time.monotonic())
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.rpush(work_list(fanout), *(pack_job(*numbered) for numbered in enumerate(jobs)))
            pipe.expire(work_list(fanout), int(left) + LEFTOVER_SECONDS)
            pipe.execute()
        tasks = min(self._tasks, -(-len(jobs) // JOBS_PER_TASK))
        arguments = {"fanout": fanout, "deadline": time.time() + left * WORKERS_SHARE}
        with self._celery.producer_pool.acquire(block=True) as producer:
            for _ in range(tasks):
                self._celery.send_task(DRAIN[queue], kwargs=arguments, expires=left, producer=producer)

    def _join(self, fanout: str, expected: int, deadline: float) -> dict[int, Reply]:
        replies: dict[int, Reply] = {}
        name = reply_list(fanout)
        while len(replies) < expected and (left := deadline - time.monotonic()) > 0:
            first = self._redis.blpop([name], timeout=min(max(left, SHORTEST_POP), LONGEST_POP))
            if first is None:
                continue
            more = self._redis.lpop(name, expected) or []
            replies.update(unpack_reply(data) for data in cast(list[bytes], [first[1], *more]))
        return replies

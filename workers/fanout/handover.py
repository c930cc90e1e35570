"""Hands the jobs of a request to one other worker, which performs them whatever its own state is.

The jobs are put into a list of their own, and a task that pulls from it goes to the queue of that worker. A
job is handed over once: the other worker does not hand it on.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Sequence

from celery import Celery
from kombu import Exchange
from kombu import Queue as KombuQueue
from kombu.exceptions import OperationalError
from redis import Redis
from redis.exceptions import RedisError

from workers.fanout.codec import work_list
from workers.fanout.egress import Egress
from workers.queues import DRAIN, Queue

log = logging.getLogger(__name__)

# Seconds before the deadline in which another worker could not answer any more.
LEAST_LEFT = 0.1

# Seconds after the end of a worker when RabbitMQ deletes its queue.
QUEUE_SECONDS = 3600.0

_WORKERS = Exchange("workers", type="direct")


def own_queue(worker: str) -> KombuQueue:
    """The queue from which one worker alone takes tasks."""
    return KombuQueue(f"worker.{worker}", _WORKERS, routing_key=worker, expires=QUEUE_SECONDS)


class HandOver:
    """The way from the drain of one request to other workers. ``deadline`` is in seconds since 1970."""

    def __init__(
        self, celery: Celery, redis: Redis, egress: Egress, queue: Queue, fanout: str, deadline: float
    ) -> None:
        self._celery = celery
        self._redis = redis
        self._egress = egress
        self._queue = queue
        self._fanout = fanout
        self._deadline = deadline

    def hand_over(self, provider: str | None, jobs: Sequence[bytes]) -> bool:
        """Have another worker do jobs for one provider; False when none can, or no time is left."""
        left = self._deadline - time.time()
        worker = self._egress.peer(provider)
        if worker is None or left < LEAST_LEFT:
            return False
        handed = f"{self._fanout}:{secrets.token_hex(6)}"
        try:
            with self._redis.pipeline(transaction=False) as pipe:
                pipe.rpush(work_list(handed), *jobs)
                pipe.pexpire(work_list(handed), int(left * 1000) + 1000)
                pipe.execute()
            arguments = {
                "fanout": self._fanout,
                "deadline": self._deadline,
                "most": len(jobs),
                "handed": handed,
            }
            self._celery.send_task(
                DRAIN[self._queue], kwargs=arguments, expires=left, queue=own_queue(worker)
            )
        except OperationalError as error:
            log.warning("jobs could not be handed to another worker: %s", type(error).__name__)
            return not self._taken_back(handed, len(jobs))
        except RedisError as error:
            log.warning("jobs could not be handed to another worker: %s", type(error).__name__)
            return False
        log.info("%d jobs were handed to %s", len(jobs), worker)
        return True

    def _taken_back(self, handed: str, number: int) -> bool:
        """Whether all jobs were still in the list, which is deleted.

        A broker that fails may have sent the task all the same: jobs that are no longer in the list are
        being done by the other worker.
        """
        try:
            with self._redis.pipeline(transaction=True) as pipe:
                pipe.llen(work_list(handed))
                pipe.delete(work_list(handed))
                left, _ = pipe.execute()
        except RedisError as error:
            log.warning("handed jobs could not be taken back: %s", type(error).__name__)
            return False
        return bool(left == number)

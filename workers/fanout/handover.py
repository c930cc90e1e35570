"""Hands jobs over to other workers when this one cannot reach their provider.

The jobs go to a list of their own, and a task that takes jobs from it goes to the queue of one other worker.
That worker performs them whatever its own state is: a job is handed over once.
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

from workers.egress import Egress
from workers.fanout import bundles
from workers.fanout.codec import addresses, work_list
from workers.fanout.drain_state import DrainJobs, FinishedJob, TakenJob
from workers.fanout.named_results import NamedResults
from workers.fanout.taken_flights import TakenFlights
from workers.jobs import CalendarRead
from workers.queues import DRAIN, Queue

log = logging.getLogger(__name__)

# Seconds that another worker needs at least to answer before the deadline.
MIN_LEFT = 0.1

# Seconds after which RabbitMQ deletes the queue of a worker that has ended.
QUEUE_SECONDS = 3600.0

_WORKERS = Exchange("workers", type="direct")


def own_queue(worker: str) -> KombuQueue:
    """The queue from which only this worker takes tasks."""
    return KombuQueue(f"worker.{worker}", _WORKERS, routing_key=worker, expires=QUEUE_SECONDS)


class Handover:
    """Sends jobs of one request to other workers. ``deadline`` is in seconds since 1970."""

    def __init__(
        self, celery: Celery, redis: Redis, egress: Egress, queue: Queue, fanout: str, deadline: float
    ) -> None:
        self._celery = celery
        self._redis = redis
        self._egress = egress
        self._queue = queue
        self._fanout = fanout
        self._deadline = deadline

    def hand_over(self, provider: str | None, elements: Sequence[bytes]) -> Sequence[bytes]:
        """Send jobs for one provider to another worker, as elements of a work list.

        Returns the elements that stay here: all of them if there is no such worker, or no time left.
        """
        left = self._deadline - time.time()
        worker = self._egress.peer(provider)
        if worker is None or left < MIN_LEFT:
            return elements
        handed = f"{self._fanout}:{secrets.token_hex(6)}"
        try:
            with self._redis.pipeline(transaction=False) as pipe:
                pipe.rpush(work_list(handed), *elements)
                pipe.pexpire(work_list(handed), int(left * 1000) + 1000)
                pipe.execute()
            arguments = {
                "fanout": self._fanout,
                "deadline": self._deadline,
                "most": len(elements),
                "handed": handed,
            }
            self._celery.send_task(
                DRAIN[self._queue], kwargs=arguments, expires=left, queue=own_queue(worker)
            )
        except OperationalError as error:
            log.warning("jobs could not be handed to another worker: %s", type(error).__name__)
            return self._withdraw(handed)
        except RedisError as error:
            log.warning("jobs could not be handed to another worker: %s", type(error).__name__)
            return elements
        log.info("jobs handed to another worker: %d to %s", len(elements), worker)
        return []

    def _withdraw(self, handed: str) -> Sequence[bytes]:
        """Delete the list; returns the elements that were still in it.

        A broker that fails may have sent the task all the same. The other worker then performs the jobs that
        it has taken from the list.
        """
        try:
            with self._redis.pipeline(transaction=True) as pipe:
                results = NamedResults(pipe)
                pipe.lrange(work_list(handed), 0, -1)
                results.name("elements")
                pipe.delete(work_list(handed))
                elements: list[bytes] = results.by_name(pipe.execute())["elements"]
        except RedisError as error:
            log.warning("handed jobs could not be withdrawn: %s", type(error).__name__)
            return []
        return elements


class HandoverPolicy:
    """Decides which jobs of a drain go to other workers, and sends them through ``others``.

    Without ``others`` all jobs are performed by this worker.
    """

    def __init__(self, egress: Egress, others: Handover | None, flights: TakenFlights) -> None:
        self._egress = egress
        self._others = others
        self._flights = flights

    @property
    def enabled(self) -> bool:
        """Whether jobs of this drain may go to other workers."""
        return self._others is not None

    @property
    def needed(self) -> bool:
        """Whether this worker is isolated from a provider, so that jobs should be handed over."""
        return self._others is not None and self._egress.any_isolated()

    def must_hand_over(self, taken: TakenJob) -> bool:
        """Whether a job calls a provider from which this worker is isolated."""
        if self._others is None:
            return False
        if taken.provider is None:
            isolated = self._egress.any_isolated()
            return taken.job.connection is None and isolated and self._egress.peer(None) is not None
        return self._egress.isolated(taken.provider)

    def hand_over_blocked(self, jobs: DrainJobs) -> None:
        """Hand over the jobs for providers from which this worker is isolated.

        Reads in flight are handed over as well, and continue here: the first successful reply counts.
        """
        if not self.needed:
            return
        not_begun = [*jobs.loaded, *jobs.waiting]
        if handed_over := self._hand_over([each for each in not_begun if self.must_hand_over(each)]):
            jobs.remove(handed_over)
        in_flight = [
            each for each in jobs.in_flight.values() if not each.handed_over and self.must_hand_over(each)
        ]
        reads = [each for each in in_flight if isinstance(each.job, CalendarRead)]
        handed_over = self._hand_over(reads)
        for each in reads:
            each.handed_over = each.id in handed_over

    def hand_over_failed(self, finished: Sequence[FinishedJob]) -> set[int]:
        """Hand over the failed jobs that another worker may perform.

        Returns the ids of all failed jobs for which another worker replies.
        """
        failed = [each for each in finished if not each.reply.whole()]
        handed_over = {each.taken.id for each in failed if each.taken.handed_over}
        here = [each for each in failed if not each.taken.handed_over]
        handed_over |= self._hand_over([each.taken for each in here if each.hand_over])
        for each in failed:
            if each.taken.id in handed_over:
                self._flights.release(each.taken.flight)
        return handed_over

    def _hand_over(self, jobs: Sequence[TakenJob]) -> set[int]:
        """Hand jobs over, to one worker for each provider; returns the ids of the jobs handed over."""
        if self._others is None:
            return set()
        handed_over: set[int] = set()
        by_provider: dict[str | None, list[TakenJob]] = {}
        for each in jobs:
            by_provider.setdefault(each.provider, []).append(each)
        for provider, some in by_provider.items():
            elements = self._others.hand_over(provider, bundles.elements(each.packed for each in some))
            kept = {to.number for data in elements for to in addresses(data)}
            for each in some:
                if each.number not in kept:
                    handed_over.add(each.id)
                    self._flights.release(each.flight)
        return handed_over

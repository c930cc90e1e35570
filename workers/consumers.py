"""Starts and stops the consumption of the queues of reads and writes, by one worker."""

from __future__ import annotations

from celery import Celery

from workers.queues import Queue


class Consumers:
    """The consumers of the worker of this name."""

    def __init__(self, celery: Celery, worker: str) -> None:
        self._celery = celery
        self._worker = worker
        self._cancelled: set[str] = set()

    def consume(self, wanted: bool) -> None:
        """Cancel the consumers, or add the cancelled ones again.

        :raise kombu.exceptions.OperationalError: when the broker is down
        """
        control, destination = self._celery.control, [self._worker]
        if wanted:
            for queue in sorted(self._cancelled):
                control.add_consumer(queue, destination=destination)
            self._cancelled = set()
            return
        # A worker may have been started for other queues only.
        consumed = {Queue.READS, Queue.WRITES} & set(self._celery.amqp.queues.consume_from)
        for queue in sorted(consumed):
            control.cancel_consumer(queue, destination=destination)
        self._cancelled |= consumed

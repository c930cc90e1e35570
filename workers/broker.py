"""The broker asked how it is, over a connection of its own, which gives up within a second or so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kombu import Connection

from store.settings import Settings
from workers.celery_app import Almanac
from workers.queues import Queue

# Each step, in seconds.
PATIENCE = 1.0


def lengths(settings: Settings) -> dict[Queue, int]:
    """How many tasks wait in each queue that no worker has taken.

    :raise kombu.exceptions.OperationalError, OSError: when the broker does not answer
    """
    with _connected(settings) as connection:
        return {queue: _length(connection, queue) for queue in Queue}


def any_worker(celery: Almanac, settings: Settings, *, seconds: float) -> bool:
    """Whether a worker answers in time; raises as ``lengths``."""
    with _connected(settings) as connection:
        return bool(celery.control.ping(timeout=seconds, limit=1, connection=connection))


@contextmanager
def _connected(settings: Settings) -> Iterator[Any]:
    timeouts = ("socket_timeout", "socket_connect_timeout")
    if settings.broker_url.startswith("amqp"):
        timeouts = ("read_timeout", "write_timeout")
    options = dict.fromkeys(timeouts, PATIENCE)
    with Connection(settings.broker_url, connect_timeout=PATIENCE, transport_options=options) as connection:
        connection.ensure_connection(max_retries=1, timeout=PATIENCE)
        yield connection


def _length(connection: Any, queue: Queue) -> int:
    """0 also for a queue that is not there: Redis has no empty ones, RabbitMQ none that nobody has used."""
    # RabbitMQ closes the channel on which such a queue was asked for.
    channel = connection.channel()
    try:
        return int(channel.queue_declare(queue, passive=True).message_count)
    except connection.channel_errors:
        return 0
    finally:
        channel.close()

"""Health checks of the broker, over a connection of their own with short timeouts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kombu import Connection
from kombu.exceptions import OperationalError

from store.config.settings import Settings
from workers.celery_app import Almanac, tls_options
from workers.queues import Queue

# Default timeout of each step, in seconds.
CONNECT_SECONDS = 1.0

# Between two attempts to connect, in seconds.
RETRY_SECONDS = 0.5


class Unreachable(Exception):
    """The broker does not accept connections. The message has its address, without the password."""


def lengths(settings: Settings) -> dict[Queue, int]:
    """How many tasks wait in each queue that no worker has taken.

    :raise kombu.exceptions.OperationalError, OSError: when the broker does not answer
    """
    with _connected(settings) as connection:
        return {queue: _length(connection, queue) for queue in Queue}


def any_worker(celery: Almanac, settings: Settings, *, seconds: float, host: str | None = None) -> bool:
    """Whether any worker, or one of this ``host``, answers a ping in ``seconds``; raises like ``lengths``."""
    only = {} if host is None else {"pattern": f"*@{host}", "matcher": "glob"}
    with _connected(settings, max(CONNECT_SECONDS, seconds)) as connection:
        return bool(celery.control.ping(timeout=seconds, limit=1, connection=connection, **only))


def queues_by_worker(celery: Almanac, *, seconds: float) -> dict[str, set[str]]:
    """The queues that each worker takes tasks from, of the workers that answer within ``seconds``."""
    taken = celery.control.inspect(timeout=seconds).active_queues() or {}
    return {worker: {queue["name"] for queue in queues} for worker, queues in taken.items()}


def transport(settings: Settings, *, seconds: float) -> str:
    """The kind of the broker, once it has accepted a connection; raises like ``lengths``."""
    with _connected(settings, seconds) as connection:
        return str(connection.transport.driver_type)


def wait_for(settings: Settings, seconds: float) -> None:
    """Return as soon as the broker accepts connections.

    :raise Unreachable: when it has not within ``seconds``
    """
    with _connection(settings) as connection:
        faults = (OperationalError, OSError, *connection.connection_errors, *connection.channel_errors)
        try:
            connection.ensure_connection(
                timeout=seconds, interval_start=RETRY_SECONDS, interval_step=0, interval_max=RETRY_SECONDS
            )
        except faults as error:
            raise Unreachable(
                f"the broker at {connection.as_uri()} cannot be reached: {error or type(error).__name__}; "
                "check ALMANAC_BROKER_URL, or ALMANAC_REDIS_URL where that is not set"
            ) from error


@contextmanager
def _connected(settings: Settings, patience: float = CONNECT_SECONDS) -> Iterator[Any]:
    with _connection(settings, patience) as connection:
        connection.ensure_connection(max_retries=1, timeout=patience)
        yield connection


@contextmanager
def _connection(settings: Settings, patience: float = CONNECT_SECONDS) -> Iterator[Any]:
    timeouts = ("socket_timeout", "socket_connect_timeout")
    if settings.broker_url.startswith("amqp"):
        timeouts = ("read_timeout", "write_timeout")
    options = dict.fromkeys(timeouts, patience)
    with Connection(
        settings.broker_url,
        connect_timeout=patience,
        transport_options=options,
        ssl=tls_options(settings.broker_url) or False,
    ) as connection:
        yield connection


def _length(connection: Any, queue: Queue) -> int:
    """The length of a queue; 0 for one that does not exist: empty in Redis, or unused in RabbitMQ."""
    # RabbitMQ closes the channel when the queue does not exist.
    channel = connection.channel()
    try:
        return int(channel.queue_declare(queue, passive=True).message_count)
    except connection.channel_errors:
        return 0
    finally:
        channel.close()

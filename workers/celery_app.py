"""The Celery app. Each setting has its reason beside it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from celery import Celery
from celery.app.amqp import AMQP
from kombu import Connection
from kombu import Queue as KombuQueue
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from store.config.settings import Settings
from workers.queues import Queue
from workers.telemetry import tracing

# A task of webhooks that was not taken by then would duplicate one of the next sweep.
DELIVERY_SECONDS = 10.0
# Between two attempts of a worker or beat to reach a broker that it has lost.
RECONNECT_SECONDS = 2.0

log = logging.getLogger(__name__)


class BrokerConnection(Connection):  # type: ignore[misc]  # kombu has no type hints
    """A connection that is soon established again once the broker is back.

    Celery's own pause between two attempts grows to half a minute. After a long outage, requests would wait
    that long for workers that are alive and take no tasks.
    """

    def ensure_connection(self, *arguments: Any, **options: Any) -> Any:
        """As kombu's, with at most ``RECONNECT_SECONDS`` between two attempts by default."""
        return super().ensure_connection(*arguments, **{"interval_max": RECONNECT_SECONDS} | options)


class Broker(AMQP):  # type: ignore[misc]
    """Celery's access to the broker, with our connections."""

    Connection = BrokerConnection


class Almanac(Celery):  # type: ignore[misc]  # Celery has no type hints
    """A Celery app with our connections to the broker."""

    amqp_cls = Broker


def create_celery(settings: Settings) -> Almanac:
    """A Celery app for sending tasks; ``workers.process`` has the app for running them."""
    app = Almanac("almanac", broker=settings.broker_url)
    configure(app, settings)
    return app


def configure(app: Almanac, settings: Settings) -> None:
    """Configure a Celery app for the broker of these settings."""
    tracing.install_context()
    app.conf.update(
        task_serializer="json",
        # Task arguments are ids and timestamps; no other format is decoded.
        accept_content=["json"],
        # Replies travel on the request's own Redis list; results would only cost round trips.
        task_ignore_result=True,
        task_default_queue=Queue.READS,
        # The first part of a task's name is its queue.
        task_routes={f"{queue}.*": {"queue": queue} for queue in Queue},
        task_queues=[KombuQueue(queue) for queue in Queue],
        # One request's task must not wait behind another's in the same process while a process is idle.
        worker_prefetch_multiplier=1,
        # After a lost connection, Celery would lower the prefetch count and raise it again with every task
        # that starts. The thread of the task sends that to RabbitMQ on the connection that the main thread
        # reads. The two threads consume each other's bytes, and the worker hangs until RabbitMQ closes the
        # connection, three minutes later.
        worker_enable_prefetch_count_reduction=False,
        # A read that was interrupted is not repeated: its request has been answered by then.
        task_acks_late=False,
        # A web request that cannot reach the broker answers 503 at once; kombu would retry for six
        # seconds. Workers wait for their broker by other settings.
        task_publish_retry=False,
        broker_connection_retry_on_startup=True,
        broker_transport_options=transport_options(settings.broker_url),
        broker_use_ssl=tls_options(settings.broker_url),
        # Flower lists tasks from these events, and enables them in the workers while it runs.
        worker_send_task_events=False,
        # ``workers.main`` configures logging, in the same way for all processes.
        worker_hijack_root_logger=False,
        timezone="UTC",
    )


def send_deliveries(celery: Celery, endpoints: Iterable[str]) -> None:
    """Enqueue the delivery of what is due to these endpoints."""
    try:
        for endpoint in endpoints:
            celery.send_task("webhooks.deliver", kwargs={"endpoint": endpoint}, expires=DELIVERY_SECONDS)
    except (OperationalError, RedisError) as error:
        # The next sweep finds the recorded events.
        log.warning("webhook task not sent, the next sweep delivers: %s", type(error).__name__)


def tls_options(url: str) -> dict[str, None] | None:
    """How RabbitMQ's certificate is verified, besides its chain; None: as the URL says.

    The name must be that of the URL. kombu compares it with this option only, and with one host only.
    """
    return {"server_hostname": None} if url.startswith("amqps:") and ";" not in url else None


def transport_options(url: str) -> dict[str, float]:
    """Timeouts and retries of a connection to this broker."""
    options: dict[str, float] = {"max_retries": 1, "interval_start": 0, "interval_max": 0.2}
    if url.startswith(("redis", "unix")):
        options["socket_connect_timeout"] = 2.0
        # Redis answers at once, or within the second that a worker's pop takes. Without a timeout, a worker
        # whose network has lost the connection would wait forever.
        options["socket_timeout"] = 5.0
        # The timeout does not cover the pop itself. kombu checks at this interval, in seconds, whether the
        # pop was answered, and closes a dead connection within twice the interval.
        options["health_check_interval"] = 5
    return options

"""The Celery app. Each setting has its reason beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery import Celery
from celery.app.amqp import AMQP
from celery.signals import worker_init, worker_shutdown, worker_shutting_down
from kombu import Connection
from kombu import Queue as KombuQueue

from store.config.settings import Settings
from store.stores import Stores
from workers.queues import Queue

if TYPE_CHECKING:
    from workers.runtime import Runtime

RENEWAL_SECONDS = 300.0
PURGE_SECONDS = 3600.0
# Longest delay of a webhook retry that is due.
SWEEP_SECONDS = 10.0
# At most. It is less if audits of watched calendars need it.
CHANNELS_SECONDS = 300.0
CHECK_SECONDS = 300.0
# Longest delay of the check of an identity that is due.
IDENTITIES_SECONDS = 60.0
# Longest delay of the event of an expired hold.
HOLDS_SECONDS = 60.0
MAX_TICK = 5.0
# Between two attempts of a worker or beat to reach a broker that it has lost.
RECONNECT_SECONDS = 2.0


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
    """A Celery app with the runtime that its tasks use."""

    amqp_cls = Broker
    runtime: Runtime


def create_celery(settings: Settings, stores: Stores | None = None) -> Almanac:
    """The Celery app of this process, for sending tasks as well as for running them.

    A process that has opened its stores already passes them as ``stores``.
    """
    # Imported here: the tasks bind to the app that is current when they are first used.
    from workers import tasks
    from workers.runtime import Runtime
    from workers.telemetry import tracing
    from workers.upkeep.channel_audits import ROUNDS
    from workers.webhooks import tasks as webhook_tasks

    audit_seconds = settings.watched_seconds / ROUNDS
    channels_seconds = min(CHANNELS_SECONDS, audit_seconds or CHANNELS_SECONDS)
    app = Almanac("almanac", broker=settings.broker_url, include=[tasks.__name__, webhook_tasks.__name__])
    app.runtime = Runtime(settings, stores)
    app.runtime.stores.on_events_recorded = lambda endpoints: webhook_tasks.send(app, endpoints)
    tracing.install_context()
    worker_init.connect(lambda sender, **_: _prepare(app, sender.hostname), weak=False)
    worker_shutting_down.connect(lambda **_: app.runtime.deregister(), weak=False)
    worker_shutdown.connect(lambda **_: app.runtime.stop(), weak=False)
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
        # Each tick can send a heartbeat, so the interval between two ticks is limited.
        beat_scheduler="workers.beat:HeartbeatScheduler",
        beat_max_loop_interval=MAX_TICK,
        beat_schedule={
            "renew tokens": _every(RENEWAL_SECONDS, "upkeep.renew_tokens"),
            "keep channels": _every(channels_seconds, "upkeep.keep_channels"),
            "check identities": _every(IDENTITIES_SECONDS, "upkeep.check_identities"),
            "check accounts": _every(CHECK_SECONDS, "upkeep.check_accounts"),
            "purge idempotency keys": _every(PURGE_SECONDS, "upkeep.purge_idempotency_keys"),
            "purge audit records": _every(PURGE_SECONDS, "upkeep.purge_audit_records"),
            "purge holds": _every(HOLDS_SECONDS, "upkeep.purge_holds"),
            "purge webhook deliveries": _every(PURGE_SECONDS, "upkeep.purge_webhook_deliveries"),
            "send webhooks again": _every(SWEEP_SECONDS, "webhooks.sweep"),
        },
    )
    return app


def _prepare(app: Almanac, hostname: str) -> None:
    from workers.consumers import Consumers
    from workers.telemetry import tracing

    tracing.start(hostname.partition("@")[0])
    app.runtime.consume = Consumers(app, hostname).consume
    app.runtime.prepare(hostname)


def _every(seconds: float, task: str) -> dict[str, object]:
    # A task that no worker took in time is dropped: the next one does the same work.
    return {"task": task, "schedule": seconds, "options": {"expires": seconds}}


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

"""The Celery app. Each setting has its reason beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery import Celery
from celery.signals import worker_init, worker_shutdown, worker_shutting_down
from kombu import Queue as KombuQueue

from store.config.settings import Settings
from store.stores import Stores
from workers.queues import Queue

if TYPE_CHECKING:
    from workers.runtime import Runtime

RENEWAL_SECONDS = 300.0
PURGE_SECONDS = 3600.0
# What is due for another attempt waits so long at most.
SWEEP_SECONDS = 10.0
CHANNELS_SECONDS = 300.0
LONGEST_TICK = 5.0


class Almanac(Celery):  # type: ignore[misc]  # Celery has no type hints
    """Celery with what our tasks need beside it."""

    runtime: Runtime


def create_celery(settings: Settings, stores: Stores | None = None) -> Almanac:
    """The Celery app of this process, for sending tasks as well as for running them.

    It shares the stores of who has some.
    """
    # Imported here: the tasks bind to the app that is current when they are first used.
    from workers import tasks
    from workers.runtime import Runtime
    from workers.telemetry import context
    from workers.webhooks import tasks as webhook_tasks

    app = Almanac("almanac", broker=settings.broker_url, include=[tasks.__name__, webhook_tasks.__name__])
    app.runtime = Runtime(settings, stores)
    app.runtime.stores.tell = lambda endpoints: webhook_tasks.send(app, endpoints)
    context.install()
    worker_init.connect(lambda sender, **_: _prepare(app, sender.hostname), weak=False)
    worker_shutting_down.connect(lambda **_: app.runtime.retire(), weak=False)
    worker_shutdown.connect(lambda **_: app.runtime.leave(), weak=False)
    app.conf.update(
        task_serializer="json",
        # A task's arguments are ids and instants; nothing else is ever decoded.
        accept_content=["json"],
        # Replies travel on the request's own Redis list; results would only cost round trips.
        task_ignore_result=True,
        task_default_queue=Queue.READS,
        # A task's first word is its queue, whoever sends it.
        task_routes={f"{queue}.*": {"queue": queue} for queue in Queue},
        task_queues=[KombuQueue(queue) for queue in Queue],
        # One request's task must not wait behind another's in the same process while a process is idle.
        worker_prefetch_multiplier=1,
        # After a lost connection Celery would fetch less, and more again with every task that begins: its
        # thread tells RabbitMQ so on the connection that the main thread reads. They take each other's
        # bytes, and the worker stands still until RabbitMQ lets go of it, three minutes later.
        worker_enable_prefetch_count_reduction=False,
        # A read that was cut short is not worth repeating: its request has its answer by then.
        task_acks_late=False,
        # A web request that cannot reach the broker answers 503 at once instead of waiting: kombu's own
        # patience with a connection is six seconds. Workers wait for their broker by other settings.
        task_publish_retry=False,
        broker_connection_retry_on_startup=True,
        broker_transport_options=transport_options(settings.broker_url),
        # Flower lists the tasks from these; there are few tasks, however many reads they do.
        worker_send_task_events=True,
        # Logging is the command line's, once for all processes.
        worker_hijack_root_logger=False,
        timezone="UTC",
        # Its ticks are seen by all processes; it makes one in so many seconds at least.
        beat_scheduler="workers.beat:Clock",
        beat_max_loop_interval=LONGEST_TICK,
        beat_schedule={
            "renew tokens": _every(RENEWAL_SECONDS, "upkeep.renew_tokens"),
            "keep channels": _every(CHANNELS_SECONDS, "upkeep.keep_channels"),
            "purge idempotency keys": _every(PURGE_SECONDS, "upkeep.purge_idempotency_keys"),
            "purge webhook deliveries": _every(PURGE_SECONDS, "upkeep.purge_webhook_deliveries"),
            "send webhooks again": _every(SWEEP_SECONDS, "webhooks.sweep"),
        },
    )
    return app


def _prepare(app: Almanac, hostname: str) -> None:
    from workers import memory
    from workers.fanout.handover import own_queue
    from workers.telemetry import tracing

    memory.watch(app.runtime, hostname)
    tracing.start(hostname.partition("@")[0])
    # Other workers hand jobs to this one alone by this queue.
    app.amqp.queues.select_add(own_queue(hostname))
    app.runtime.prepare(hostname)


def _every(seconds: float, task: str) -> dict[str, object]:
    # Missed while no worker ran: the next one does the same work.
    return {"task": task, "schedule": seconds, "options": {"expires": seconds}}


def transport_options(url: str) -> dict[str, float]:
    """The patience of a connection to this broker."""
    options: dict[str, float] = {"max_retries": 1, "interval_start": 0, "interval_max": 0.2}
    if url.startswith(("redis", "unix")):
        options["socket_connect_timeout"] = 2.0
        # It answers at once, or within the second that a worker's pop takes; a network that has lost the
        # connection never does, and without this a worker would wait for ever.
        options["socket_timeout"] = 5.0
        # The pop itself is outside of that: kombu looks after so many seconds whether it has been answered,
        # and lets go of a connection within twice as many.
        options["health_check_interval"] = 5
    return options

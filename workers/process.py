"""The Celery app of workers and beat: the tasks, their runtime, and the schedule."""

from __future__ import annotations

from celery.signals import worker_init, worker_shutdown, worker_shutting_down

from providers.http import send
from store.config.settings import Settings
from workers import tasks
from workers.celery_app import Almanac, configure, send_deliveries
from workers.consumers import Consumers
from workers.runtime import Runtime
from workers.telemetry import tracing
from workers.upkeep.channel_audits import ROUNDS
from workers.webhooks import tasks as webhook_tasks

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


class Worker(Almanac):
    """A Celery app with the runtime that its tasks use."""

    runtime: Runtime


def create_worker(settings: Settings) -> Worker:
    """The Celery app for running tasks, and for sending those of the schedule."""
    app = Worker("almanac", broker=settings.broker_url, include=[tasks.__name__, webhook_tasks.__name__])
    configure(app, settings)
    app.runtime = Runtime(settings)
    app.runtime.stores.on_events_recorded = lambda endpoints: send_deliveries(app, endpoints)
    worker_init.connect(lambda sender, **_: _prepare(app, sender.hostname), weak=False)
    worker_shutting_down.connect(lambda **_: app.runtime.deregister(), weak=False)
    worker_shutdown.connect(lambda **_: app.runtime.stop(), weak=False)
    audit_seconds = settings.watched_seconds / ROUNDS
    channels_seconds = min(CHANNELS_SECONDS, audit_seconds or CHANNELS_SECONDS)
    app.conf.update(
        beat_scheduler="workers.beat:HeartbeatScheduler",
        # Each tick can send a heartbeat, so the interval between two ticks is limited.
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


def _prepare(app: Worker, hostname: str) -> None:
    tracing.start(hostname.partition("@")[0])
    if tracing.on():
        send.observe = tracing.provider_call
    app.runtime.consume = Consumers(app, hostname).consume
    app.runtime.prepare(hostname)


def _every(seconds: float, task: str) -> dict[str, object]:
    # A task that no worker took in time is dropped: the next one does the same work.
    return {"task": task, "schedule": seconds, "options": {"expires": seconds}}

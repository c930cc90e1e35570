"""The tasks that send webhooks, right after an event and again for failed deliveries."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from celery import Celery, shared_task
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from workers.webhooks import delivery

log = logging.getLogger(__name__)

# A task that was not taken by then would duplicate one of the next sweep.
EXPIRES_SECONDS = 10.0


def send(celery: Celery, endpoints: Iterable[str]) -> None:
    """Enqueue the delivery of what is due to these endpoints."""
    try:
        for endpoint in endpoints:
            celery.send_task("webhooks.deliver", kwargs={"endpoint": endpoint}, expires=EXPIRES_SECONDS)
    except (OperationalError, RedisError) as error:
        # The next sweep finds the recorded events.
        log.warning("webhook task not sent, the next sweep delivers: %s", type(error).__name__)


@shared_task(name="webhooks.deliver", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def deliver(self: Any, *, endpoint: str) -> None:
    """Send what is due to one endpoint."""
    delivery.deliver(self.app.runtime, endpoint)


@shared_task(name="webhooks.sweep", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def sweep(self: Any) -> None:
    """Enqueue the endpoints with something due: a retry, or a delivery of a worker that died."""
    send(self.app, delivery.due(self.app.runtime))


@shared_task(name="upkeep.purge_webhook_deliveries", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def purge_webhook_deliveries(self: Any) -> None:
    """Delete old entries of the delivery log."""
    delivery.purge(self.app.runtime)

"""The tasks that send webhooks, right after an event and again for failed deliveries."""

from __future__ import annotations

from typing import Any

from celery import shared_task

from workers.celery_app import send_deliveries
from workers.webhooks import delivery


@shared_task(name="webhooks.deliver", bind=True)  # type: ignore[untyped-decorator]
def deliver(self: Any, *, endpoint: str) -> None:
    """Send what is due to one endpoint."""
    delivery.deliver(self.app.runtime, endpoint)


@shared_task(name="webhooks.sweep", bind=True)  # type: ignore[untyped-decorator]
def sweep(self: Any) -> None:
    """Enqueue the endpoints with something due: a retry, or a delivery of a worker that died."""
    send_deliveries(self.app, delivery.due(self.app.runtime))


@shared_task(name="upkeep.purge_webhook_deliveries", bind=True)  # type: ignore[untyped-decorator]
def purge_webhook_deliveries(self: Any) -> None:
    """Delete old entries of the delivery log."""
    delivery.purge(self.app.runtime)

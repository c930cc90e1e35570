"""Webhook endpoints, events and deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from almanac_client.records.base import Record
from almanac_client.records.events import Event

if TYPE_CHECKING:
    from almanac_client.words import DeliveryStatus, Provider, ReleaseReason, SentEventType, WebhookEventType
else:
    # A newer server may use further words, so any text is decoded.
    DeliveryStatus = Provider = ReleaseReason = SentEventType = WebhookEventType = str


class Webhook(Record, kw_only=True):
    """An endpoint that receives events."""

    id: str
    url: str
    events: list[WebhookEventType]
    created_at: datetime
    disabled_at: datetime | None = None
    paused: bool
    content: bool = False


class NewWebhook(Webhook):
    """An endpoint with its signing secret."""

    secret: str

    def __repr__(self) -> str:
        # The secret must not get into logs.
        return f"<{type(self).__name__} {self.id}>"


class RotatedWebhook(NewWebhook):
    """An endpoint with its new secret, and the time until which the old one signs too."""

    previous_secret_until: datetime | None


class WebhookData(Record, kw_only=True):
    """The subject of an event; ``webhook.test`` has only the ``webhook_id``.

    Events of a grant have an ``organization`` and no ``user_id``. Events of a hold have a ``hold_id`` and
    ``users``. Those of single events of calendars have an ``event_id``, and the ``event`` if the endpoint has
    ``content``.
    """

    user_id: str | None = None
    organization: str | None = None
    provider: Provider | None = None
    connection_id: str | None = None
    webhook_id: str | None = None
    calendar_id: str | None = None
    event_id: str | None = None
    series_id: str | None = None
    event: Event | None = None
    hold_id: str | None = None
    users: list[str] | None = None
    start: datetime | None = None
    end: datetime | None = None
    expires_at: datetime | None = None
    reason: ReleaseReason | None = None


class WebhookEvent(Record):
    """The body of a webhook."""

    type: SentEventType
    timestamp: datetime
    data: WebhookData


class Delivery(Record):
    """The delivery of an event to an endpoint."""

    id: str
    status: DeliveryStatus
    payload: WebhookEvent
    attempts: int
    created_at: datetime
    last_attempt_at: datetime | None
    next_attempt_at: datetime | None
    delivered_at: datetime | None
    last_status: int | None
    last_error: str | None

"""Webhook endpoints and their deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from almanac_client.pages import PAGE, rows
from almanac_client.parameters import body
from almanac_client.records import Delivery, NewWebhook, Webhook, WebhookEventType
from almanac_client.transport import Transport, path


class Webhooks:
    """Endpoints that receive events when calendars change or connections end."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: int = PAGE) -> Iterator[Webhook]:
        """Every endpoint, in pages of ``limit``.

        >>> [each["url"] for each in almanac.webhooks.list()]
        """
        return rows(self._transport, "/webhooks", {}, limit, Webhook)

    def create(
        self,
        url: str,
        *,
        events: Sequence[WebhookEventType] | None = None,
        idempotency_key: str | None = None,
    ) -> NewWebhook:
        """Register an endpoint, for the given events or all; the secret is returned only once.

        >>> secret = almanac.webhooks.create("https://example.com/hooks/almanac")["secret"]
        """
        fields = body(url=url, events=None if events is None else list(events))
        reply = self._transport.create("/webhooks", fields, idempotency_key=idempotency_key)
        made: NewWebhook = reply.body["data"]
        return made

    def delete(self, webhook_id: str) -> None:
        """Delete an endpoint and its delivery log.

        >>> almanac.webhooks.delete(webhook["id"])
        """
        self._transport.send("DELETE", path("/webhooks/{}", webhook_id))

    def deliveries(self, webhook_id: str, *, limit: int = PAGE) -> Iterator[Delivery]:
        """The deliveries to an endpoint, newest first.

        >>> next(almanac.webhooks.deliveries(webhook["id"]))["status"]
        """
        return rows(self._transport, path("/webhooks/{}/deliveries", webhook_id), {}, limit, Delivery)

    def replay(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Send a delivery again.

        >>> almanac.webhooks.replay(webhook["id"], delivery["id"])
        """
        where = path("/webhooks/{}/deliveries/{}/replay", webhook_id, delivery_id)
        sent: Delivery = self._transport.send("POST", where).body["data"]
        return sent

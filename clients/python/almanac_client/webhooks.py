"""Webhook endpoints and their deliveries."""

from __future__ import annotations

from collections.abc import Sequence

from almanac_client.messages import Request, path
from almanac_client.operations import PAGE, Listing, Operation, data, nothing, rows
from almanac_client.parameters import body
from almanac_client.records import Delivery, NewWebhook, RotatedWebhook, Webhook
from almanac_client.resources import Resource, TransportT, listing, operation
from almanac_client.words import WebhookEventType


class Webhooks(Resource[TransportT]):
    """Endpoints that receive events when calendars change or connections end."""

    @listing
    def list(self, *, limit: int = PAGE) -> Listing[Webhook]:
        """Every endpoint, in pages of ``limit``.

        >>> [each.url for each in almanac.webhooks.list()]
        """
        return Listing(Request.get("/webhooks"), limit, rows(list[Webhook]))

    @operation
    def create(
        self,
        url: str,
        *,
        events: Sequence[WebhookEventType] | None = None,
        content: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Operation[NewWebhook]:
        """Register an endpoint; the secret is returned only once.

        Without ``events`` it receives those of calendars and connections. ``content``: ``event.created`` and
        ``event.updated`` carry the event.

        >>> secret = almanac.webhooks.create("https://example.com/hooks/almanac").secret
        """
        fields = body(url=url, events=events, content=content)
        return Operation(
            Request.create("/webhooks", fields, idempotency_key=idempotency_key), data(NewWebhook)
        )

    @operation
    def get(self, webhook_id: str) -> Operation[Webhook]:
        """An endpoint.

        >>> almanac.webhooks.get(webhook.id).disabled_at
        """
        return Operation(Request.get(path("/webhooks/{}", webhook_id)), data(Webhook))

    @operation
    def change(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        events: Sequence[WebhookEventType] | None = None,
        paused: bool | None = None,
        content: bool | None = None,
    ) -> Operation[Webhook]:
        """Change the given fields of an endpoint. While it is paused, deliveries wait.

        >>> almanac.webhooks.change(webhook.id, paused=True)
        """
        fields = body(url=url, events=events, paused=paused, content=content)
        return Operation(Request("PATCH", path("/webhooks/{}", webhook_id), body=fields), data(Webhook))

    @operation
    def rotate_secret(
        self, webhook_id: str, *, overlap_seconds: int | None = None, idempotency_key: str | None = None
    ) -> Operation[RotatedWebhook]:
        """Replace the secret; the old one signs too for ``overlap_seconds`` (default: a day).

        >>> secret = almanac.webhooks.rotate_secret(webhook.id).secret
        """
        where, fields = path("/webhooks/{}/secret", webhook_id), body(overlap_seconds=overlap_seconds)
        return Operation(Request.create(where, fields, idempotency_key=idempotency_key), data(RotatedWebhook))

    @operation
    def test(self, webhook_id: str) -> Operation[Delivery]:
        """Send a test event; ``deliveries`` has the outcome.

        >>> almanac.webhooks.test(webhook.id)
        """
        return Operation(Request("POST", path("/webhooks/{}/test", webhook_id)), data(Delivery))

    @operation
    def delete(self, webhook_id: str) -> Operation[None]:
        """Delete an endpoint and its delivery log.

        >>> almanac.webhooks.delete(webhook.id)
        """
        return Operation(Request("DELETE", path("/webhooks/{}", webhook_id)), nothing)

    @listing
    def deliveries(self, webhook_id: str, *, limit: int = PAGE) -> Listing[Delivery]:
        """The deliveries to an endpoint, newest first.

        >>> next(almanac.webhooks.deliveries(webhook.id)).status
        """
        return Listing(Request.get(path("/webhooks/{}/deliveries", webhook_id)), limit, rows(list[Delivery]))

    @operation
    def replay(self, webhook_id: str, delivery_id: str) -> Operation[Delivery]:
        """Send a delivery again.

        >>> almanac.webhooks.replay(webhook.id, delivery.id)
        """
        where = path("/webhooks/{}/deliveries/{}/replay", webhook_id, delivery_id)
        return Operation(Request("POST", where), data(Delivery))

"""Routes for webhook endpoints and their delivery log."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from flask.views import MethodView

from app.accounts import webhook_endpoints
from app.api import replay_access
from app.http import paging
from app.http.authentication import caller, caller_organization_id
from app.http.routes import Blueprint, route_facts
from app.schemas.error_codes import Code
from app.schemas.parameters import PageQuery
from app.schemas.records import SuccessSchema
from app.schemas.webhooks import (
    DeliveriesQuery,
    DeliverySchema,
    NewWebhookSchema,
    RotatedWebhookSchema,
    RotationBody,
    WebhookBody,
    WebhookChangeBody,
    WebhookSchema,
    delivery_view,
    webhook_view,
)
from app.services import services
from store.sql.queries import deliveries, webhooks

blp = Blueprint(
    "webhooks",
    __name__,
    metric_group="webhooks",
    description="Where events are sent when a connected account changes, and the log of what was sent.",
    no_store=True,
)


@blp.route("/webhooks")
class Webhooks(MethodView):
    @route_facts("listWebhooks")
    @blp.arguments(PageQuery, location="query")
    @blp.response(200, WebhookSchema(many=True))
    def get(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        """List webhook endpoints

        An API key that is bound to an organization sees those of its organization.
        """
        with services().stores.database.reading() as session:
            rows = webhooks.page(
                session,
                organization_id=caller_organization_id(),
                after=paging.after(params),
                limit=paging.one_more(params),
            )
        return [webhook_view(row) for row in paging.cut(params, rows, "id")]

    @route_facts("createWebhook", replay_check=replay_access.webhook, codes=(Code.TOO_MANY_WEBHOOKS,))
    @blp.arguments(WebhookBody)
    @blp.response(201, NewWebhookSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Register a webhook endpoint

        The answer holds the secret, which is not shown again. With an API key that is bound to an
        organization, the endpoint receives events of that organization's members only. An organization has up
        to 100 endpoints; all keys without an organization share another 100.
        """
        webhook_endpoints.require_public_address(body["url"])
        with services().stores.database.writing() as session:
            row, secret = webhook_endpoints.create(
                session,
                caller(),
                url=body["url"],
                events=body["events"],
                organization_id=caller_organization_id(),
                content=body["content"],
            )
        return {**webhook_view(row), "secret": secret}


@blp.route("/webhooks/<webhook_id:webhookId>")
class WebhookById(MethodView):
    @route_facts("getWebhook")
    @blp.response(200, WebhookSchema)
    def get(self, webhookId: str) -> dict[str, Any]:
        """Read a webhook endpoint

        The secret is not shown again.
        """
        with services().stores.database.reading() as session:
            return webhook_view(webhook_endpoints.find(session, caller(), webhookId))

    @route_facts("updateWebhook")
    @blp.arguments(WebhookChangeBody)
    @blp.response(200, WebhookSchema)
    def patch(self, body: dict[str, Any], webhookId: str) -> dict[str, Any]:
        """Change, pause or resume a webhook endpoint

        Fields that are not in the body stay unchanged. While an endpoint is paused, events are recorded and
        wait; they are sent when it is resumed. `paused: false` also enables a disabled endpoint, and so does
        a new `url`.
        """
        if "url" in body:
            webhook_endpoints.require_public_address(body["url"])
        with services().stores.database.writing() as session:
            return webhook_view(webhook_endpoints.change(session, caller(), webhookId, **body))

    @route_facts("deleteWebhook")
    @blp.response(200, SuccessSchema)
    def delete(self, webhookId: str) -> dict[str, bool]:
        """Delete a webhook endpoint

        Pending deliveries are not sent any more, and the delivery log is deleted too.
        """
        with services().stores.database.writing() as session:
            webhook_endpoints.remove(session, caller(), webhookId)
        return {"success": True}


@blp.route("/webhooks/<webhook_id:webhookId>/secret")
class WebhookSecret(MethodView):
    @route_facts("rotateWebhookSecret", replay_check=replay_access.webhook)
    @blp.arguments(RotationBody)
    @blp.response(200, RotatedWebhookSchema)
    def post(self, body: dict[str, Any], webhookId: str) -> dict[str, Any]:
        """Replace the secret of a webhook endpoint

        The answer holds the new secret, which is not shown again. For `overlapSeconds`, deliveries carry a
        signature by the old secret too, so that the receiver can change over without losing one.
        """
        with services().stores.database.writing() as session:
            row, secret = webhook_endpoints.rotate_secret(
                session, caller(), webhookId, overlap=timedelta(seconds=body["overlapSeconds"])
            )
        return {**webhook_view(row), "secret": secret, "previousSecretUntil": row.overlap_until}


@blp.route("/webhooks/<webhook_id:webhookId>/test")
class WebhookTest(MethodView):
    @route_facts("testWebhook", codes=(Code.WEBHOOK_PAUSED, Code.WEBHOOK_DISABLED))
    @blp.response(200, DeliverySchema)
    def post(self, webhookId: str) -> dict[str, Any]:
        """Send a test event to a webhook endpoint

        Its type is `webhook.test`. The answer is its delivery, before the first attempt: the log has the
        outcome.
        """
        with services().stores.database.writing() as session:
            row = webhook_endpoints.send_test(session, caller(), webhookId)
        return delivery_view(row)


@blp.route("/webhooks/<webhook_id:webhookId>/deliveries")
class Deliveries(MethodView):
    @route_facts("listDeliveries")
    @blp.arguments(DeliveriesQuery, location="query")
    @blp.response(200, DeliverySchema(many=True))
    def get(self, params: dict[str, Any], webhookId: str) -> list[dict[str, Any]]:
        """List what was sent to an endpoint

        The newest first; deliveries are deleted after 30 days.
        """
        with services().stores.database.reading() as session:
            rows = deliveries.page(
                session,
                webhook_endpoints.find(session, caller(), webhookId).id,
                before=paging.after(params),
                limit=paging.one_more(params),
            )
        return [delivery_view(row) for row in paging.cut(params, rows, "id")]


@blp.route("/webhooks/<webhook_id:webhookId>/deliveries/<delivery_id:deliveryId>/replay")
class Replay(MethodView):
    @route_facts("replayDelivery")
    @blp.response(200, DeliverySchema)
    def post(self, webhookId: str, deliveryId: str) -> dict[str, Any]:
        """Send a delivery again

        With the same `webhook-id`, whatever its status. A disabled endpoint is enabled.
        """
        with services().stores.database.writing() as session:
            row = webhook_endpoints.replay(session, caller(), webhookId, deliveryId)
        return delivery_view(row)

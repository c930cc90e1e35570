"""Routes for webhook endpoints and their delivery log."""

from __future__ import annotations

from typing import Any

from flask import Response
from flask.views import MethodView

from app.accounts import webhook_endpoints
from app.api import replay_access
from app.http import paging
from app.http.auth import caller, within
from app.http.blueprint import Blueprint
from app.http.route_facts import route_facts
from app.schemas.records import PageQuery, SuccessSchema
from app.schemas.webhooks import (
    DeliveriesQuery,
    DeliverySchema,
    NewWebhookSchema,
    WebhookBody,
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
    description="Events that are sent to you, and their delivery log",
)


@blp.after_request
def _forbid_caching(response: Response) -> Response:
    """Forbid caching: one of these responses contains a secret."""
    response.headers["Cache-Control"] = "no-store"
    return response


@blp.route("/webhooks")
class Webhooks(MethodView):
    @route_facts("listWebhooks")
    @blp.arguments(PageQuery, location="query")
    @blp.response(200, WebhookSchema(many=True))
    def get(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        """List webhook endpoints

        An API key that is bound to an organization sees those of its organization.
        """
        with services().stores.database.reading() as session:
            rows = webhooks.page(
                session, within=within(), after=paging.after(query), limit=paging.one_more(query)
            )
        return [webhook_view(row) for row in paging.cut(query, rows, "id")]

    @route_facts("createWebhook", replay_check=replay_access.webhook)
    @blp.arguments(WebhookBody)
    @blp.response(201, NewWebhookSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Register a webhook endpoint

        The answer holds the secret, which is not shown again. With an API key that is bound to an
        organization, the endpoint receives events of that organization's members only. An organization has up
        to 100 endpoints; all keys without an organization share another 100.
        """
        webhook_endpoints.check_reach(body["url"])
        with services().stores.database.writing() as session:
            row, secret = webhook_endpoints.create(
                session, caller(), url=body["url"], events=body["events"], organization_id=within()
            )
        return {**webhook_view(row), "secret": secret}


@blp.route("/webhooks/<webhook_id:webhookId>")
class WebhookById(MethodView):
    @route_facts("deleteWebhook")
    @blp.response(200, SuccessSchema)
    def delete(self, webhookId: str) -> dict[str, bool]:
        """Delete a webhook endpoint

        Pending deliveries are not sent any more, and the delivery log is deleted too.
        """
        with services().stores.database.writing() as session:
            webhook_endpoints.remove(session, caller(), webhookId)
        return {"success": True}


@blp.route("/webhooks/<webhook_id:webhookId>/deliveries")
class Deliveries(MethodView):
    @route_facts("listDeliveries")
    @blp.arguments(DeliveriesQuery, location="query")
    @blp.response(200, DeliverySchema(many=True))
    def get(self, query: dict[str, Any], webhookId: str) -> list[dict[str, Any]]:
        """List what was sent to an endpoint

        The newest first; deliveries are deleted after 30 days.
        """
        with services().stores.database.reading() as session:
            rows = deliveries.page(
                session,
                webhook_endpoints.find(session, caller(), webhookId).id,
                before=paging.after(query),
                limit=paging.one_more(query),
            )
        return [delivery_view(row) for row in paging.cut(query, rows, "id")]


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

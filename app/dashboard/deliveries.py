"""One webhook endpoint: its deliveries, and sending one again."""

from __future__ import annotations

import json
from typing import get_args

from flask import request
from flask.typing import ResponseReturnValue

from app.accounts import webhook_endpoints
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.pagination import ResultPage
from app.http.auth import caller
from app.http.errors import NotFound
from app.schemas.fields import DELIVERY_ID
from app.services import services
from store.sql.models import WebhookDelivery
from store.sql.queries import deliveries, organizations
from store.sql.queries.deliveries import Status

# The status of a delivery as a badge.
BADGES = {
    "pending": ("warn", "pending"),
    "delivered": ("good", "delivered"),
    "failed": ("bad", "failed"),
}


@blp.get("/webhooks/<webhook_id>")
def webhook(webhook_id: str) -> ResponseReturnValue:
    """An endpoint with its deliveries, the newest first, of one status or of all."""
    status = _status()
    with services().stores.database.reading() as session:
        endpoint = webhook_endpoints.find(session, caller(), webhook_id)
        bound = endpoint.organization_id
        organization = None if bound is None else organizations.slug_of(session, bound)
        counts = deliveries.counts(session, [webhook_id])[webhook_id]
        found = ResultPage.of(
            deliveries.recent(
                session, status=status, endpoint_id=webhook_id, before=_before(), limit=ResultPage.FETCHED
            )
        )
    return page(
        "webhook.html",
        endpoint=endpoint,
        organization=organization,
        counts=counts,
        found=found,
        only=status,
        badges=BADGES,
        status_of=deliveries.status,
        payload=payload,
    )


@blp.post("/webhooks/<webhook_id>/deliveries/<delivery_id>/replay")
def replay_delivery(webhook_id: str, delivery_id: str) -> ResponseReturnValue:
    """Send a delivery again."""
    try:
        with services().stores.database.writing() as session:
            webhook_endpoints.replay(session, caller(), webhook_id, delivery_id)
    except NotFound as error:
        return failed(
            f"{error.error}: it was deleted from the log, or its user has left the organization.",
            "webhook",
            webhook_id=webhook_id,
        )
    return done(
        "It is being sent again. Reload this page in a moment to see the result.",
        "webhook",
        webhook_id=webhook_id,
    )


def payload(row: WebhookDelivery) -> str:
    """The payload as indented JSON."""
    return json.dumps(row.payload, indent=2, ensure_ascii=False)


def _status() -> Status | None:
    """The status of the query; None, which shows all, for any other text."""
    status = request.args.get("status")
    return next((each for each in get_args(Status) if each == status), None)


def _before() -> str | None:
    """The delivery that this page starts after; None, the first page, for text that is no delivery id."""
    before = request.args.get("before", "")
    return before if DELIVERY_ID.fullmatch(before) else None

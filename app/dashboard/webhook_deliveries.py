"""One webhook endpoint: its deliveries, sending them again, and sending a test event."""

from __future__ import annotations

import json
from typing import get_args

from flask import request
from flask.typing import ResponseReturnValue

from app.accounts import webhook_endpoints
from app.dashboard import forms
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.overview import attention
from app.dashboard.pagination import ResultPage
from app.dashboard.webhooks import OVERLAPS, badge_of
from app.http.authentication import caller
from app.http.errors import Conflict, NotFound
from app.http.routes import route_facts
from app.schemas.fields import DELIVERY_ID
from app.services import services
from store.sql.models import Role, WebhookDelivery
from store.sql.queries import deliveries, organizations
from store.sql.queries.deliveries import Status

SOON = "The result appears here in a moment."

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
        failing = attention.failing(session)
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
        failing=failing.get(webhook_id),
        state=badge_of(endpoint, counts, failing),
        found=found,
        only=status,
        badges=BADGES,
        status_of=deliveries.status,
        payload=payload,
        attempts_of=deliveries.attempts,
        overlaps=OVERLAPS,
        ticket=forms.new_form_token(),
    )


@blp.get("/webhooks/<webhook_id>/log")
@route_facts(polled=True)
def webhook_log(webhook_id: str) -> ResponseReturnValue:
    """The same page, of which htmx takes the deliveries to show new ones."""
    return webhook(webhook_id)


@blp.post("/webhooks/<webhook_id>/deliveries/<delivery_id>/replay")
@route_facts(role=Role.OPERATOR)
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
        f"It is being sent again. {SOON}",
        "webhook",
        webhook_id=webhook_id,
    )


@blp.post("/webhooks/<webhook_id>/deliveries/replay-failed")
@route_facts(role=Role.OPERATOR)
def replay_failed_deliveries(webhook_id: str) -> ResponseReturnValue:
    """Send all failed deliveries of an endpoint again."""
    with services().stores.database.writing() as session:
        count = webhook_endpoints.replay_failed(session, caller(), webhook_id)
    if not count:
        return failed(
            "No failed delivery can be sent again: their users have left the organization, or there is none.",
            "webhook",
            webhook_id=webhook_id,
        )
    those = "1 delivery is" if count == 1 else f"{count} deliveries are"
    return done(f"{those} being sent again. {SOON}", "webhook", webhook_id=webhook_id)


@blp.post("/webhooks/<webhook_id>/test")
@route_facts(role=Role.OPERATOR)
def test_webhook(webhook_id: str) -> ResponseReturnValue:
    """Send a test event to an endpoint."""
    try:
        with services().stores.database.writing() as session:
            webhook_endpoints.send_test(session, caller(), webhook_id)
    except Conflict as error:
        return failed(
            f"{error.error.partition(':')[0]}: resume it, then send the test event.",
            "webhook",
            webhook_id=webhook_id,
        )
    return done(f"A test event is being sent. {SOON}", "webhook", webhook_id=webhook_id)


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

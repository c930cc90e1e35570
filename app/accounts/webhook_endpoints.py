"""Operations on webhook endpoints and their deliveries, with the access checks of the caller."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.http.errors import Conflict, Invalid, NotFound
from app.services import services
from store.sql.models import WebhookDelivery, WebhookEndpoint
from store.sql.queries import audit, deliveries, webhooks
from store.sql.queries.api_keys import Caller
from workers.webhooks import ssrf_guard


def check_reach(url: str) -> None:
    """Reject a URL whose host has a private address, unless the settings allow it.

    A host name that does not resolve passes: it is checked again before each delivery. This function resolves
    names, so do not call it within a transaction.

    :raise Invalid: with ``url`` in the message
    """
    allow_private = services().settings.webhooks_allow_private
    try:
        ssrf_guard.resolve(ssrf_guard.parse(url, allow_private=allow_private), allow_private=allow_private)
    except ssrf_guard.Refused as error:
        raise Invalid(f"url {error}") from error


def create(
    session: Session, caller: Caller, *, url: str, events: Sequence[str], organization_id: int | None
) -> tuple[WebhookEndpoint, str]:
    """Register an endpoint whose ``url`` passed ``check_reach``; returns it with its secret.

    :raise Conflict: when the limit on endpoints is reached
    """
    distinct = list(dict.fromkeys(events))
    try:
        row, secret = webhooks.create(
            session, services().stores.keyring, url=url, events=distinct, within=organization_id
        )
    except webhooks.TooMany as error:
        raise Conflict(f"There are {webhooks.MOST_ENDPOINTS} webhooks already") from error
    audit.record(session, actor=caller.visible, action="createWebhook", subject=row.id)
    return row, secret


def find(session: Session, caller: Caller, endpoint_id: str) -> WebhookEndpoint:
    """An endpoint that the caller reaches.

    :raise NotFound: when there is none
    """
    row = webhooks.find(session, endpoint_id, within=caller.organization_id)
    if row is None:
        raise NotFound("Webhook not found")
    return row


def remove(session: Session, caller: Caller, endpoint_id: str) -> None:
    """Delete an endpoint with its pending deliveries and its log.

    :raise NotFound: when there is none that the caller reaches
    """
    webhooks.remove(session, find(session, caller, endpoint_id).id)
    audit.record(session, actor=caller.visible, action="deleteWebhook", subject=endpoint_id)


def replay(session: Session, caller: Caller, endpoint_id: str, delivery_id: str) -> WebhookDelivery:
    """Send a delivery again after the session has committed; this enables a disabled endpoint.

    :raise NotFound: when there is no such endpoint, or its log shows no such delivery
    """
    row = deliveries.replay(session, find(session, caller, endpoint_id).id, delivery_id)
    if row is None:
        raise NotFound("Delivery not found")
    audit.record(
        session, actor=caller.visible, action="replayDelivery", subject=f"{endpoint_id}/{delivery_id}"
    )
    return row

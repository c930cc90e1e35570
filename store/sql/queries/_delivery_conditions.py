"""Conditions on deliveries that both sending and the log need."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, and_, exists, or_

from store.sql.models import Membership, WebhookDelivery, WebhookEndpoint

# Whether deliveries are sent to an endpoint.
ENDPOINT_IS_ACTIVE = and_(WebhookEndpoint.disabled_at.is_(None), WebhookEndpoint.paused_at.is_(None))


def user_in_scope() -> ColumnElement[bool]:
    """Whether the user of a delivery is still in the endpoint's scope; a test event has no user."""
    member = (
        exists()
        .correlate(WebhookDelivery, WebhookEndpoint)
        .where(
            Membership.organization_id == WebhookEndpoint.organization_id,
            Membership.user_id == WebhookDelivery.user_id,
        )
    )
    return or_(WebhookEndpoint.organization_id.is_(None), WebhookDelivery.user_id.is_(None), member)


def due(moment: datetime) -> ColumnElement[bool]:
    return and_(is_due_and_unclaimed(moment), ENDPOINT_IS_ACTIVE)


def is_due_and_unclaimed(moment: datetime) -> ColumnElement[bool]:
    """Whether a delivery is due and not claimed."""
    unclaimed = or_(WebhookDelivery.claimed_until.is_(None), WebhookDelivery.claimed_until <= moment)
    return and_(WebhookDelivery.next_attempt_at <= moment, unclaimed)

"""Webhook events of holds."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from scheduling.json_render import timestamp
from store.sql import after_commit
from store.sql.models import Membership, User, WebhookDelivery, WebhookEndpoint
from store.sql.queries import webhooks
from store.sql.queries.webhooks import WebhookEvent


class HoldView(NamedTuple):
    """A promised hold and its users' identifiers, in alphabetical order; times are in milliseconds.

    ``claimed``: a create is using it.
    """

    id: str
    users: tuple[str, ...]
    starts: int
    ends: int
    expires_at: int
    note: str | None
    claimed: bool


def record(
    session: Session, event: WebhookEvent, holds: Collection[HoldView], *, reason: str | None = None
) -> None:
    """Record an event of each of some holds, for every endpoint that names it; it is sent after the commit.

    The endpoint of an organization receives the holds of its members, and the names of no other users.
    """
    if not holds:
        return
    query = select(WebhookEndpoint.id, WebhookEndpoint.events, WebhookEndpoint.organization_id)
    enabled = query.where(WebhookEndpoint.disabled_at.is_(None)).order_by(WebhookEndpoint.id)
    listeners = [row for row in session.execute(enabled) if event in row.events]
    if not listeners:
        return
    moment = time.time_ns() // 1_000_000
    memberships = _organizations_of(session, {user for hold in holds for user in hold.users})
    for listener in listeners:
        for hold in holds:
            own = listener.organization_id
            users = [each for each in hold.users if own is None or own in memberships.get(each, ())]
            if not users:
                continue
            data: dict[str, Any] = {
                "holdId": hold.id,
                "users": users,
                "start": timestamp(hold.starts),
                "end": timestamp(hold.ends),
                "expiresAt": timestamp(hold.expires_at),
            }
            if reason is not None:
                data["reason"] = reason
            payload = {"type": event.value, "timestamp": timestamp(moment), "data": data}
            row = WebhookDelivery(endpoint_id=listener.id, event=event.value, payload=payload)
            row.id = webhooks.delivery_id(moment)
            session.add(row)
            after_commit.note(session, [listener.id])
    session.flush()


def _organizations_of(session: Session, custom_ids: Collection[str]) -> dict[str, set[int]]:
    """The organizations of each user."""
    query = select(User.custom_id, Membership.organization_id).join(Membership, Membership.user_id == User.id)
    found: dict[str, set[int]] = {}
    for user, organization in session.execute(query.where(User.custom_id.in_(custom_ids))):
        found.setdefault(user, set()).add(organization)
    return found

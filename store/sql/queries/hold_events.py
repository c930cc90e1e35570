"""Webhook events of holds."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from scheduling.json_render import timestamp
from store.sql import database
from store.sql.models import Membership, WebhookDelivery, WebhookEndpoint
from store.sql.queries import webhooks
from store.sql.queries.webhooks import WebhookEvent


class HoldView(NamedTuple):
    """A promised hold and its users' identifiers, in alphabetical order; times are in milliseconds.

    ``claimed``: a create is using it. ``organization_id`` as in ``Hold``. ``user_ids`` are the internal ids
    of ``users``, in the same order.
    """

    id: str
    users: tuple[str, ...]
    starts: int
    ends: int
    expires_at: int
    note: str | None
    claimed: bool
    organization_id: int | None = None
    user_ids: tuple[int, ...] = ()


def record(
    session: Session, event: WebhookEvent, holds: Collection[HoldView], *, reason: str | None = None
) -> None:
    """Record an event of each of some holds, for every endpoint that names it; it is sent after the commit.

    The endpoint of an organization receives those of the holds that the organization took, with the names of
    its members only.
    """
    if not holds:
        return
    query = select(WebhookEndpoint.id, WebhookEndpoint.events, WebhookEndpoint.organization_id)
    enabled = query.where(WebhookEndpoint.disabled_at.is_(None)).order_by(WebhookEndpoint.id)
    listeners = [row for row in session.execute(enabled) if event in row.events]
    if not listeners:
        return
    moment = time.time_ns() // 1_000_000
    for listener in listeners:
        own = [each for each in holds if listener.organization_id in (None, each.organization_id)]
        members = members_among(session, listener.organization_id, [n for each in own for n in each.user_ids])
        for hold in own:
            named = [each for each in zip(hold.users, hold.user_ids, strict=True) if each[1] in members]
            if not named:
                continue
            data: dict[str, Any] = {
                "holdId": hold.id,
                "users": [user for user, _ in named],
                "start": timestamp(hold.starts),
                "end": timestamp(hold.ends),
                "expiresAt": timestamp(hold.expires_at),
            }
            if reason is not None:
                data["reason"] = reason
            payload = {"type": event.value, "timestamp": timestamp(moment), "data": data}
            row = WebhookDelivery(endpoint_id=listener.id, event=event.value, payload=payload)
            row.id = webhooks.delivery_id(moment)
            row.user_ids = [number for _, number in named]
            session.add(row)
            database.note_events(session, [listener.id])
    session.flush()


def members_among(session: Session, organization_id: int | None, user_ids: Collection[int]) -> set[int]:
    """Those of some users who are members of the organization of an endpoint; all for an endpoint of none."""
    if organization_id is None or not user_ids:
        return set(user_ids)
    query = select(Membership.user_id).where(
        Membership.organization_id == organization_id, Membership.user_id.in_(user_ids)
    )
    return set(session.scalars(query))


def about(
    payload: dict[str, Any], user_ids: Sequence[int] | None, members: Collection[int]
) -> dict[str, Any]:
    """The event of a hold, which names ``members`` only; any other event as it is.

    ``user_ids`` are those of the users in the payload, in the same order; None for other events.
    """
    if user_ids is None:
        return payload
    named = zip(payload["data"]["users"], user_ids, strict=True)
    users = [user for user, number in named if number in members]
    return {**payload, "data": {**payload["data"], "users": users}}

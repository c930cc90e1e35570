"""The log of webhook deliveries: lists, counts, sending again, and deleting what is old."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, func, select, update
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import set_committed_value

from store.sql import database
from store.sql.models import User, WebhookDelivery, WebhookEndpoint, now
from store.sql.queries import hold_events
from store.sql.queries.deliveries import ENDPOINT_IS_ACTIVE, user_in_scope

Status = Literal["pending", "delivered", "failed"]

LOG_LIFETIME = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """A delivery with the URL of its endpoint and the user that its event is about; None for a test event."""

    delivery: WebhookDelivery
    url: str = field(repr=False)
    user: str | None


class Counts(NamedTuple):
    """The numbers of an endpoint's deliveries in the log, by status."""

    pending: int = 0
    delivered: int = 0
    failed: int = 0


def page(
    session: Session, endpoint_id: str, *, before: str | None = None, limit: int | None = None
) -> Sequence[WebhookDelivery]:
    """The deliveries to an endpoint, the newest first, beginning before ``before``.

    For an organization's endpoint, only deliveries about its current members are listed, and events of holds
    name no others.
    """
    query = (
        select(WebhookDelivery)
        .join(WebhookEndpoint, WebhookEndpoint.id == WebhookDelivery.endpoint_id)
        .where(WebhookDelivery.endpoint_id == endpoint_id, user_in_scope())
    )
    if before is not None:
        query = query.where(WebhookDelivery.id < before)
    rows = session.scalars(query.order_by(WebhookDelivery.id.desc()).limit(limit)).all()
    return _about_members(session, endpoint_id, rows)


def recent(
    session: Session,
    *,
    status: Status | None = None,
    endpoint_id: str | None = None,
    before: str | None = None,
    limit: int | None = None,
) -> list[DeliveryRow]:
    """Deliveries, the newest first, beginning before ``before``: of one status or endpoint, or all."""
    query = (
        select(WebhookDelivery, WebhookEndpoint.url, User.custom_id)
        .join(WebhookEndpoint, WebhookEndpoint.id == WebhookDelivery.endpoint_id)
        .join(User, User.id == WebhookDelivery.user_id, isouter=True)
        .order_by(WebhookDelivery.id.desc())
    )
    if status is not None:
        query = query.where(_IS[status])
    if endpoint_id is not None:
        query = query.where(WebhookDelivery.endpoint_id == endpoint_id)
    if before is not None:
        query = query.where(WebhookDelivery.id < before)
    return [DeliveryRow(*row) for row in session.execute(query.limit(limit))]


def counts(session: Session, endpoint_ids: Collection[str]) -> dict[str, Counts]:
    """The numbers of deliveries of each of these endpoints, in one statement."""
    query = (
        select(WebhookDelivery.endpoint_id, *(func.count().filter(_IS[each]) for each in Counts._fields))
        .where(WebhookDelivery.endpoint_id.in_(endpoint_ids))
        .group_by(WebhookDelivery.endpoint_id)
    )
    found = {endpoint: Counts(*tally) for endpoint, *tally in session.execute(query)}
    return {endpoint: found.get(endpoint, Counts()) for endpoint in endpoint_ids}


def waiting(session: Session) -> int:
    """The number of pending deliveries of all endpoints that are neither disabled nor paused."""
    receiving = select(WebhookEndpoint.id).where(ENDPOINT_IS_ACTIVE)
    query = select(func.count()).where(_IS["pending"], WebhookDelivery.endpoint_id.in_(receiving))
    return session.scalar(query) or 0


def replay(session: Session, endpoint_id: str, delivery_id: str) -> WebhookDelivery | None:
    """Send a delivery again as if it were new, whatever its status; None when the log has no such delivery.

    Its attempts are counted from zero. A disabled endpoint is enabled again.
    """
    again = (
        update(WebhookDelivery)
        .where(
            WebhookDelivery.id == delivery_id,
            WebhookDelivery.endpoint_id == endpoint_id,
            WebhookEndpoint.id == WebhookDelivery.endpoint_id,
            user_in_scope(),
        )
        .values(next_attempt_at=now(), first_attempt_at=None, delivered_at=None, attempts=0)
        .returning(WebhookDelivery)
    )
    row = session.scalars(again).one_or_none()
    if row is not None:
        session.execute(
            update(WebhookEndpoint).where(WebhookEndpoint.id == endpoint_id).values(disabled_at=None)
        )
        database.note_events(session, [endpoint_id])
        _about_members(session, endpoint_id, [row])
    return row


def replay_failed(session: Session, endpoint_id: str) -> int:
    """Send the failed deliveries of an endpoint again, as ``replay`` does; returns how many.

    Of those whose users have left the endpoint's organization, none is sent.
    """
    again = (
        update(WebhookDelivery)
        .where(
            WebhookDelivery.endpoint_id == endpoint_id,
            WebhookEndpoint.id == WebhookDelivery.endpoint_id,
            _IS["failed"],
            user_in_scope(),
        )
        .values(next_attempt_at=now(), first_attempt_at=None, attempts=0)
        .returning(WebhookDelivery.id)
        .execution_options(synchronize_session=False)
    )
    count = len(session.scalars(again).all())
    if count:
        session.execute(
            update(WebhookEndpoint).where(WebhookEndpoint.id == endpoint_id).values(disabled_at=None)
        )
        database.note_events(session, [endpoint_id])
    return count


def _about_members(
    session: Session, endpoint_id: str, rows: Sequence[WebhookDelivery]
) -> Sequence[WebhookDelivery]:
    """The deliveries with payloads that name the users whom the endpoint may know of now."""
    user_ids = {number for row in rows for number in row.user_ids or ()}
    if user_ids:
        organization_id = session.get_one(WebhookEndpoint, endpoint_id).organization_id
        members = hold_events.members_among(session, organization_id, user_ids)
        for row in rows:
            # Only for the answer; the stored payload stays.
            set_committed_value(row, "payload", hold_events.about(row.payload, row.user_ids, members))
    return rows


def status(row: WebhookDelivery) -> Status:
    """Whether a delivery is pending, was delivered, or was given up."""
    if row.next_attempt_at is not None:
        return "pending"
    return "failed" if row.delivered_at is None else "delivered"


def purge(session: Session, *, limit: int) -> int:
    """Delete up to ``limit`` deliveries that are older than ``LOG_LIFETIME``; returns how many."""
    over = and_(WebhookDelivery.created_at <= now() - LOG_LIFETIME, WebhookDelivery.next_attempt_at.is_(None))
    some = select(WebhookDelivery.id).where(over).limit(limit)
    # The condition is repeated: a delivery that is replayed between query and deletion stays.
    gone = delete(WebhookDelivery).where(WebhookDelivery.id.in_(some), over).returning(WebhookDelivery.id)
    return len(session.execute(gone).all())


# The same as ``status``, in SQL.
_IS: dict[str, ColumnElement[bool]] = {
    "pending": WebhookDelivery.next_attempt_at.is_not(None),
    "delivered": and_(WebhookDelivery.next_attempt_at.is_(None), WebhookDelivery.delivered_at.is_not(None)),
    "failed": and_(WebhookDelivery.next_attempt_at.is_(None), WebhookDelivery.delivered_at.is_(None)),
}

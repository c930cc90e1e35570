"""Webhook deliveries: who sends one, what became of it, and when it is tried again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Update, and_, delete, exists, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from store.sql import after_commit
from store.sql.models import Membership, User, WebhookDelivery, WebhookEndpoint, now
from store.sql.queries import webhooks

Status = Literal["pending", "delivered", "failed"]

LOG_LIFETIME = timedelta(days=30)

# What was tried within this time is not tried ahead of its time: a success may come every second.
LEAST_PAUSE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that is this worker's to send, until a moment that also tells it from later claims."""

    id: str
    endpoint_id: str
    # What lies below its host may be a secret of the receiver's.
    url: str = field(repr=False)
    sealed_secret: bytes = field(repr=False)
    payload: dict[str, Any]
    # This attempt included.
    attempts: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an attempt; ``status`` None when nobody answered, ``error`` None after a success."""

    status: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Logged:
    """A delivery beside where it goes and of whom it tells."""

    delivery: WebhookDelivery
    url: str = field(repr=False)
    user: str


class Counts(NamedTuple):
    """How many deliveries of an endpoint the log has, by their status."""

    pending: int = 0
    delivered: int = 0
    failed: int = 0


def claim(session: Session, endpoint_id: str, *, until: datetime) -> Claimed | None:
    """Take the delivery of an endpoint that has been due for longest: nobody else sends it before ``until``.

    From here on it tells of nothing that happens later. When nothing is left, what tells an organization of
    who is no longer its member is given up: it is never sent.
    """
    moment = now()
    oldest = (
        select(WebhookDelivery.id)
        .join(WebhookEndpoint, WebhookEndpoint.id == WebhookDelivery.endpoint_id)
        .where(WebhookDelivery.endpoint_id == endpoint_id, _due(moment), _theirs())
        .order_by(WebhookDelivery.next_attempt_at, WebhookDelivery.id)
        .limit(1)
    )
    # Asked twice: of two who claim the same at once, the second finds it claimed.
    taken = (
        update(WebhookDelivery)
        .where(WebhookDelivery.id == oldest.scalar_subquery(), _waits(moment))
        .values(
            claimed_until=until,
            attempts=WebhookDelivery.attempts + 1,
            first_attempt_at=func.coalesce(WebhookDelivery.first_attempt_at, moment),
            last_attempt_at=moment,
            topic=None,
        )
        .returning(WebhookDelivery.id, WebhookDelivery.payload, WebhookDelivery.attempts)
    )
    row = session.execute(taken).one_or_none()
    if row is None:
        _give_up_strangers(session, endpoint_id, moment)
        return None
    endpoint = session.get_one(WebhookEndpoint, endpoint_id)
    return Claimed(
        row.id, endpoint_id, endpoint.url, endpoint.sealed_secret, row.payload, row.attempts, until
    )


def delivered(session: Session, claimed: Claimed, answer: Answer, *, most_attempts: int) -> None:
    """It has arrived. Deliveries that failed before are retried now, as the receiver seems to be well.

    Each of these retries is an attempt of its delivery. The last one of ``most_attempts`` keeps its time: an
    event that the receiver always refuses would else be given up within minutes of other successes.
    """
    moment = now()
    session.execute(_end(claimed, answer).values(next_attempt_at=None, delivered_at=moment))
    session.execute(
        update(WebhookDelivery)
        .where(
            WebhookDelivery.endpoint_id == claimed.endpoint_id,
            WebhookDelivery.next_attempt_at > moment,
            WebhookDelivery.last_attempt_at <= moment - LEAST_PAUSE,
            WebhookDelivery.attempts < most_attempts - 1,
        )
        .values(next_attempt_at=moment)
    )


def failed(session: Session, claimed: Claimed, answer: Answer, *, again_at: datetime | None) -> None:
    """It has not arrived, and is tried again, or given up."""
    ended = _end(claimed, answer).values(next_attempt_at=again_at).returning(WebhookDelivery.id)
    if session.scalars(ended).one_or_none() is None or again_at is None:
        return
    # Another may tell of the same by now; then both are sent.
    with suppress(IntegrityError), session.begin_nested():
        session.execute(
            update(WebhookDelivery)
            .where(WebhookDelivery.id == claimed.id)
            .values(topic=webhooks.topic(claimed.payload))
        )


def gone(session: Session, claimed: Claimed, answer: Answer) -> None:
    """The endpoint wants nothing any more: it is disabled, and all that waits for it is given up."""
    failed(session, claimed, answer, again_at=None)
    session.execute(
        update(WebhookEndpoint).where(WebhookEndpoint.id == claimed.endpoint_id).values(disabled_at=now())
    )
    session.execute(
        update(WebhookDelivery)
        .where(
            WebhookDelivery.endpoint_id == claimed.endpoint_id, WebhookDelivery.next_attempt_at.is_not(None)
        )
        .values(next_attempt_at=None, topic=None, last_error="the endpoint was disabled")
    )


def has_due(session: Session, endpoint_id: str) -> bool:
    """Whether something can be sent to an endpoint now."""
    query = _of_enabled().where(WebhookDelivery.endpoint_id == endpoint_id, _due(now())).limit(1)
    return session.scalars(query).first() is not None


def endpoints_due(session: Session, *, limit: int) -> Sequence[str]:
    """Endpoints to which something can be sent now, in any order.

    Of more than ``limit`` others come each time: nobody is left out for good by those who always have more.
    """
    query = (
        _of_enabled()
        .where(_due(now()))
        .group_by(WebhookDelivery.endpoint_id)
        .order_by(func.random())
        .limit(limit)
    )
    return session.scalars(query).all()


def page(
    session: Session, endpoint_id: str, *, before: str | None = None, limit: int | None = None
) -> Sequence[WebhookDelivery]:
    """The deliveries to an endpoint, the newest first, those before ``before``.

    An organization's endpoint shows those of its members alone.
    """
    query = (
        select(WebhookDelivery)
        .join(WebhookEndpoint, WebhookEndpoint.id == WebhookDelivery.endpoint_id)
        .where(WebhookDelivery.endpoint_id == endpoint_id, _theirs())
    )
    if before is not None:
        query = query.where(WebhookDelivery.id < before)
    return session.scalars(query.order_by(WebhookDelivery.id.desc()).limit(limit)).all()


def recent(
    session: Session,
    *,
    status: Status | None = None,
    endpoint_id: str | None = None,
    before: str | None = None,
    limit: int | None = None,
) -> list[Logged]:
    """Deliveries, the newest first, those before ``before``: of one status or endpoint, or of all."""
    query = (
        select(WebhookDelivery, WebhookEndpoint.url, User.custom_id)
        .join(WebhookEndpoint, WebhookEndpoint.id == WebhookDelivery.endpoint_id)
        .join(User, User.id == WebhookDelivery.user_id)
        .order_by(WebhookDelivery.id.desc())
    )
    if status is not None:
        query = query.where(_IS[status])
    if endpoint_id is not None:
        query = query.where(WebhookDelivery.endpoint_id == endpoint_id)
    if before is not None:
        query = query.where(WebhookDelivery.id < before)
    return [Logged(*row) for row in session.execute(query.limit(limit))]


def counts(session: Session, endpoint_ids: Collection[str]) -> dict[str, Counts]:
    """How many deliveries each of these endpoints has, in one statement."""
    query = (
        select(WebhookDelivery.endpoint_id, *(func.count().filter(_IS[each]) for each in Counts._fields))
        .where(WebhookDelivery.endpoint_id.in_(endpoint_ids))
        .group_by(WebhookDelivery.endpoint_id)
    )
    found = {endpoint: Counts(*tally) for endpoint, *tally in session.execute(query)}
    return {endpoint: found.get(endpoint, Counts()) for endpoint in endpoint_ids}


def waiting(session: Session) -> int:
    """How many wait for an attempt, of all endpoints that are not disabled."""
    enabled = select(WebhookEndpoint.id).where(WebhookEndpoint.disabled_at.is_(None))
    query = select(func.count()).where(_IS["pending"], WebhookDelivery.endpoint_id.in_(enabled))
    return session.scalar(query) or 0


def replay(session: Session, endpoint_id: str, delivery_id: str) -> WebhookDelivery | None:
    """Send a delivery again as if it were new, whatever became of it; None when the log shows none.

    Its attempts are counted from the beginning.

    An endpoint that was disabled is enabled by it.
    """
    again = (
        update(WebhookDelivery)
        .where(
            WebhookDelivery.id == delivery_id,
            WebhookDelivery.endpoint_id == endpoint_id,
            WebhookEndpoint.id == WebhookDelivery.endpoint_id,
            _theirs(),
        )
        .values(next_attempt_at=now(), first_attempt_at=None, delivered_at=None, attempts=0)
        .returning(WebhookDelivery)
    )
    row = session.scalars(again).one_or_none()
    if row is not None:
        session.execute(
            update(WebhookEndpoint).where(WebhookEndpoint.id == endpoint_id).values(disabled_at=None)
        )
        after_commit.note(session, [endpoint_id])
    return row


def status(row: WebhookDelivery) -> Status:
    """Whether it is on its way, has arrived, or was given up."""
    if row.next_attempt_at is not None:
        return "pending"
    return "failed" if row.delivered_at is None else "delivered"


def purge(session: Session, *, limit: int) -> int:
    """Delete up to ``limit`` deliveries that nobody looks for any more; returns how many."""
    over = and_(WebhookDelivery.created_at <= now() - LOG_LIFETIME, WebhookDelivery.next_attempt_at.is_(None))
    some = select(WebhookDelivery.id).where(over).limit(limit)
    # Asked twice: one that is replayed between the query and the deletion stays.
    gone = delete(WebhookDelivery).where(WebhookDelivery.id.in_(some), over).returning(WebhookDelivery.id)
    return len(session.execute(gone).all())


# As ``status`` tells it of a row.
_IS: dict[str, ColumnElement[bool]] = {
    "pending": WebhookDelivery.next_attempt_at.is_not(None),
    "delivered": and_(WebhookDelivery.next_attempt_at.is_(None), WebhookDelivery.delivered_at.is_not(None)),
    "failed": and_(WebhookDelivery.next_attempt_at.is_(None), WebhookDelivery.delivered_at.is_(None)),
}


def _of_enabled() -> Any:
    return select(WebhookDelivery.endpoint_id).join(
        WebhookEndpoint, WebhookEndpoint.id == WebhookDelivery.endpoint_id
    )


def _due(moment: datetime) -> ColumnElement[bool]:
    return and_(_waits(moment), WebhookEndpoint.disabled_at.is_(None))


def _theirs() -> ColumnElement[bool]:
    """Whether an endpoint may still hear of the user that a delivery tells of."""
    member = (
        exists()
        .correlate(WebhookDelivery, WebhookEndpoint)
        .where(
            Membership.organization_id == WebhookEndpoint.organization_id,
            Membership.user_id == WebhookDelivery.user_id,
        )
    )
    return or_(WebhookEndpoint.organization_id.is_(None), member)


def _give_up_strangers(session: Session, endpoint_id: str, moment: datetime) -> None:
    session.execute(
        update(WebhookDelivery)
        .where(
            WebhookDelivery.endpoint_id == endpoint_id,
            WebhookEndpoint.id == WebhookDelivery.endpoint_id,
            _waits(moment),
            ~_theirs(),
        )
        .values(next_attempt_at=None, topic=None, last_error="no longer a member")
    )


def _waits(moment: datetime) -> ColumnElement[bool]:
    """Whether it is to be sent now, and nobody is about it."""
    unclaimed = or_(WebhookDelivery.claimed_until.is_(None), WebhookDelivery.claimed_until <= moment)
    return and_(WebhookDelivery.next_attempt_at <= moment, unclaimed)


def _end(claimed: Claimed, answer: Answer) -> Update:
    """The end of an attempt; nothing happens when the claim has passed to another."""
    return (
        update(WebhookDelivery)
        .where(WebhookDelivery.id == claimed.id, WebhookDelivery.claimed_until == claimed.until)
        .values(claimed_until=None, last_status=answer.status, last_error=answer.error)
    )

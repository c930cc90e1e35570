"""Webhook deliveries: claims, outcomes and retries; and their log, which lists, repeats and deletes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Update, and_, delete, exists, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased
from sqlalchemy.orm.attributes import set_committed_value

from store.coordination.shares import NO_OWN, OwnQuotas
from store.sql.database import note_events
from store.sql.models import Membership, Organization, User, WebhookDelivery, WebhookEndpoint, now
from store.sql.queries import webhook_events

# A delivery that was attempted within this time is not retried early: successes may come every second.
MIN_PAUSE = timedelta(seconds=60)

LOG_LIFETIME = timedelta(days=30)
# The log has this many attempts of a delivery, the latest.
MAX_LOGGED = 30

Status = Literal["pending", "delivered", "failed"]

# Whether deliveries are sent to an endpoint.
ENDPOINT_IS_ACTIVE = and_(WebhookEndpoint.disabled_at.is_(None), WebhookEndpoint.paused_at.is_(None))


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery that this worker has claimed. ``until`` ends the claim, and identifies it."""

    id: str
    endpoint_id: str
    # The path may contain a secret of the receiver.
    url: str = field(repr=False)
    sealed_secret: bytes = field(repr=False)
    # The secret before the last rotation, while it signs too.
    sealed_previous_secret: bytes | None = field(repr=False)
    payload: dict[str, Any]
    # This attempt included.
    attempts: int
    until: datetime
    # When this attempt began, and the log of those before it.
    began_at: datetime
    log: list[dict[str, Any]] = field(repr=False)


class DeliveryAttempt(NamedTuple):
    """One attempt of the log: when it began, its duration in milliseconds, the status or else the error."""

    at: datetime
    milliseconds: int | None
    status: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The outcome of an attempt; ``status`` is None without an answer, ``error`` is None after a success.

    ``start`` is the start of the answer's body, from outside of this service. ``milliseconds`` is the
    duration until the answer or the failure; None if nothing was sent.
    """

    status: int | None
    error: str | None
    start: str | None = field(default=None, repr=False)
    milliseconds: int | None = None


def claim(session: Session, endpoint_id: str, *, until: datetime) -> ClaimedDelivery | None:
    """Claim the delivery of an endpoint that has been due for longest, unless another one is claimed.

    So only one worker at a time sends to an endpoint, until the claim ends. A delivery waits for the earlier
    ones of its subject.

    From then on no later event is merged into it. If none is due, pending deliveries about users who are no
    longer members of the endpoint's organization are given up without being sent. Events of holds name the
    users who still are.
    """
    moment = now()
    other, earlier = aliased(WebhookDelivery), aliased(WebhookDelivery)
    served = exists().where(other.endpoint_id == endpoint_id, other.claimed_until > moment)
    follows = exists().where(
        earlier.endpoint_id == endpoint_id,
        earlier.subject == WebhookDelivery.subject,
        earlier.next_attempt_at.is_not(None),
        earlier.id < WebhookDelivery.id,
    )
    oldest = (
        select(WebhookDelivery.id)
        .join(WebhookEndpoint, WebhookEndpoint.id == WebhookDelivery.endpoint_id)
        .where(WebhookDelivery.endpoint_id == endpoint_id, _due(moment), user_in_scope(), ~served, ~follows)
        .order_by(WebhookDelivery.next_attempt_at, WebhookDelivery.id)
        .limit(1)
    )
    # The condition is repeated: of two concurrent claims, the second finds it claimed.
    taken = (
        update(WebhookDelivery)
        .where(WebhookDelivery.id == oldest.scalar_subquery(), _is_due_and_unclaimed(moment))
        .values(
            claimed_until=until,
            attempts=WebhookDelivery.attempts + 1,
            first_attempt_at=func.coalesce(WebhookDelivery.first_attempt_at, moment),
            last_attempt_at=moment,
            topic=None,
        )
        .returning(
            WebhookDelivery.id,
            WebhookDelivery.payload,
            WebhookDelivery.user_ids,
            WebhookDelivery.attempts,
            WebhookDelivery.attempt_log,
        )
    )
    row = session.execute(taken).one_or_none()
    if row is None:
        _give_up_out_of_scope(session, endpoint_id, moment)
        return None
    endpoint = session.get_one(WebhookEndpoint, endpoint_id)
    members = webhook_events.members_among(session, endpoint.organization_id, row.user_ids or ())
    if row.user_ids and not members:
        _give_up(session, WebhookDelivery.id == row.id)
        return claim(session, endpoint_id, until=until)
    overlap_ends = endpoint.overlap_until
    return ClaimedDelivery(
        row.id,
        endpoint_id,
        endpoint.url,
        endpoint.sealed_secret,
        endpoint.sealed_previous_secret if overlap_ends is not None and overlap_ends > moment else None,
        webhook_events.about(row.payload, row.user_ids, members),
        row.attempts,
        until,
        moment,
        row.attempt_log or [],
    )


def delivered(
    session: Session, claimed: ClaimedDelivery, answer: AttemptResult, *, most_attempts: int
) -> None:
    """Record a success. The endpoint's failed deliveries are retried now, as it appears to work again.

    Each such retry counts as an attempt. The last of ``most_attempts`` keeps its scheduled time: otherwise an
    event that the receiver always refuses would be given up within minutes of other successes.
    """
    moment = now()
    session.execute(_end(claimed, answer).values(next_attempt_at=None, delivered_at=moment))
    session.execute(
        update(WebhookDelivery)
        .where(
            WebhookDelivery.endpoint_id == claimed.endpoint_id,
            WebhookDelivery.next_attempt_at > moment,
            WebhookDelivery.last_attempt_at <= moment - MIN_PAUSE,
            WebhookDelivery.attempts < most_attempts - 1,
        )
        .values(next_attempt_at=moment)
    )


def failed(
    session: Session, claimed: ClaimedDelivery, answer: AttemptResult, *, again_at: datetime | None
) -> None:
    """Record a failed attempt; it is retried at ``again_at``, or given up."""
    ended = _end(claimed, answer).values(next_attempt_at=again_at).returning(WebhookDelivery.id)
    if session.scalars(ended).one_or_none() is None or again_at is None:
        return
    # A newer delivery may have the same topic by now; then both are sent.
    with suppress(IntegrityError), session.begin_nested():
        session.execute(
            update(WebhookDelivery)
            .where(WebhookDelivery.id == claimed.id)
            .values(topic=webhook_events.topic(claimed.payload))
        )


def gone(session: Session, claimed: ClaimedDelivery, answer: AttemptResult) -> None:
    """Record that the endpoint is gone: it is disabled, and its pending deliveries are given up."""
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


def organization_of(session: Session, endpoint_id: str) -> tuple[int, OwnQuotas] | None:
    """The organization of an endpoint with its own quotas.

    None if the endpoint gets events of all organizations, or is not there.
    """
    query = (
        select(Organization.id, Organization.quotas)
        .join(WebhookEndpoint, WebhookEndpoint.organization_id == Organization.id)
        .where(WebhookEndpoint.id == endpoint_id)
    )
    found = session.execute(query).one_or_none()
    return None if found is None else (found.id, found.quotas or NO_OWN)


def endpoints_due(session: Session, *, limit: int) -> Sequence[str]:
    """Endpoints with deliveries that are due now, in random order; paused and disabled ones are left out.

    If there are more than ``limit``, each call returns others, so that busy endpoints do not starve the rest.
    """
    query = (
        select(WebhookDelivery.endpoint_id)
        .join(WebhookEndpoint, WebhookEndpoint.id == WebhookDelivery.endpoint_id)
        .where(_due(now()))
        .group_by(WebhookDelivery.endpoint_id)
        .order_by(func.random())
        .limit(limit)
    )
    return session.scalars(query).all()


def _give_up_out_of_scope(session: Session, endpoint_id: str, moment: datetime) -> None:
    _give_up(
        session,
        WebhookDelivery.endpoint_id == endpoint_id,
        WebhookEndpoint.id == WebhookDelivery.endpoint_id,
        _is_due_and_unclaimed(moment),
        ~user_in_scope(),
    )


def _give_up(session: Session, *conditions: ColumnElement[bool]) -> None:
    session.execute(
        update(WebhookDelivery)
        .where(*conditions)
        .values(next_attempt_at=None, claimed_until=None, topic=None, last_error="no longer a member")
    )


def _end(claimed: ClaimedDelivery, answer: AttemptResult) -> Update:
    """The update that ends an attempt; it has no effect when another worker has claimed the delivery."""
    attempt = {
        "at": claimed.began_at.isoformat(),
        "milliseconds": answer.milliseconds,
        "status": answer.status,
        "error": answer.error,
    }
    return (
        update(WebhookDelivery)
        .where(WebhookDelivery.id == claimed.id, WebhookDelivery.claimed_until == claimed.until)
        .values(
            claimed_until=None,
            last_status=answer.status,
            last_error=answer.error,
            last_body=answer.start,
            attempt_log=[*claimed.log, attempt][-MAX_LOGGED:],
        )
    )


def attempts(row: WebhookDelivery) -> list[DeliveryAttempt]:
    """The logged attempts of a delivery, the latest first."""
    return [
        DeliveryAttempt(
            datetime.fromisoformat(each["at"]), each["milliseconds"], each["status"], each["error"]
        )
        for each in reversed(row.attempt_log or ())
    ]


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


def _due(moment: datetime) -> ColumnElement[bool]:
    return and_(_is_due_and_unclaimed(moment), ENDPOINT_IS_ACTIVE)


def _is_due_and_unclaimed(moment: datetime) -> ColumnElement[bool]:
    """Whether a delivery is due and not claimed."""
    unclaimed = or_(WebhookDelivery.claimed_until.is_(None), WebhookDelivery.claimed_until <= moment)
    return and_(WebhookDelivery.next_attempt_at <= moment, unclaimed)


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """A delivery with the URL of its endpoint and the user that its event is about; None for a test event."""

    delivery: WebhookDelivery
    url: str = field(repr=False)
    user: str | None


class DeliveryCounts(NamedTuple):
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


def counts(session: Session, endpoint_ids: Collection[str]) -> dict[str, DeliveryCounts]:
    """The numbers of deliveries of each of these endpoints, in one statement."""
    query = (
        select(
            WebhookDelivery.endpoint_id, *(func.count().filter(_IS[each]) for each in DeliveryCounts._fields)
        )
        .where(WebhookDelivery.endpoint_id.in_(endpoint_ids))
        .group_by(WebhookDelivery.endpoint_id)
    )
    found = {endpoint: DeliveryCounts(*tally) for endpoint, *tally in session.execute(query)}
    return {endpoint: found.get(endpoint, DeliveryCounts()) for endpoint in endpoint_ids}


def waiting(session: Session) -> int:
    """The number of pending deliveries of all endpoints that are neither disabled nor paused."""
    receiving = select(WebhookEndpoint.id).where(ENDPOINT_IS_ACTIVE)
    query = select(func.count()).where(_IS["pending"], WebhookDelivery.endpoint_id.in_(receiving))
    return session.scalar(query) or 0


def replay(session: Session, endpoint_id: str, delivery_id: str) -> WebhookDelivery | None:
    """Send a delivery again as if it were new, whatever its status; None when the log has no such delivery.

    Its attempts are counted from zero. A disabled endpoint is enabled again.
    """
    if not _replay(session, endpoint_id, WebhookDelivery.id == delivery_id):
        return None
    row = session.get_one(WebhookDelivery, delivery_id, populate_existing=True)
    _about_members(session, endpoint_id, [row])
    return row


def replay_failed(session: Session, endpoint_id: str) -> int:
    """Send the failed deliveries of an endpoint again, as ``replay`` does; returns how many.

    Of those whose users have left the endpoint's organization, none is sent.
    """
    return len(_replay(session, endpoint_id, _IS["failed"]))


def _replay(session: Session, endpoint_id: str, condition: ColumnElement[bool]) -> Sequence[str]:
    again = (
        update(WebhookDelivery)
        .where(
            condition,
            WebhookDelivery.endpoint_id == endpoint_id,
            WebhookEndpoint.id == WebhookDelivery.endpoint_id,
            user_in_scope(),
        )
        .values(next_attempt_at=now(), first_attempt_at=None, delivered_at=None, attempts=0)
        .returning(WebhookDelivery.id)
        .execution_options(synchronize_session=False)
    )
    ids = session.scalars(again).all()
    if ids:
        session.execute(
            update(WebhookEndpoint).where(WebhookEndpoint.id == endpoint_id).values(disabled_at=None)
        )
        note_events(session, [endpoint_id])
    return ids


def _about_members(
    session: Session, endpoint_id: str, rows: Sequence[WebhookDelivery]
) -> Sequence[WebhookDelivery]:
    """The deliveries with payloads that name the users whom the endpoint may know of now."""
    user_ids = {number for row in rows for number in row.user_ids or ()}
    if user_ids:
        organization_id = session.get_one(WebhookEndpoint, endpoint_id).organization_id
        members = webhook_events.members_among(session, organization_id, user_ids)
        for row in rows:
            # Only for the answer; the stored payload stays.
            set_committed_value(row, "payload", webhook_events.about(row.payload, row.user_ids, members))
    return rows


def status(row: WebhookDelivery) -> Status:
    """Whether a delivery is pending, was delivered, or was given up."""
    if row.next_attempt_at is not None:
        return "pending"
    return "failed" if row.delivered_at is None else "delivered"


def purge(session: Session, *, limit: int) -> int:
    """Delete up to ``limit`` deliveries that are older than ``LOG_LIFETIME``; returns how many.

    Pending ones are kept, but those about single events, which are not merged and may have their content.
    """
    over = and_(
        WebhookDelivery.created_at <= now() - LOG_LIFETIME,
        or_(WebhookDelivery.next_attempt_at.is_(None), WebhookDelivery.subject.is_not(None)),
    )
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

"""Holds: time of users that only one request has at once.

A taker locks the users' rows first, in one order, so of two concurrent takers one sees the rows of
the other. SQLite has one writer. Expired holds block nothing: a taker deletes those of its users.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlalchemy import ColumnExpressionArgument, Select, delete, func, or_, select, update
from sqlalchemy.orm import Session

from store.sql.models import HeldTime, Hold, Membership, User
from store.sql.queries import hold_events
from store.sql.queries.hold_events import HoldView
from store.sql.queries.webhooks import WebhookEvent


@dataclass(frozen=True, slots=True)
class NewHold:
    """A hold to take, in milliseconds; see ``Hold`` for ``request_key``."""

    starts: int
    ends: int
    expires_at: int
    request_key: str
    note: str | None = None


class Overlap(NamedTuple):
    """Held time of a user that overlaps wanted time."""

    user: str
    starts: int
    ends: int


class ActiveTime(NamedTuple):
    """Time of a user that counts as busy until ``expires_at``."""

    user: str
    starts: int
    ends: int
    expires_at: int


class TakenHold(NamedTuple):
    """A hold that was taken. ``repeated``: it replaces a lease of an earlier attempt of the request."""

    id: str
    repeated: bool


class ClaimedHold(NamedTuple):
    """A hold that a create is using, and when it expired before it was claimed.

    ``repeated``: an earlier attempt of the request had claimed it.
    """

    id: str
    expired_at: int
    repeated: bool


def take(
    session: Session, user_ids: Collection[int], new: NewHold, *, now: int, before: int = 0, after: int = 0
) -> TakenHold | list[Overlap]:
    """Take time of all these users, or of none: the hold, or what overlaps.

    Held time counts from ``before`` milliseconds before its start to ``after`` milliseconds after its end. An
    earlier hold of the same request is replaced, unless a create is using it. A lease that is replaced does
    not end earlier than before. If other time overlaps, the caller has to roll back.
    """
    _lock_users(session, user_ids)
    _remove_expired(session, _held_by(user_ids), now)
    earlier = delete(Hold).where(Hold.request_key == new.request_key, Hold.claim.is_(None))
    replaced = session.execute(earlier.returning(Hold.promised, Hold.expires_at)).all()
    found = overlaps(session, user_ids, new.starts - after, new.ends + before, now=now)
    if found:
        return found
    leases = [expires_at for promised, expires_at in replaced if not promised]
    new = replace(new, expires_at=max([new.expires_at, *leases]))
    hold_id = f"hold_{secrets.token_hex(12)}"
    session.add(Hold(id=hold_id, promised=False, claim=None, **_columns(new)))
    session.flush()
    session.add_all(
        HeldTime(hold_id=hold_id, user_id=each, starts=new.starts, ends=new.ends) for each in sorted(user_ids)
    )
    session.flush()
    return TakenHold(hold_id, repeated=bool(leases))


def overlaps(
    session: Session, user_ids: Collection[int], starts: int, ends: int, *, now: int
) -> list[Overlap]:
    """The held time of these users that overlaps ``[starts, ends)``."""
    query = (
        select(User.custom_id, HeldTime.starts, HeldTime.ends)
        .join(HeldTime, HeldTime.user_id == User.id)
        .join(Hold, Hold.id == HeldTime.hold_id)
        .where(User.id.in_(user_ids), HeldTime.starts < ends, HeldTime.ends > starts, Hold.expires_at > now)
        .order_by(User.custom_id, HeldTime.starts)
    )
    return [Overlap(*row) for row in session.execute(query)]


def promise(session: Session, hold_id: str, *, expires_at: int, now: int) -> HoldView | None:
    """Make a hold public and extend it; None if it has expired meanwhile."""
    if not renew(session, hold_id, expires_at=expires_at, now=now, promised=True):
        return None
    view = find(session, hold_id, organization_id=None, now=now)
    if view is not None:
        hold_events.record(session, WebhookEvent.HOLD_CREATED, [view])
    return view


def renew(session: Session, hold_id: str, *, expires_at: int, now: int, promised: bool | None = None) -> bool:
    """Change when a hold expires; False if it has expired, or has been replaced."""
    values = {"expires_at": expires_at} | ({} if promised is None else {"promised": promised})
    changed = update(Hold).where(Hold.id == hold_id, Hold.expires_at > now).values(values)
    return session.scalars(changed.returning(Hold.id)).one_or_none() is not None


def find(session: Session, hold_id: str, *, organization_id: int | None, now: int) -> HoldView | None:
    """A promised hold that has not expired. ``organization_id``: of members of that organization only."""
    found = _views(session, [Hold.id == hold_id], organization_id, now)
    return found[0] if found else None


def listed(
    session: Session, custom_id: str | None = None, *, organization_id: int | None, now: int
) -> list[HoldView]:
    """The promised holds that have not expired, by start; those of one user if given."""
    if custom_id is None:
        return _views(session, [], organization_id, now)
    of_user = select(HeldTime.hold_id).join(User, User.id == HeldTime.user_id)
    return _views(session, [Hold.id.in_(of_user.where(User.custom_id == custom_id))], organization_id, now)


def count_active(session: Session, *, now: int) -> int:
    """How many promised holds have not expired."""
    query = select(func.count()).select_from(Hold).where(Hold.expires_at > now, Hold.promised)
    return session.scalars(query).one()


def active(session: Session, *, now: int) -> list[ActiveTime]:
    """All promised time that has not expired."""
    query = (
        select(User.custom_id, HeldTime.starts, HeldTime.ends, Hold.expires_at)
        .join(HeldTime, HeldTime.user_id == User.id)
        .join(Hold, Hold.id == HeldTime.hold_id)
        .where(Hold.expires_at > now, Hold.promised)
        .order_by(User.custom_id, HeldTime.starts)
    )
    return [ActiveTime(*row) for row in session.execute(query)]


def claim(
    session: Session,
    hold_id: str,
    custom_id: str,
    starts: int,
    ends: int,
    *,
    token: str,
    expires_at: int,
    organization_id: int | None,
    now: int,
) -> ClaimedHold | None:
    """Claim a hold for a create of this user in ``[starts, ends)``, and extend it to ``expires_at``.

    None if it has expired, does not cover that time of that user, or another create has claimed it. The same
    ``token`` may claim it again.
    """
    row = session.scalars(select(Hold).where(Hold.id == hold_id).with_for_update()).one_or_none()
    view = find(session, hold_id, organization_id=organization_id, now=now)
    if row is None or view is None or custom_id not in view.users or row.claim not in (None, token):
        return None
    if row.starts > starts or row.ends < ends:
        return None
    repeated = row.claim is not None
    row.claim, row.expires_at = token, max(row.expires_at, expires_at)
    session.flush()
    return ClaimedHold(hold_id, view.expires_at, repeated)


def release_claim(session: Session, claimed: ClaimedHold, *, token: str) -> None:
    """End a claim whose create has written nothing: the hold expires as before."""
    ended = update(Hold).where(Hold.id == claimed.id, Hold.claim == token)
    session.execute(ended.values(claim=None, expires_at=claimed.expired_at))


def remove(session: Session, hold_id: str) -> None:
    """Delete a hold without an event."""
    session.execute(delete(Hold).where(Hold.id == hold_id))


def release(session: Session, hold_id: str, *, reason: str, token: str | None = None, now: int) -> bool:
    """Delete a promised hold and record that it was released.

    False if there is none, it has expired, or a create other than that of ``token`` has claimed it.
    """
    view = find(session, hold_id, organization_id=None, now=now)
    free = Hold.claim.is_(None) if token is None else or_(Hold.claim.is_(None), Hold.claim == token)
    gone = delete(Hold).where(Hold.id == hold_id, Hold.expires_at > now, free).returning(Hold.id)
    if session.scalars(gone).one_or_none() is None:
        return False
    if view is not None:
        hold_events.record(session, WebhookEvent.HOLD_RELEASED, [view], reason=reason)
    return True


def purge(session: Session, *, now: int, limit: int) -> int:
    """Delete up to ``limit`` expired holds, and record that they expired; returns how many."""
    oldest = select(Hold.id).order_by(Hold.expires_at).limit(limit)
    return _remove_expired(session, oldest, now)


def _columns(new: NewHold) -> dict[str, object]:
    return {
        "starts": new.starts,
        "ends": new.ends,
        "expires_at": new.expires_at,
        "request_key": new.request_key,
        "note": new.note,
    }


def _lock_users(session: Session, user_ids: Collection[int]) -> None:
    """Lock the rows of users until the commit, against other takers only."""
    locked = select(User.id).where(User.id.in_(user_ids)).order_by(User.id)
    session.execute(locked.with_for_update(key_share=True)).all()


def _held_by(user_ids: Collection[int]) -> Select[str]:
    return select(HeldTime.hold_id).where(HeldTime.user_id.in_(user_ids))


def _remove_expired(session: Session, hold_ids: Select[str], now: int) -> int:
    """Delete those holds among some that have expired; an event is recorded for promised ones."""
    expired = select(Hold.id).where(Hold.id.in_(hold_ids), Hold.expires_at <= now).order_by(Hold.id)
    # Locked in one order, so that concurrent deletions do not deadlock.
    ids = session.scalars(expired.with_for_update()).all()
    if not ids:
        return 0
    views = _load(session, [Hold.id.in_(ids), Hold.promised])
    gone = set(session.scalars(delete(Hold).where(Hold.id.in_(ids)).returning(Hold.id)))
    hold_events.record(session, WebhookEvent.HOLD_EXPIRED, [view for view in views if view.id in gone])
    return len(gone)


def _views(
    session: Session,
    conditions: Sequence[ColumnExpressionArgument[bool]],
    organization_id: int | None,
    now: int,
) -> list[HoldView]:
    conditions = [*conditions, Hold.promised, Hold.expires_at > now]
    if organization_id is not None:
        # Every user of the hold is a member: a hold must not name the users of others.
        members = select(Membership.user_id).where(Membership.organization_id == organization_id)
        strangers = select(HeldTime.hold_id).where(HeldTime.user_id.not_in(members))
        conditions += [Hold.id.not_in(strangers)]
    return _load(session, conditions)


def _load(session: Session, conditions: Sequence[ColumnExpressionArgument[bool]]) -> list[HoldView]:
    query = (
        select(Hold, User.custom_id)
        .join(HeldTime, HeldTime.hold_id == Hold.id)
        .join(User, User.id == HeldTime.user_id)
        .where(*conditions)
        .order_by(Hold.starts, Hold.id, User.custom_id)
    )
    rows: dict[str, tuple[Hold, list[str]]] = {}
    for hold, user in session.execute(query):
        rows.setdefault(hold.id, (hold, []))[1].append(user)
    return [
        HoldView(
            hold.id, tuple(users), hold.starts, hold.ends, hold.expires_at, hold.note, hold.claim is not None
        )
        for hold, users in rows.values()
    ]

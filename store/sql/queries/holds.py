"""Holds: time of users and of what is booked for them, that only one request has at once.

A hold takes its users, and the calendars and mailboxes that it books for them, by their names
(``store.cache.cache_tags:booked_names``). So it is seen through every user, connection and organization that
books the same ones. A taker first locks the users and the names, in one order: of two concurrent takers, one
sees the hold of the other. SQLite has one writer. Expired holds block nothing: a taker deletes the expired
holds of its names.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    ColumnExpressionArgument,
    String,
    cast,
    delete,
    func,
    literal,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import Session

from store.cache.cache_tags import USER, user_name
from store.cache.versioned_cache import ActiveTime
from store.sql.models import HeldName, HeldTime, Hold, Membership, User
from store.sql.queries import connection_rows, webhook_events
from store.sql.queries.webhook_events import HoldView, WebhookEvent

# Names in one statement. SQLite takes 32 766 values, PostgreSQL 65 535.
_MOST_NAMES = 10_000

# The names that a hold takes for each user, by the internal id.
Booked = Mapping[int, Collection[str]]


@dataclass(frozen=True, slots=True)
class NewHold:
    """A hold to take, in milliseconds; see ``Hold`` for ``request_key`` and ``organization_id``."""

    starts: int
    ends: int
    expires_at: int
    request_key: str
    note: str | None = None
    organization_id: int | None = None


# The held time of others that overlaps wanted time, by user. Each hold is in it once for a user.
Overlapping = dict[int, list[ActiveTime]]


class TakenHold(NamedTuple):
    """A hold that was taken. ``repeated``: it replaces a lease of an earlier attempt of the request.

    ``others`` are the holds that overlap it, where some may.
    """

    id: str
    repeated: bool
    others: Overlapping


class ClaimedHold(NamedTuple):
    """A hold that a create is using, and when it expired before it was claimed.

    ``repeated``: an earlier attempt of the request had claimed it. ``names`` are all names of the hold.
    """

    id: str
    expired_at: int
    repeated: bool
    names: Sequence[str]


def take(
    session: Session,
    booked: Booked,
    new: NewHold,
    *,
    now: int,
    before: int = 0,
    after: int = 0,
    max_overlaps: int = 0,
    margins: Mapping[int, tuple[int, int]] | None = None,
) -> TakenHold | Overlapping:
    """Take the time of all these users and names, or of none: the hold, or what overlaps.

    Held time counts from ``before`` milliseconds before its start to ``after`` milliseconds after its end.
    ``margins`` has other such lengths for some users. With ``max_overlaps``, other holds may overlap: the
    caller counts them together with the busy periods. An earlier hold of the same request is replaced, unless
    a create is using it. A lease that is replaced does not end earlier than before. If other time overlaps,
    the caller has to roll back.
    """
    _lock(session, booked)
    _remove_expired(session, _held_by(booked), now)
    earlier = delete(Hold).where(Hold.request_key == new.request_key, Hold.claim.is_(None))
    replaced = session.execute(earlier.returning(Hold.promised, Hold.expires_at)).all()
    others = _overlapping_each(session, booked, new, now, (before, after), margins or {})
    if others and not max_overlaps:
        return others
    leases = [expires_at for promised, expires_at in replaced if not promised]
    new = replace(new, expires_at=max([new.expires_at, *leases]))
    hold_id = f"hold_{secrets.token_hex(12)}"
    session.add(Hold(id=hold_id, promised=False, claim=None, **_columns(new)))
    session.flush()
    for user_id, names in sorted(booked.items()):
        session.add(HeldTime(hold_id=hold_id, user_id=user_id, starts=new.starts, ends=new.ends))
        session.add_all(HeldName(hold_id=hold_id, user_id=user_id, name=each) for each in sorted(set(names)))
    session.flush()
    return TakenHold(hold_id, bool(leases), others)


def held_users(session: Session, organization_id: int | None, *, now: int) -> int:
    """How many users the holds of an organization hold, or those of all keys that are bound to none.

    A user of two holds counts twice.
    """
    query = (
        select(func.count())
        .select_from(HeldTime)
        .join(Hold, Hold.id == HeldTime.hold_id)
        .where(Hold.organization_id.is_not_distinct_from(organization_id), Hold.expires_at > now)
    )
    return session.scalars(query).one()


def first_expiry(session: Session, organization_id: int | None, *, besides: str, now: int) -> int | None:
    """When the first of the holds that ``held_users`` counts expires, ``besides`` left out."""
    query = select(func.min(Hold.expires_at)).where(
        Hold.organization_id.is_not_distinct_from(organization_id),
        Hold.expires_at > now,
        Hold.id != besides,
    )
    return session.scalars(query).one()


def promise(session: Session, hold_id: str, *, expires_at: int, now: int) -> HoldView | None:
    """Make a hold public and extend it; None if it has expired meanwhile."""
    if not renew(session, hold_id, expires_at=expires_at, now=now, promised=True):
        return None
    view = find(session, hold_id, organization_id=None, now=now)
    if view is not None:
        webhook_events.record_holds(session, WebhookEvent.HOLD_CREATED, [view])
    return view


def renew(session: Session, hold_id: str, *, expires_at: int, now: int, promised: bool | None = None) -> bool:
    """Change when a hold expires; False if it has expired, or has been replaced."""
    values = {"expires_at": expires_at} | ({} if promised is None else {"promised": promised})
    changed = update(Hold).where(Hold.id == hold_id, Hold.expires_at > now).values(values)
    return session.scalars(changed.returning(Hold.id)).one_or_none() is not None


def find(session: Session, hold_id: str, *, organization_id: int | None, now: int) -> HoldView | None:
    """A promised hold that has not expired. ``organization_id`` as in ``listed``."""
    found = _views(session, [Hold.id == hold_id], organization_id, now)
    return found[0] if found else None


def listed(
    session: Session, custom_ids: Collection[str] = (), *, organization_id: int | None, now: int
) -> list[HoldView]:
    """The promised holds that have not expired, by start; those of any of these users if there are some.

    ``organization_id`` limits to the holds that this organization took, and to its members in each.
    """
    if not custom_ids:
        return _views(session, [], organization_id, now)
    of_user = select(HeldTime.hold_id).join(User, User.id == HeldTime.user_id)
    wanted = of_user.where(User.custom_id.in_(custom_ids))
    return _views(session, [Hold.id.in_(wanted)], organization_id, now)


def most_held_users(session: Session, *, now: int) -> int:
    """How many users the holds of that organization hold that holds most; see ``held_users``."""
    each = (
        select(func.count())
        .select_from(HeldTime)
        .join(Hold, Hold.id == HeldTime.hold_id)
        .where(Hold.expires_at > now)
        .group_by(Hold.organization_id)
    )
    return max(session.scalars(each).all(), default=0)


def count_active(session: Session, *, now: int) -> int:
    """How many promised holds have not expired."""
    query = select(func.count()).select_from(Hold).where(Hold.expires_at > now, Hold.promised)
    return session.scalars(query).one()


def active(session: Session, names: Collection[str], *, now: int) -> dict[str, list[ActiveTime]]:
    """The promised time that has not expired, under each of these names of users and of what is booked."""
    distinct = list(dict.fromkeys(names))
    found: dict[str, list[ActiveTime]] = {}
    for first in range(0, len(distinct), _MOST_NAMES):
        some = distinct[first : first + _MOST_NAMES]
        found |= _held(session, some, Hold.promised, Hold.expires_at > now)
    return found


def names(session: Session, hold_id: str) -> list[str]:
    """The names of everything that a hold takes, and of the calendars that its users have by now."""
    users = session.scalars(select(HeldTime.user_id).where(HeldTime.hold_id == hold_id)).all()
    booked = session.scalars(select(HeldName.name).where(HeldName.hold_id == hold_id))
    return [*map(user_name, users), *{*booked, *connection_rows.main_names(session, users)}]


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
    return ClaimedHold(hold_id, view.expires_at, repeated, names(session, hold_id))


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
        webhook_events.record_holds(session, WebhookEvent.HOLD_RELEASED, [view], reason=reason)
    return True


def purge(session: Session, *, now: int, limit: int) -> int:
    """Delete up to ``limit`` expired holds, and record that they expired; returns how many."""
    oldest = select(Hold.id).order_by(Hold.expires_at).limit(limit)
    return _remove_expired(session, Hold.id.in_(oldest), now)


def _columns(new: NewHold) -> dict[str, object]:
    return {
        "starts": new.starts,
        "ends": new.ends,
        "expires_at": new.expires_at,
        "request_key": new.request_key,
        "note": new.note,
        "organization_id": new.organization_id,
    }


def _lock(session: Session, booked: Booked) -> None:
    """Lock the rows of the users, then the names, until the commit, against other takers only."""
    locked = select(User.id).where(User.id.in_(booked)).order_by(User.id)
    session.execute(locked.with_for_update(key_share=True)).all()
    # A name has no row. The locks are those of the transaction, so that a pooler may sit in between.
    if session.get_bind().dialect.name == "postgresql" and (
        keys := sorted(map(_lock_key, _names_in(booked)))
    ):
        key = func.unnest(cast(keys, ARRAY(BigInteger))).column_valued("key")
        session.execute(select(func.pg_advisory_xact_lock(key))).all()


def _lock_key(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


def _names_in(booked: Booked) -> set[str]:
    return {name for of_user in booked.values() for name in of_user}


def _held_by(booked: Booked) -> ColumnElement[bool]:
    """Whether a hold takes one of these users or names."""
    of_users = select(HeldTime.hold_id).where(HeldTime.user_id.in_(booked))
    of_names = select(HeldName.hold_id).where(HeldName.name.in_(_names_in(booked)))
    return or_(Hold.id.in_(of_users), Hold.id.in_(of_names))


def _overlapping_each(
    session: Session,
    booked: Booked,
    new: NewHold,
    now: int,
    usual: tuple[int, int],
    margins: Mapping[int, tuple[int, int]],
) -> Overlapping:
    """The held time that overlaps a new hold, with the lengths that count for each user."""
    longest = [max(each) for each in zip(usual, *margins.values(), strict=True)]
    found = _overlapping(session, booked, new.starts - longest[1], new.ends + longest[0], now)
    overlapping: Overlapping = {}
    for user_id, times in found.items():
        before, after = margins.get(user_id, usual)
        starts, ends = new.starts - after, new.ends + before
        if some := [each for each in times if each.starts < ends and each.ends > starts]:
            overlapping[user_id] = some
    return overlapping


def _overlapping(session: Session, booked: Booked, starts: int, ends: int, now: int) -> Overlapping:
    """The held time under each user's names that overlaps ``[starts, ends)``."""
    all_names = [*map(user_name, booked), *_names_in(booked)]
    held = _held(session, all_names, Hold.starts < ends, Hold.ends > starts, Hold.expires_at > now)
    found: Overlapping = {}
    for user_id, of_user in booked.items():
        times = {each for name in (user_name(user_id), *of_user) for each in held.get(name, ())}
        if times:
            found[user_id] = sorted(times, key=lambda each: (each.starts, each.hold))
    return found


def _held(
    session: Session, under: Collection[str], *conditions: ColumnExpressionArgument[bool]
) -> dict[str, list[ActiveTime]]:
    """The time of the holds that take each of these names, in one statement."""
    users = [int(each.removeprefix(USER)) for each in under if each.startswith(USER)]
    others = [each for each in under if not each.startswith(USER)]
    times = Hold.id, Hold.starts, Hold.ends, Hold.expires_at
    of_users = (
        select((literal(USER) + cast(HeldTime.user_id, String)).label("name"), *times)
        .join(HeldTime, HeldTime.hold_id == Hold.id)
        .where(HeldTime.user_id.in_(users), *conditions)
    )
    of_names = (
        select(HeldName.name, *times)
        .join(HeldName, HeldName.hold_id == Hold.id)
        .where(HeldName.name.in_(others), *conditions)
        # Two users of a hold may book one calendar.
        .distinct()
    )
    found: dict[str, list[ActiveTime]] = {}
    for name, hold, starts, ends, expires_at in session.execute(union_all(of_users, of_names)):
        found.setdefault(name, []).append(ActiveTime(hold, starts, ends, expires_at))
    return found


def _remove_expired(session: Session, some: ColumnElement[bool], now: int) -> int:
    """Delete those holds among some that have expired; an event is recorded for promised ones."""
    expired = select(Hold.id).where(some, Hold.expires_at <= now).order_by(Hold.id)
    # Locked in one order, so that concurrent deletions do not deadlock.
    ids = session.scalars(expired.with_for_update()).all()
    if not ids:
        return 0
    views = _load(session, [Hold.id.in_(ids), Hold.promised])
    gone = set(session.scalars(delete(Hold).where(Hold.id.in_(ids)).returning(Hold.id)))
    webhook_events.record_holds(
        session, WebhookEvent.HOLD_EXPIRED, [view for view in views if view.id in gone]
    )
    return len(gone)


def _views(
    session: Session,
    conditions: Sequence[ColumnExpressionArgument[bool]],
    organization_id: int | None,
    now: int,
) -> list[HoldView]:
    conditions = [*conditions, Hold.promised, Hold.expires_at > now]
    if organization_id is not None:
        # A user who has left since is not named.
        members = select(Membership.user_id).where(Membership.organization_id == organization_id)
        conditions += [Hold.organization_id == organization_id, HeldTime.user_id.in_(members)]
    return _load(session, conditions)


def _load(session: Session, conditions: Sequence[ColumnExpressionArgument[bool]]) -> list[HoldView]:
    query = (
        select(Hold, User.custom_id, User.id)
        .join(HeldTime, HeldTime.hold_id == Hold.id)
        .join(User, User.id == HeldTime.user_id)
        .where(*conditions)
        .order_by(Hold.starts, Hold.id, User.custom_id)
    )
    rows: dict[str, tuple[Hold, list[tuple[str, int]]]] = {}
    for hold, user, number in session.execute(query):
        rows.setdefault(hold.id, (hold, []))[1].append((user, number))
    return [
        HoldView(
            hold.id,
            tuple(user for user, _ in users),
            hold.starts,
            hold.ends,
            hold.expires_at,
            hold.note,
            hold.claim is not None,
            hold.organization_id,
            tuple(number for _, number in users),
        )
        for hold, users in rows.values()
    ]

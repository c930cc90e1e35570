"""API keys, looked up by hash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from sqlalchemy import Select, and_, case, func, literal, or_, select, update
from sqlalchemy.orm import Session, selectinload

from store.coordination.shares import NO_OWN, OwnQuotas
from store.security.crypto import digest, new_key, visible_part
from store.sql.database import UNCACHED
from store.sql.keyset import Order, Position, Rows, fetch
from store.sql.models import ApiKey, Organization, UtcDateTime, now
from store.sql.queries.issuers import Issuer

# Requests a minute, of a single key.
MAX_RATE_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Caller:
    """The rights of a valid key. ``organization_id`` is None for a key of all organizations.

    ``replaced``: a rotation has replaced the key, and ``expires_at`` is the end of its overlap.
    ``rate_limit`` is in requests a minute, None is the installation's. ``quotas`` are the organization's own.

    A person who has signed in to the dashboard has the ``id`` 0, an ``administrator_id`` and the
    ``security_stamp`` of their session.
    """

    id: int
    visible: str
    organization_id: int | None
    read_only: bool
    shows_tokens: bool
    expires_at: datetime | None = None
    manages_keys: bool = False
    rate_limit: int | None = None
    administrator_id: int | None = None
    security_stamp: str | None = None
    replaced: bool = False
    quotas: OwnQuotas = field(default_factory=lambda: NO_OWN, hash=False)

    @property
    def issuer(self) -> Issuer:
        """The caller as the issuer of a link."""
        return Issuer(self.id or None, self.administrator_id, self.security_stamp)

    @property
    def expired(self) -> bool:
        """Whether the key has expired since it was looked up."""
        return self.expires_at is not None and self.expires_at <= now()


def create(
    session: Session,
    *,
    prefix: str,
    name: str,
    organization_id: int | None = None,
    read_only: bool = False,
    shows_tokens: bool = False,
    manages_keys: bool = False,
    expires_at: datetime | None = None,
    rate_limit: int | None = None,
) -> str:
    """Create a key and return it. It is stored as a hash, so it cannot be shown again."""
    _, key = add(
        session,
        prefix=prefix,
        name=name,
        organization_id=organization_id,
        read_only=read_only,
        shows_tokens=shows_tokens,
        manages_keys=manages_keys,
        expires_at=expires_at,
        rate_limit=rate_limit,
    )
    return key


def add(session: Session, *, prefix: str, **fields: Any) -> tuple[ApiKey, str]:
    """Create a key with these columns; returns its row and the key, as ``create`` does."""
    key = new_key(prefix)
    row = ApiKey(visible=visible_part(key, prefix), digest=digest(key), **fields)
    session.add(row)
    session.flush()
    return row, key


def rotate(session: Session, row: ApiKey, *, prefix: str, overlap: timedelta) -> str:
    """Replace a key and return the new one; its rights and its id stay.

    The replaced key is valid until ``overlap`` has passed. A second rotation within that time ends the oldest
    key.
    """
    # A concurrent rotation waits here, and then keeps the key that this one has returned.
    session.refresh(row, with_for_update=True)
    key = new_key(prefix)
    row.previous_digest = row.digest if overlap else None
    row.previous_until = now() + overlap if overlap else None
    row.visible, row.digest = visible_part(key, prefix), digest(key)
    session.flush()
    return key


def caller(session: Session, key: str) -> Caller | None:
    """The rights of ``key``; None when it is unknown, revoked, expired, or replaced without an overlap."""
    hashed = digest(key)
    in_overlap = and_(ApiKey.previous_digest == hashed, ApiKey.previous_until > now())
    query = select(ApiKey, Organization.quotas).join(ApiKey.organization, isouter=True)
    found = session.execute(
        query.where(or_(ApiKey.digest == hashed, in_overlap), ApiKey.in_force())
    ).one_or_none()
    if found is None:
        return None
    row, quotas = found
    replaced = row.digest != hashed
    ends = [row.expires_at, row.previous_until if replaced else None]
    return Caller(
        row.id,
        row.visible,
        row.organization_id,
        row.read_only,
        row.shows_tokens,
        min((each for each in ends if each is not None), default=None),
        row.manages_keys,
        row.rate_limit,
        replaced=replaced,
        quotas=quotas or NO_OWN,
    )


def find(
    session: Session, key_id: int, *, organization_id: int | None, to_change: bool = False
) -> ApiKey | None:
    """A valid key with its organization; one that is bound to ``organization_id``, if that is given."""
    query = _reached(organization_id).where(ApiKey.id == key_id).options(selectinload(ApiKey.organization))
    return session.scalars(query.with_for_update(of=ApiKey) if to_change else query).one_or_none()


def reached(
    session: Session, *, organization_id: int | None, after: int | None = None, limit: int | None = None
) -> Sequence[ApiKey]:
    """Valid keys with their organization, by id from the one after ``after``; as for ``find``."""
    query = _reached(organization_id).options(selectinload(ApiKey.organization)).order_by(ApiKey.id)
    if after is not None:
        query = query.where(ApiKey.id > after)
    return session.scalars(query.limit(limit)).all()


def _reached(organization_id: int | None) -> Select[ApiKey]:
    query = select(ApiKey).where(ApiKey.in_force())
    return query if organization_id is None else query.where(ApiKey.organization_id == organization_id)


def count(session: Session, organization_id: int) -> int:
    """The number of valid keys that are bound to an organization."""
    query = select(func.count()).select_from(ApiKey)
    return session.scalars(query.where(ApiKey.organization_id == organization_id, ApiKey.in_force())).one()


def every(session: Session) -> Sequence[ApiKey]:
    """All keys with their organization, the oldest first."""
    query = select(ApiKey).options(selectinload(ApiKey.organization)).order_by(ApiKey.id)
    return session.scalars(query).all()


def count_in_force(session: Session) -> int:
    """The number of keys that are valid now."""
    return session.scalars(select(func.count()).select_from(ApiKey).where(ApiKey.in_force())).one()


def note_use(session: Session, moments: Mapping[int, datetime]) -> None:
    """Store when each key was last used, unless another process has stored a later time."""
    used = case({key: literal(at, UtcDateTime()) for key, at in moments.items()}, value=ApiKey.id)
    earlier = or_(ApiKey.last_used_at.is_(None), ApiKey.last_used_at < used)
    session.execute(
        update(ApiKey)
        .where(ApiKey.id.in_(moments), earlier)
        .values(last_used_at=used)
        # Processes cache a key's rights, not its last use, which is written often.
        .execution_options(**{UNCACHED: True}, synchronize_session=False)
    )


def revoke(session: Session, which: str, *, prefix: str) -> list[str]:
    """Revoke the keys of that name or visible part, or one complete key; returns their visible parts."""
    same = or_(
        ApiKey.name == which,
        ApiKey.visible == visible_part(which, prefix),
        # The visible part depends on the prefix that was configured when the key was created.
        ApiKey.digest == digest(which),
        ApiKey.previous_digest == digest(which),
    )
    revoked = update(ApiKey).where(same, ApiKey.revoked_at.is_(None)).values(revoked_at=now())
    return list(session.scalars(revoked.returning(ApiKey.visible)))


def page(
    session: Session,
    text: str = "",
    *,
    in_force: bool,
    expires_before: datetime | None = None,
    organization_id: int | None = None,
    order: str = "created",
    descending: bool = True,
    position: Position | None = None,
    limit: int | None = None,
) -> Rows[ApiKey]:
    """A page of keys with their organization: valid ones, or ended ones.

    ``text`` is a part of the name or of the visible part. ``organization_id`` limits to keys bound to it,
    ``expires_before`` to keys that expire until then.
    """
    query = select(ApiKey).where(ApiKey.in_force() if in_force else ~ApiKey.in_force())
    if expires_before is not None:
        query = query.where(ApiKey.expires_at <= expires_before)
    if text:
        # Wildcards of LIKE are escaped.
        parts = (column.icontains(text, autoescape=True) for column in (ApiKey.name, ApiKey.visible))
        query = query.where(or_(*parts))
    if organization_id is not None:
        query = query.where(ApiKey.organization_id == organization_id)
    return fetch(
        session,
        query,
        ORDERS[order],
        descending=descending,
        position=position,
        limit=limit,
        options=[selectinload(ApiKey.organization)],
    )


def revoke_one(session: Session, key_id: int) -> str | None:
    """Revoke one key; returns its visible part, or None when it is not valid."""
    ended = update(ApiKey).where(ApiKey.id == key_id, ApiKey.in_force()).values(revoked_at=now())
    return session.scalars(ended.returning(ApiKey.visible)).one_or_none()


def _by_moment(column: Any, name: str, otherwise: datetime) -> Order:
    """By a time; ``otherwise`` stands for a key without one."""
    return Order(
        ApiKey.id,
        attrgetter("id"),
        int,
        value=func.coalesce(column, literal(otherwise, UtcDateTime())),
        value_of=lambda row: getattr(row, name) or otherwise,
        parse_value=datetime.fromisoformat,
    )


# The orders of lists of keys, by the name of their column. Keys are created in the order of their ids.
ORDERS: Mapping[str, Order] = {
    "created": Order(ApiKey.id, attrgetter("id"), int),
    "name": Order(ApiKey.id, attrgetter("id"), int, value=ApiKey.name, value_of=attrgetter("name")),
    "used": _by_moment(ApiKey.last_used_at, "last_used_at", datetime(1970, 1, 1, tzinfo=UTC)),
    "expires": _by_moment(ApiKey.expires_at, "expires_at", datetime(9999, 1, 1, tzinfo=UTC)),
}

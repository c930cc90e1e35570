"""API keys, looked up by hash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from sqlalchemy import case, func, literal, or_, select, update
from sqlalchemy.orm import Session, selectinload

from store.security.crypto import digest, new_key, visible_part
from store.sql.database import UNCACHED
from store.sql.keyset import Order, Position, Rows, fetch
from store.sql.models import ApiKey, UtcDateTime, now
from store.sql.queries.issuers import Issuer


@dataclass(frozen=True, slots=True)
class Caller:
    """The rights of a valid key. ``organization_id`` is None for a key of all organizations.

    A person who has signed in to the dashboard has the ``id`` 0, an ``administrator_id`` and the
    ``security_stamp`` of their session.
    """

    id: int
    visible: str
    organization_id: int | None
    read_only: bool
    shows_tokens: bool
    expires_at: datetime | None = None
    administrator_id: int | None = None
    security_stamp: str | None = None

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
    expires_at: datetime | None = None,
) -> str:
    """Create a key and return it. It is stored as a hash, so it cannot be shown again."""
    key = new_key(prefix)
    session.add(
        ApiKey(
            name=name,
            visible=visible_part(key, prefix),
            digest=digest(key),
            organization_id=organization_id,
            read_only=read_only,
            shows_tokens=shows_tokens,
            expires_at=expires_at,
        )
    )
    return key


def caller(session: Session, key: str) -> Caller | None:
    """The rights of ``key``; None when it is unknown, revoked or expired."""
    row = session.scalars(select(ApiKey).where(ApiKey.digest == digest(key), ApiKey.in_force())).one_or_none()
    if row is None:
        return None
    return Caller(row.id, row.visible, row.organization_id, row.read_only, row.shows_tokens, row.expires_at)


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


def count(session: Session, organization_id: int) -> int:
    """The number of valid keys that are bound to an organization."""
    query = select(func.count()).select_from(ApiKey)
    return session.scalars(query.where(ApiKey.organization_id == organization_id, ApiKey.in_force())).one()


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

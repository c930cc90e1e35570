"""API keys: made once, looked up by hash on every request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session, selectinload

from store.api_keys import digest, new_key, visible_part
from store.models import ApiKey, now


@dataclass(frozen=True, slots=True)
class Caller:
    """What a valid key may do. ``organization_id`` None reaches every organization."""

    id: int
    visible: str
    organization_id: int | None
    read_only: bool
    shows_tokens: bool
    expires_at: datetime | None = None

    @property
    def expired(self) -> bool:
        """Whether the key has ended since it was looked up."""
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
    """Make a key and return it: the only moment at which it can be seen whole."""
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
    """Who calls with ``key``; None when it is unknown, revoked or expired."""
    query = select(ApiKey).where(
        ApiKey.digest == digest(key),
        ApiKey.revoked_at.is_(None),
        or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > now()),
    )
    row = session.scalars(query).one_or_none()
    if row is None:
        return None
    return Caller(row.id, row.visible, row.organization_id, row.read_only, row.shows_tokens, row.expires_at)


def every(session: Session) -> Sequence[ApiKey]:
    """All keys with their organization, the oldest first."""
    query = select(ApiKey).options(selectinload(ApiKey.organization)).order_by(ApiKey.id)
    return session.scalars(query).all()


def revoke(session: Session, which: str, *, prefix: str) -> int:
    """Revoke the keys of that name or visible part, or the one that is given whole; returns how many."""
    same = or_(
        ApiKey.name == which,
        ApiKey.visible == visible_part(which, prefix),
        # One made under another prefix shows another part.
        ApiKey.digest == digest(which),
    )
    result = session.execute(
        update(ApiKey).where(same, ApiKey.revoked_at.is_(None)).values(revoked_at=now()).returning(ApiKey.id)
    )
    return len(result.all())

"""API keys: made once, looked up by hash on every request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, and_, case, func, literal, or_, select, update
from sqlalchemy.orm import Session, selectinload

from store.security.api_keys import digest, new_key, visible_part
from store.sql.cache_invalidation import UNREMEMBERED
from store.sql.models import ApiKey, UtcDateTime, now


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
    row = session.scalars(select(ApiKey).where(ApiKey.digest == digest(key), _in_force())).one_or_none()
    if row is None:
        return None
    return Caller(row.id, row.visible, row.organization_id, row.read_only, row.shows_tokens, row.expires_at)


def is_in_force(session: Session, key_id: int) -> bool:
    """Whether a key is accepted now: neither deleted, nor revoked, nor expired."""
    query = select(ApiKey.id).where(ApiKey.id == key_id, _in_force())
    return session.scalars(query).one_or_none() is not None


def every(session: Session) -> Sequence[ApiKey]:
    """All keys with their organization, the oldest first."""
    query = select(ApiKey).options(selectinload(ApiKey.organization)).order_by(ApiKey.id)
    return session.scalars(query).all()


def count_in_force(session: Session) -> int:
    """How many keys are accepted now."""
    return session.scalars(select(func.count()).select_from(ApiKey).where(_in_force())).one()


def note_use(session: Session, moments: Mapping[int, datetime]) -> None:
    """Write down when each key was used last; what another process knows better stays."""
    used = case({key: literal(at, UtcDateTime()) for key, at in moments.items()}, value=ApiKey.id)
    earlier = or_(ApiKey.last_used_at.is_(None), ApiKey.last_used_at < used)
    session.execute(
        update(ApiKey)
        .where(ApiKey.id.in_(moments), earlier)
        .values(last_used_at=used)
        # What a key may do is remembered, not when it was used; and that is written all the time.
        .execution_options(**{UNREMEMBERED: True}, synchronize_session=False)
    )


def revoke(session: Session, which: str, *, prefix: str) -> list[str]:
    """Revoke the keys of that name or visible part, or the one given whole; returns their visible parts."""
    same = or_(
        ApiKey.name == which,
        ApiKey.visible == visible_part(which, prefix),
        # One made under another prefix shows another part.
        ApiKey.digest == digest(which),
    )
    revoked = update(ApiKey).where(same, ApiKey.revoked_at.is_(None)).values(revoked_at=now())
    return list(session.scalars(revoked.returning(ApiKey.visible)))


def page(
    session: Session,
    *,
    in_force: bool,
    organization_id: int | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> Sequence[ApiKey]:
    """Keys with their organization, the newest first, those before ``before``: in force, or those that ended.

    ``organization_id`` leaves those that are bound to it.
    """
    query = select(ApiKey).options(selectinload(ApiKey.organization)).order_by(ApiKey.id.desc())
    query = query.where(_in_force() if in_force else ~_in_force())
    if organization_id is not None:
        query = query.where(ApiKey.organization_id == organization_id)
    if before is not None:
        query = query.where(ApiKey.id < before)
    return session.scalars(query.limit(limit)).all()


def count(session: Session, organization_id: int) -> int:
    """How many keys in force are bound to an organization."""
    query = select(func.count()).select_from(ApiKey)
    return session.scalars(query.where(ApiKey.organization_id == organization_id, _in_force())).one()


def end(session: Session, key_id: int) -> str | None:
    """Revoke one key; returns its visible part, or None when it is not in force."""
    ended = update(ApiKey).where(ApiKey.id == key_id, _in_force()).values(revoked_at=now())
    return session.scalars(ended.returning(ApiKey.visible)).one_or_none()


def _in_force() -> ColumnElement[bool]:
    lasts = or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > now())
    return and_(ApiKey.revoked_at.is_(None), lasts)

"""Administrators of the dashboard, and their invitations."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement, and_, delete, func, select, update
from sqlalchemy.orm import Session

from store.sql.models import Administrator, Invitation, now

INVITATION_LIFETIME = timedelta(days=1)
SECRET_BYTES = 32


def create(session: Session, *, name: str, password_hash: str) -> Administrator:
    """Store a new administrator.

    :raise IntegrityError: when the name is taken
    """
    row = Administrator(name=name, password_hash=password_hash)
    session.add(row)
    session.flush()
    return row


def find(session: Session, name: str) -> Administrator | None:
    """The administrator of that name."""
    return session.scalars(select(Administrator).where(Administrator.name == name)).one_or_none()


def every(session: Session) -> Sequence[Administrator]:
    """All administrators, the oldest first."""
    return session.scalars(select(Administrator).order_by(Administrator.id)).all()


def count(session: Session) -> int:
    """The number of administrators."""
    return session.scalars(select(func.count()).select_from(Administrator)).one()


def renew_password(session: Session, administrator_id: int, password_hash: str) -> None:
    """Store the hash of a new password, and delete every open invitation.

    An intruder who knew the old password may have created one.
    """
    change_password(session, administrator_id, password_hash)
    session.execute(delete(Invitation))


def change_password(session: Session, administrator_id: int, password_hash: str) -> None:
    """Store a new hash of the same password, without deleting invitations."""
    session.execute(
        update(Administrator).where(Administrator.id == administrator_id).values(password_hash=password_hash)
    )


def remove(session: Session, administrator_id: int) -> None:
    """Delete an administrator, their sessions and every open invitation: they could return by their own."""
    session.execute(delete(Administrator).where(Administrator.id == administrator_id))
    session.execute(delete(Invitation))


def invite(session: Session) -> str:
    """Create an invitation; returns its secret, which is not stored. Expired invitations are deleted."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    session.execute(delete(Invitation).where(Invitation.expires_at <= now()))
    session.add(Invitation(digest=_digest(secret), expires_at=now() + INVITATION_LIFETIME))
    return secret


def invited(session: Session, secret: str) -> bool:
    """Whether an invitation is still valid."""
    good = select(Invitation.digest).where(_good(secret))
    return session.scalars(good).one_or_none() is not None


def accept(session: Session, secret: str) -> bool:
    """Use up an invitation; False when it is no longer valid. Of concurrent calls, one succeeds."""
    used = delete(Invitation).where(_good(secret)).returning(Invitation.digest)
    return session.scalars(used).one_or_none() is not None


def _good(secret: str) -> ColumnElement[bool]:
    return and_(Invitation.digest == _digest(secret), Invitation.expires_at > now())


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()

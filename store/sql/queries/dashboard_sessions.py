"""Sessions of administrators in the dashboard, one for each browser."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, delete, select, update
from sqlalchemy.orm import Session

from store.security.crypto import digest
from store.sql.database import UNCACHED
from store.sql.models import Administrator, DashboardSession, Identity, Role, now

# A session lasts two weeks at most, or two days without a request.
LIFETIME = timedelta(days=14)
IDLE_LIFETIME = timedelta(days=2)
# Precision of ``seen_at``: not every page view writes it.
SEEN_STEP = timedelta(minutes=1)
SECRET_BYTES = 32


class SignedIn(NamedTuple):
    """A live session and the person who signed in.

    ``confirmed_until``: see ``Identity``; None for a person with a password.
    """

    id: str
    administrator_id: int
    name: str
    role: Role
    security_stamp: str
    seen_at: datetime
    expires_at: datetime
    confirmed_until: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether it has expired since it was looked up."""
        ends = (self.expires_at, self.seen_at + IDLE_LIFETIME, self.confirmed_until or self.expires_at)
        return min(ends) <= now()


def begin(session: Session, administrator_id: int, *, address: str, agent: str) -> str:
    """Create a session; returns the secret for the browser's cookie. Expired sessions are deleted."""
    moment = now()
    session.execute(delete(DashboardSession).where(~_lives()))
    secret = secrets.token_urlsafe(SECRET_BYTES)
    session.add(
        DashboardSession(
            id=secrets.token_hex(8),
            digest=digest(secret),
            administrator_id=administrator_id,
            expires_at=moment + LIFETIME,
            address=address[:64],
            agent=agent[:256],
        )
    )
    return secret


def load(session: Session, secret: str) -> SignedIn | None:
    """The live session with this secret."""
    # Columns only: every page needs it, and loading ORM objects would take three times as long.
    query = (
        select(
            DashboardSession.id,
            DashboardSession.administrator_id,
            Administrator.name,
            Administrator.role,
            Administrator.security_stamp,
            DashboardSession.seen_at,
            DashboardSession.expires_at,
            Identity.confirmed_until,
        )
        .join(Administrator, Administrator.id == DashboardSession.administrator_id)
        .outerjoin(Identity, Identity.administrator_id == Administrator.id)
        .where(DashboardSession.digest == digest(secret), _lives())
    )
    row = session.execute(query).one_or_none()
    if row is None:
        return None
    session_id, administrator_id, name, role, stamp, seen_at, expires_at, confirmed = row
    return SignedIn(session_id, administrator_id, name, Role(role), stamp, seen_at, expires_at, confirmed)


def seen(session: Session, session_id: str) -> None:
    """Record that a session was used just now."""
    used = update(DashboardSession).where(DashboardSession.id == session_id).values(seen_at=now())
    # Processes cache that the session is live, which has not changed.
    session.execute(used.execution_options(**{UNCACHED: True}))


def of_administrator(session: Session, administrator_id: int) -> Sequence[DashboardSession]:
    """The live sessions of an administrator, the most recently used first."""
    query = (
        select(DashboardSession)
        .where(DashboardSession.administrator_id == administrator_id, _lives())
        .order_by(DashboardSession.seen_at.desc(), DashboardSession.id)
    )
    return session.scalars(query).all()


def end(session: Session, administrator_id: int, session_id: str) -> bool:
    """End one session of an administrator; returns whether it existed."""
    gone = delete(DashboardSession).where(
        DashboardSession.id == session_id, DashboardSession.administrator_id == administrator_id
    )
    return session.scalars(gone.returning(DashboardSession.id)).one_or_none() is not None


def end_others(session: Session, administrator_id: int, *, but: str | None) -> int:
    """End all sessions of an administrator but one; returns how many."""
    gone = delete(DashboardSession).where(
        DashboardSession.administrator_id == administrator_id, DashboardSession.id != (but or "")
    )
    return len(session.scalars(gone.returning(DashboardSession.id)).all())


def _lives() -> ColumnElement[bool]:
    moment = now()
    return and_(DashboardSession.expires_at > moment, DashboardSession.seen_at > moment - IDLE_LIFETIME)

"""The people who sign in to the dashboard, their roles, and their invitations."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update
from sqlalchemy.orm import Session

from store.security.crypto import digest
from store.sql.models import Administrator, Invitation, Role, now
from store.sql.queries import dashboard_sessions, issuers
from store.sql.queries.issuers import Issuer

INVITATION_LIFETIME = timedelta(days=1)
SECRET_BYTES = 32
MAX_ID = 2**31 - 1


class LastAdministrator(Exception):
    """The last administrator is neither removed nor given another role."""


def create(
    session: Session, *, name: str, password_hash: str, role: Role = Role.ADMINISTRATOR
) -> Administrator:
    """Store a new person.

    :raise IntegrityError: when the name is taken
    """
    row = Administrator(name=name, password_hash=password_hash, role=role)
    session.add(row)
    session.flush()
    return row


def find(session: Session, name: str) -> Administrator | None:
    """The person of that name."""
    return session.scalars(select(Administrator).where(Administrator.name == name)).one_or_none()


def load(session: Session, administrator_id: int) -> Administrator | None:
    """The person with that internal id."""
    # Ids come from addresses of pages, and PostgreSQL rejects one that its column cannot hold.
    return session.get(Administrator, administrator_id) if administrator_id <= MAX_ID else None


def ids(session: Session, names: Collection[str]) -> dict[str, int]:
    """The internal ids of the people with these names."""
    rows = session.execute(select(Administrator.name, Administrator.id).where(Administrator.name.in_(names)))
    return {row.name: row.id for row in rows}


def every(session: Session) -> Sequence[Administrator]:
    """All people, the oldest first."""
    return session.scalars(select(Administrator).order_by(Administrator.id)).all()


def count(session: Session) -> int:
    """The number of people with the role of an administrator."""
    counted = select(func.count()).where(Administrator.role == Role.ADMINISTRATOR)
    return session.scalars(counted).one()


def change_password(
    session: Session, administrator_id: int, password_hash: str, *, keep_session: str | None = None
) -> None:
    """Store the hash of a new password, end all sessions but one, and withdraw every link of the person.

    An intruder who knew the old password may have made one.
    """
    session.execute(
        update(Administrator).where(Administrator.id == administrator_id).values(password_hash=password_hash)
    )
    dashboard_sessions.end_others(session, administrator_id, but=keep_session)
    issuers.withdraw_links(session, administrator_id)


def rehash_password(session: Session, administrator_id: int, verified_hash: str, new_hash: str) -> None:
    """Replace the hash of a password that was verified, unless the password has changed meanwhile."""
    row = update(Administrator).where(
        Administrator.id == administrator_id, Administrator.password_hash == verified_hash
    )
    session.execute(row.values(password_hash=new_hash))


def change_role(session: Session, administrator_id: int, role: Role, *, keep_one: bool = True) -> None:
    """Give a person another role; that of their browsers changes at once.

    A person who loses rights loses every link that they have made. ``keep_one`` is False when the directory
    decides who is an administrator.

    :raise LastAdministrator: for the last administrator
    """
    if keep_one and role is not Role.ADMINISTRATOR:
        _keep_an_administrator(session, without=administrator_id)
    person = Administrator.id == administrator_id
    old_role = session.scalars(select(Administrator.role).where(person)).one()
    if not role.includes(Role(old_role)):
        issuers.withdraw_links(session, administrator_id)
    session.execute(update(Administrator).where(person).values(role=role))


def remove(session: Session, administrator_id: int) -> None:
    """Delete a person, their sessions and every link that they have made: they could return by their own.

    :raise LastAdministrator: for the last administrator
    """
    _keep_an_administrator(session, without=administrator_id)
    issuers.withdraw_links(session, administrator_id)
    session.execute(delete(Administrator).where(Administrator.id == administrator_id))


def _keep_an_administrator(session: Session, *, without: int) -> None:
    # Locked: of two administrators who remove each other at the same moment, one stays. After the wait,
    # PostgreSQL reads the rows again.
    with_role = select(Administrator.id).where(Administrator.role == Role.ADMINISTRATOR)
    ids = session.scalars(with_role.order_by(Administrator.id).with_for_update()).all()
    if list(ids) == [without]:
        raise LastAdministrator


def invite(session: Session, role: Role = Role.ADMINISTRATOR, *, by: Issuer | None = None) -> str:
    """Create an invitation; returns its secret, which is not stored. Expired invitations are deleted.

    ``by`` is the person who makes it; None is the command line.
    """
    issuer = by or Issuer()
    secret = secrets.token_urlsafe(SECRET_BYTES)
    session.execute(delete(Invitation).where(Invitation.expires_at <= now()))
    session.add(
        Invitation(
            digest=digest(secret),
            role=role,
            administrator_id=issuer.administrator_id,
            security_stamp=issuer.security_stamp,
            expires_at=now() + INVITATION_LIFETIME,
        )
    )
    return secret


def invited(session: Session, secret: str) -> Role | None:
    """The role that an invitation gives; None when it is no longer valid."""
    role = session.scalars(select(Invitation.role).where(_good(secret))).one_or_none()
    return None if role is None else Role(role)


def accept(session: Session, secret: str) -> Role | None:
    """Use up an invitation; None when it is no longer valid. Of concurrent calls, one succeeds."""
    used = delete(Invitation).where(_good(secret)).returning(Invitation.role)
    role = session.scalars(used).one_or_none()
    return None if role is None else Role(role)


def _good(secret: str) -> ColumnElement[bool]:
    may_still = Administrator.may_still(
        Invitation.administrator_id, Invitation.security_stamp, Role.ADMINISTRATOR
    )
    return and_(
        Invitation.digest == digest(secret),
        Invitation.expires_at > now(),
        or_(Invitation.administrator_id.is_(None), may_still),
    )

"""The accounts at the identity provider of people who sign in by OpenID Connect."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from store.security.crypto import Keyring
from store.sql.models import Administrator, DashboardSession, Identity, Role, now
from store.sql.queries import administrators, audit, issuers

# The actor of what the directory decides.
DIRECTORY = "identity provider"
# A name that is taken gets a number, up to this one.
MAX_NAMESAKES = 100


class NameTaken(Exception):
    """Every name that the person could have is another person's."""


def find(session: Session, issuer: str, subject: str) -> Administrator | None:
    """The person with an account at the identity provider."""
    joined = select(Administrator).join(Identity, Identity.administrator_id == Administrator.id)
    return session.scalars(joined.where(Identity.issuer == issuer, Identity.subject == subject)).one_or_none()


def load(session: Session, administrator_id: int) -> Identity | None:
    """The account of a person; None for a person with a password."""
    return session.get(Identity, administrator_id)


def administrator_ids(session: Session) -> set[int]:
    """The people who sign in by OpenID Connect."""
    return set(session.scalars(select(Identity.administrator_id)))


def create(
    session: Session, *, issuer: str, subject: str, name: str, role: Role, until: datetime
) -> Administrator:
    """Store a new person.

    A person with a password keeps the name: no account of a directory becomes another person's by its name.

    :raise NameTaken: when too many people have this name
    """
    numbered = (f"{name} ({number})" for number in range(2, MAX_NAMESAKES))
    for each in (name, *numbered):
        if administrators.find(session, each) is None:
            person = administrators.create(session, name=each, password_hash="", role=role)
            session.add(
                Identity(administrator_id=person.id, issuer=issuer, subject=subject, confirmed_until=until)
            )
            session.flush()
            return person
    raise NameTaken


def confirm(
    session: Session,
    keyring: Keyring,
    administrator_id: int,
    *,
    refresh_token: str | None,
    until: datetime,
) -> None:
    """Record that the provider has just confirmed an account, and its new refresh token."""
    sealed = None
    if refresh_token is not None:
        sealed = keyring.encrypt(refresh_token, associated_data(administrator_id))
    session.execute(
        update(Identity)
        .where(Identity.administrator_id == administrator_id)
        .values(sealed_refresh_token=sealed, checked_at=now(), confirmed_until=until)
    )


def due(session: Session, issuer: str, *, before: datetime) -> Sequence[Identity]:
    """The accounts that were last checked before a moment and can be checked, the longest unchecked first."""
    query = select(Identity).where(
        Identity.issuer == issuer,
        Identity.sealed_refresh_token.is_not(None),
        Identity.checked_at <= before,
    )
    return session.scalars(query.order_by(Identity.checked_at)).all()


def refresh_token(identity: Identity, keyring: Keyring) -> str:
    """The refresh token of an account that has one.

    :raise Undecipherable: when its key is no longer on the ring
    """
    assert identity.sealed_refresh_token is not None, "only such accounts are due"
    return keyring.decrypt(identity.sealed_refresh_token, associated_data(identity.administrator_id))


def end(session: Session, administrator_id: int, *, because: str) -> None:
    """End all sessions and links of a person whose account has ended or has no role any more."""
    person = administrators.load(session, administrator_id)
    if person is None:
        return
    session.execute(delete(DashboardSession).where(DashboardSession.administrator_id == administrator_id))
    issuers.withdraw_links(session, administrator_id)
    session.execute(
        update(Identity)
        .where(Identity.administrator_id == administrator_id)
        .values(sealed_refresh_token=None, checked_at=now(), confirmed_until=now())
    )
    changes = {"because": (None, because)}
    audit.record(session, actor=DIRECTORY, action="endIdentity", subject=person.name, changes=changes)


def change_role(session: Session, person: Administrator, role: Role) -> None:
    """Give a person the role that the directory states."""
    if person.role == role:
        return
    old = person.role
    administrators.change_role(session, person.id, role, keep_one=False)
    changes = {"role": (old, role)}
    audit.record(session, actor=DIRECTORY, action="changeRole", subject=person.name, changes=changes)


def associated_data(administrator_id: int) -> str:
    """The associated data of an encrypted refresh token."""
    return f"identities/{administrator_id}/refresh_token"

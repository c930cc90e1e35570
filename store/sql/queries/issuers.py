"""The maker of a link, and whether the link is still valid: this module decides for every kind of link.

A link, an invitation or the state of a consent names its issuer. It is valid only while the issuer may still
make it. An API key may until it is revoked or expires. A person may until they are removed, lose the role,
change the password or lose the second factor: each of these replaces their security stamp.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from store.sql.models import Administrator, ApiKey, Invitation, Role, new_security_stamp


@dataclass(frozen=True, slots=True)
class Issuer:
    """An API key, or a person with the security stamp that they had. Without both, the maker is not known."""

    key_id: int | None = None
    administrator_id: int | None = None
    security_stamp: str | None = None


def in_force(session: Session, issuer: Issuer) -> bool:
    """Whether an issuer may connect accounts now: a key that may write, or an operator."""
    if issuer.key_id is not None:
        query = select(ApiKey.id).where(
            ApiKey.id == issuer.key_id, ApiKey.in_force(), ApiKey.read_only.is_(False)
        )
        return session.scalars(query).one_or_none() is not None
    may = Administrator.may_still(issuer.administrator_id, issuer.security_stamp, Role.OPERATOR)
    return bool(session.scalars(select(may)).one())


def withdraw_links(session: Session, administrator_id: int) -> None:
    """Make every link worthless that a person has made so far.

    Links of the command line name no maker. If the person is an administrator, open ones are deleted: they
    may have been sent to this person.
    """
    is_administrator = Administrator.id == administrator_id, Administrator.role == Role.ADMINISTRATOR
    if session.scalars(select(Administrator.id).where(*is_administrator)).one_or_none() is not None:
        session.execute(delete(Invitation).where(Invitation.administrator_id.is_(None)))
    session.execute(
        update(Administrator)
        .where(Administrator.id == administrator_id)
        .values(security_stamp=new_security_stamp())
    )

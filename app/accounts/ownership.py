"""Ownership of users: a key that is bound to an organization may not change users shared with others."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.http.auth import within
from app.http.errors import Forbidden, NotFound
from store.sql.models import User
from store.sql.queries import users

MEMBERSHIP = "remove the membership instead"
CONNECTION = "changing a connection needs an API key that is not bound to an organization"


def own_user(session: Session, custom_id: str, *, otherwise: str) -> User:
    """A user that this key may change, locked for update: one that belongs to no other organization.

    :raise NotFound: when the key does not reach the user
    :raise Forbidden: when the user belongs to another organization too; ``otherwise`` ends the message
    """
    row = users.find(session, custom_id, within=within(), to_change=True)
    if row is None:
        raise NotFound("User not found")
    if within() is not None and users.organization_ids(session, row.id) != {within()}:
        raise Forbidden(f"The user belongs to other organizations too; {otherwise}")
    return row

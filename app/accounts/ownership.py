"""Ownership of users: a key that is bound to an organization may not change users shared with others."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.http.errors import Forbidden, NotFound
from app.schemas.error_codes import Code
from store.sql.models import User
from store.sql.queries import users
from store.sql.queries.api_keys import Caller

MEMBERSHIP = "remove the membership instead"
CONNECTION = "changing a connection needs an API key that is not bound to an organization"


def own_user(session: Session, caller: Caller, custom_id: str, *, otherwise: str) -> User:
    """A user that the caller may change, locked for update: one that belongs to no other organization.

    :raise NotFound: when the caller does not reach the user
    :raise Forbidden: when the user belongs to another organization too; ``otherwise`` ends the message
    """
    own = caller.organization_id
    row = users.find(session, custom_id, organization_id=own, to_change=True)
    if row is None:
        raise NotFound("User not found", Code.USER_NOT_FOUND)
    if own is not None and users.organization_ids(session, row.id) != {own}:
        sentence = f"The user belongs to other organizations too; {otherwise}"
        raise Forbidden(sentence, Code.USER_IN_OTHER_ORGANIZATIONS)
    return row


def require_whole_service(caller: Caller, doing: str) -> None:
    """Reject a key that is bound to one organization.

    :raise Forbidden: with ``doing``, the attempted action, in its message
    """
    if caller.organization_id is not None:
        sentence = f"{doing} needs an API key that is not bound to an organization"
        raise Forbidden(sentence, Code.KEY_BOUND_TO_ORGANIZATION)

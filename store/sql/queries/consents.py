"""Whether a consent may still be finished: by the rights of now, and not those of when its link was made."""

from __future__ import annotations

from enum import Enum

from sqlalchemy.orm import Session

from store.security.oauth_states import PendingConsent
from store.sql.models import User
from store.sql.queries import api_keys, users


class Refusal(Enum):
    """Why a consent connects nothing."""

    USER_GONE = "User not found"
    KEY_GONE = "The API key that made this link is no longer in force"
    USER_SHARED = "The user belongs to other organizations too"


def check(session: Session, authorization: PendingConsent) -> User | Refusal:
    """The user to connect, locked until the transaction ends; else why the consent is refused.

    The API key has to be in force still. A key that is bound to an organization has to reach the user still,
    and no other organization may share the user.
    """
    within = authorization.within
    if authorization.key_id is not None and not api_keys.is_in_force(session, authorization.key_id):
        return Refusal.KEY_GONE
    user = users.by_number(session, authorization.user_id, within=within, to_change=True)
    if user is None:
        return Refusal.USER_GONE
    if within is not None and users.organization_ids(session, user.id) != {within}:
        return Refusal.USER_SHARED
    return user

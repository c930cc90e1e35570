"""Whether a consent may still be finished, by the current rights of the key or person that requested it."""

from __future__ import annotations

from enum import Enum

from sqlalchemy.orm import Session

from store.security.one_time_secrets import PendingConsent
from store.sql.models import User
from store.sql.queries import issuers, user_invitations, users
from store.sql.queries.issuers import Issuer


class ConsentRefusal(Enum):
    """Why a consent is refused."""

    USER_GONE = "User not found"
    KEY_GONE = "The API key that made this link is no longer in force"
    PERSON_GONE = "This link was withdrawn; ask the person who sent it for a new one"
    INVITATION_GONE = "This invitation has expired, or was used or withdrawn"
    USER_SHARED = "The user belongs to other organizations too"


def check(session: Session, consent: PendingConsent) -> User | ConsentRefusal:
    """The user to connect, locked until the transaction ends; else why the consent is refused.

    The API key or the person who made the link must still be in force. If the key is bound to an
    organization, the user must still be a member there, and of no other organization. An invitation must
    still be open.
    """
    organization_id = consent.within
    issuer = Issuer(consent.key_id, consent.administrator_id, consent.security_stamp)
    if not issuers.in_force(session, issuer):
        return ConsentRefusal.PERSON_GONE if issuer.key_id is None else ConsentRefusal.KEY_GONE
    user = users.by_number(session, consent.user_id, organization_id=organization_id, to_change=True)
    if user is None:
        return ConsentRefusal.USER_GONE
    # After the lock, so that of two consents by one invitation the second finds it used.
    invitation = consent.invitation_id
    if invitation is not None and not user_invitations.is_open(session, invitation):
        return ConsentRefusal.INVITATION_GONE
    if organization_id is not None and users.organization_ids(session, user.id) != {organization_id}:
        return ConsentRefusal.USER_SHARED
    return user

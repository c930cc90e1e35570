"""Invitations of users, links by which a person connects an account; and the check of a pending consent."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, update
from sqlalchemy.orm import Session

from store.security.crypto import digest
from store.security.one_time_secrets import PendingConsent
from store.sql.models import (
    Membership,
    OAuthConnection,
    Organization,
    User,
    UserInvitation,
    now,
)
from store.sql.queries import issuers, users
from store.sql.queries.issuers import Issuer

LIFETIME = timedelta(days=7)
SECRET_BYTES = 24


class InvitationState(StrEnum):
    """The state of an invitation."""

    PENDING = "pending"
    OPENED = "opened"
    CONNECTED = "connected"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """A new invitation; its secret is not stored and cannot be shown again."""

    user: str
    secret: str = field(repr=False)


class InvitationRow(NamedTuple):
    """An invitation with its user's identifier."""

    invitation: UserInvitation
    user: str

    @property
    def state(self) -> InvitationState:
        """Its state now."""
        return state(self.invitation)


class OpenedInvitation(NamedTuple):
    """An invitation that was opened, its user, and the names of the user's organizations."""

    invitation: UserInvitation
    user: User
    organizations: Sequence[str]


def make(
    session: Session, user_ids: Mapping[str, int], *, scope: str, created_by: str, issuer: Issuer
) -> list[NewInvitation]:
    """Invite users, given by identifier and internal id. Open invitations of these users are revoked.

    ``created_by`` is the name of the ``issuer`` in the audit log.
    """
    revoke_open(session, user_ids.values())
    made = []
    for custom_id, user_id in user_ids.items():
        secret = secrets.token_urlsafe(SECRET_BYTES)
        session.add(
            UserInvitation(
                id=secrets.token_hex(16),
                digest=digest(secret),
                user_id=user_id,
                scope=scope,
                created_by=created_by[:160],
                administrator_id=issuer.administrator_id,
                security_stamp=issuer.security_stamp,
                expires_at=now() + LIFETIME,
            )
        )
        made.append(NewInvitation(custom_id, secret))
    session.flush()
    return made


def find(session: Session, secret: str) -> OpenedInvitation | None:
    """The invitation of a secret, whatever its state; None for an unknown secret."""
    query = (
        select(UserInvitation, User)
        .join(User, User.id == UserInvitation.user_id)
        .where(UserInvitation.digest == digest(secret))
    )
    row = session.execute(query).one_or_none()
    if row is None:
        return None
    names = (
        select(func.coalesce(Organization.name, Organization.slug))
        .join(Membership, Membership.organization_id == Organization.id)
        .where(Membership.user_id == row.User.id)
        .order_by(Organization.slug)
    )
    return OpenedInvitation(row.UserInvitation, row.User, session.scalars(names).all())


def note_opened(session: Session, invitation_id: str) -> None:
    """Store that the page of an invitation was opened; only the first time counts."""
    unopened = and_(UserInvitation.id == invitation_id, UserInvitation.opened_at.is_(None))
    session.execute(update(UserInvitation).where(unopened).values(opened_at=now()))


def is_open(session: Session, invitation_id: str) -> bool:
    """Whether an invitation can still be used."""
    query = select(UserInvitation.id).where(UserInvitation.id == invitation_id, _open())
    return session.scalars(query).one_or_none() is not None


def use(session: Session, invitation_id: str) -> bool:
    """Use an invitation up, as an account was connected; False if it could not be used any more."""
    used = (
        update(UserInvitation)
        .where(UserInvitation.id == invitation_id, _open())
        .values(connected_at=now())
        .returning(UserInvitation.id)
    )
    return session.scalars(used).one_or_none() is not None


def revoke(session: Session, invitation_id: str) -> str | None:
    """Revoke an invitation; returns its user's identifier, or None if it could not be used any more."""
    revoked = (
        update(UserInvitation)
        .where(UserInvitation.id == invitation_id, _open())
        .values(revoked_at=now())
        .returning(UserInvitation.user_id)
    )
    user_id = session.scalars(revoked).one_or_none()
    if user_id is None:
        return None
    return session.scalars(select(User.custom_id).where(User.id == user_id)).one()


def revoke_open(session: Session, user_ids: Collection[int]) -> None:
    """Revoke the open invitations of users."""
    session.execute(
        update(UserInvitation)
        .where(UserInvitation.user_id.in_(user_ids), _open())
        .values(revoked_at=now())
        .execution_options(synchronize_session=False)
    )


def page(
    session: Session,
    *,
    state: InvitationState | None = None,
    text: str = "",
    user_id: int | None = None,
    before: tuple[datetime, str] | None = None,
    limit: int | None = None,
) -> list[InvitationRow]:
    """Invitations, the newest first, beginning before ``before``: the time and id of the previous one."""
    query = select(UserInvitation, User.custom_id).join(User, User.id == UserInvitation.user_id)
    if state is not None:
        query = query.where(_IS[state]())
    if text:
        query = query.where(User.custom_id.icontains(text, autoescape=True))
    if user_id is not None:
        query = query.where(UserInvitation.user_id == user_id)
    if before is not None:
        moment, last = before
        same = and_(UserInvitation.created_at == moment, UserInvitation.id < last)
        query = query.where(or_(UserInvitation.created_at < moment, same))
    query = query.order_by(UserInvitation.created_at.desc(), UserInvitation.id.desc())
    return [InvitationRow(*row) for row in session.execute(query.limit(limit))]


def counts(session: Session) -> dict[InvitationState, int]:
    """The number of invitations in each state."""
    columns = [func.count().filter(_IS[each]()) for each in InvitationState]
    row = session.execute(select(*columns).select_from(UserInvitation)).one()
    return dict(zip(InvitationState, row, strict=True))


def latest(session: Session, user_ids: Collection[int]) -> dict[int, UserInvitation]:
    """The newest invitation of each of these users that has any."""
    query = (
        select(UserInvitation)
        .where(UserInvitation.user_id.in_(user_ids))
        .order_by(UserInvitation.created_at, UserInvitation.id)
    )
    return {row.user_id: row for row in session.scalars(query)}


def never_connected(session: Session, organization_id: int, *, limit: int) -> dict[str, int]:
    """The members of an organization without any connection, by identifier."""
    query = (
        select(User.custom_id, User.id)
        .join(Membership, Membership.user_id == User.id)
        .where(
            Membership.organization_id == organization_id,
            ~exists().where(OAuthConnection.user_id == User.id),
        )
        .order_by(User.custom_id)
        .limit(limit)
    )
    return {row.custom_id: row.id for row in session.execute(query)}


def state(row: UserInvitation) -> InvitationState:
    """The state of an invitation now; one whose issuer may not invite any more is revoked."""
    if row.connected_at is not None:
        return InvitationState.CONNECTED
    if row.revoked_at is not None:
        return InvitationState.REVOKED
    if row.expires_at <= now():
        return InvitationState.EXPIRED
    if not row.issuer_in_force:
        return InvitationState.REVOKED
    return InvitationState.PENDING if row.opened_at is None else InvitationState.OPENED


def _open() -> ColumnElement[bool]:
    return and_(
        UserInvitation.connected_at.is_(None),
        UserInvitation.revoked_at.is_(None),
        UserInvitation.expires_at > now(),
        UserInvitation.issuer_in_force,
    )


# The same as ``state``, in SQL.
_IS: dict[InvitationState, Callable[[], ColumnElement[bool]]] = {
    InvitationState.PENDING: lambda: and_(_open(), UserInvitation.opened_at.is_(None)),
    InvitationState.OPENED: lambda: and_(_open(), UserInvitation.opened_at.is_not(None)),
    InvitationState.CONNECTED: lambda: UserInvitation.connected_at.is_not(None),
    InvitationState.EXPIRED: lambda: and_(
        UserInvitation.connected_at.is_(None),
        UserInvitation.revoked_at.is_(None),
        UserInvitation.expires_at <= now(),
    ),
    InvitationState.REVOKED: lambda: and_(
        UserInvitation.connected_at.is_(None),
        or_(
            UserInvitation.revoked_at.is_not(None),
            and_(UserInvitation.expires_at > now(), ~UserInvitation.issuer_in_force),
        ),
    ),
}


class ConsentRefusal(StrEnum):
    """Why a consent ends without a connection."""

    # The user, or the key, person or invitation that made the link.
    USER_GONE = "userGone"
    KEY_GONE = "keyGone"
    PERSON_GONE = "personGone"
    INVITATION_GONE = "invitationGone"
    USER_SHARED = "userShared"
    # The browser and the code.
    STALE = "stale"
    OTHER_BROWSER = "otherBrowser"
    NO_CODE = "noCode"
    CODE_REFUSED = "codeRefused"
    # The account that was chosen, and the access that was granted.
    OTHER_ACCOUNT = "otherAccount"
    CONNECTION_GONE = "connectionGone"
    UNNAMED_ACCOUNT = "unnamedAccount"
    NO_CALENDARS = "noCalendars"
    INCOMPLETE = "incomplete"
    REVOKED_MEANWHILE = "revokedMeanwhile"


def check_consent(session: Session, consent: PendingConsent) -> User | ConsentRefusal:
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
    if invitation is not None and not is_open(session, invitation):
        return ConsentRefusal.INVITATION_GONE
    if organization_id is not None and users.organization_ids(session, user.id) != {organization_id}:
        return ConsentRefusal.USER_SHARED
    return user

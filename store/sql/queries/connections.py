"""OAuth connections: storing, renewing, marking as ended and removing them; their numbers and states."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Delete,
    and_,
    delete,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from store.security.crypto import Keyring
from store.sql.database import UNCACHED, changed_rows
from store.sql.models import Membership, OAuthConnection, User, UtcDateTime, now
from store.sql.queries import webhook_events
from store.sql.queries.connection_rows import (
    ALIVE,
    Tokens,
    associated_data,
    known_to,
    token_columns,
    with_grant,
)
from store.sql.queries.webhook_events import WebhookEvent

# Length of the column for the reason why a grant ended.
BECAUSE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class ProviderAccount:
    """The account of a grant: the provider's id and the e-mail address, as far as known."""

    provider: str
    id: str | None
    email: str | None


class RemovedConnection(NamedTuple):
    """The data of a deleted connection that is needed to revoke its grant."""

    id: str
    user_id: int
    provider: str
    email: str | None
    account_id: str | None
    alive: bool
    obtained: bool
    sealed_access_token: bytes | None
    sealed_refresh_token: bytes | None

    @property
    def account(self) -> ProviderAccount:
        """The account of the connection."""
        return ProviderAccount(self.provider, self.account_id, self.email)


def find(
    session: Session, user_id: int, provider: str, *, organization_id: int | None = None
) -> OAuthConnection | None:
    """A user's connection with one provider, if keys of ``organization_id`` may know of it."""
    query = select(OAuthConnection).where(
        OAuthConnection.user_id == user_id,
        OAuthConnection.provider == provider,
        known_to(organization_id),
    )
    return session.scalars(query).one_or_none()


def revocable_token(removed: RemovedConnection, keyring: Keyring) -> str:
    """The token that revokes the grant of a removed connection.

    :raise Undecipherable: when its key is no longer on the ring
    """
    # Either token revokes the grant; a refresh token is still valid when the access token has expired.
    if removed.sealed_refresh_token is not None:
        return keyring.decrypt(removed.sealed_refresh_token, associated_data(removed.id, "refresh"))
    if removed.sealed_access_token is None:
        raise ValueError("a delegated connection has no token of its own")
    return keyring.decrypt(removed.sealed_access_token, associated_data(removed.id, "access"))


def replace(
    session: Session,
    keyring: Keyring,
    *,
    user_id: int,
    provider: str,
    email: str | None,
    scope: Sequence[str],
    tokens: Tokens,
    account_id: str | None = None,
    obtained: bool = False,
) -> tuple[OAuthConnection, RemovedConnection | None]:
    """Store a connection, replacing an older one; returns both.

    ``obtained``: the service got the grant by its own consent flow. A connection that replaces a dead one is
    recorded as restored.
    """
    # A concurrent replacement waits here, then replaces this one.
    session.execute(select(User.id).where(User.id == user_id).with_for_update())
    older = next(iter(remove_of_user(session, user_id, provider)), None)
    new_id = secrets.token_hex(16)
    row = OAuthConnection(
        id=new_id,
        user_id=user_id,
        provider=provider,
        email=email,
        scope=list(scope),
        account_id=account_id,
        obtained=obtained,
        alive=True,
        **token_columns(new_id, keyring, tokens),
    )
    session.add(row)
    session.flush()
    if older is not None and not older.alive:
        webhook_events.record(session, WebhookEvent.CONNECTION_RESTORED, new_id)
    return row, older


def renew(session: Session, keyring: Keyring, connection_id: str, tokens: Tokens) -> None:
    """Store refreshed tokens and mark the connection alive; a deleted connection stays deleted."""
    connection = update(OAuthConnection).where(OAuthConnection.id == connection_id)
    # Tokens are not cached in processes, and they change often.
    session.execute(
        connection.values(**token_columns(connection_id, keyring, tokens)).execution_options(
            **{UNCACHED: True}
        )
    )
    alive = {"alive": True, "ended_at": None, "ended_because": None}
    if changed_rows(session, connection.where(OAuthConnection.alive.is_(False)).values(alive)):
        webhook_events.record(session, WebhookEvent.CONNECTION_RESTORED, connection_id)


def identify(
    session: Session,
    connection_id: str,
    *,
    main_calendar_id: str,
    mailbox: str | None,
    time_zone: str | None = None,
    invalidate: bool = True,
) -> None:
    """Store the provider's id of the main calendar of a connection, its owner's address and its zone.

    Without ``invalidate``, other processes use their cached row of the connection until it expires.
    """
    values = {"main_calendar_id": main_calendar_id, "mailbox": mailbox, "time_zone": time_zone}
    statement = update(OAuthConnection).where(OAuthConnection.id == connection_id).values(values)
    session.execute(statement.execution_options(**{UNCACHED: not invalidate}))


def main_calendars(session: Session, ids: Collection[str]) -> dict[str, str]:
    """The ids of the main calendars of these connections, as far as known."""
    query = select(OAuthConnection.id, OAuthConnection.main_calendar_id).where(
        OAuthConnection.id.in_(ids), OAuthConnection.main_calendar_id.is_not(None)
    )
    return {row.id: row.main_calendar_id for row in session.execute(query) if row.main_calendar_id}


def mark_dead(session: Session, connection_id: str, because: str) -> None:
    """Mark a connection whose grant is gone. The event is recorded once, until the connection is alive again.

    A delegated connection is not marked: it ends with the grant of its organization.

    ``because`` is shown to people: a sentence without tokens or addresses, truncated to 300 characters.
    """
    living = update(OAuthConnection).where(
        OAuthConnection.id == connection_id, OAuthConnection.alive, OAuthConnection.grant_id.is_(None)
    )
    dead = {"alive": False, "ended_at": now(), "ended_because": because[:BECAUSE_LENGTH]}
    if changed_rows(session, living.values(dead)):
        webhook_events.record(session, WebhookEvent.CONNECTION_EXPIRED, connection_id)


def remove(session: Session, ids: Collection[str]) -> list[RemovedConnection]:
    """Delete connections and their tokens; returns the data to revoke their grants."""
    return _removed(session, delete(OAuthConnection).where(OAuthConnection.id.in_(ids)))


def remove_of_user(session: Session, user_id: int, provider: str | None = None) -> list[RemovedConnection]:
    """Delete a user's connections, or the one with ``provider``; returns the data to revoke their grants."""
    gone = delete(OAuthConnection).where(OAuthConnection.user_id == user_id)
    if provider is not None:
        gone = gone.where(OAuthConnection.provider == provider)
    return _removed(session, gone)


def _removed(session: Session, gone: Delete) -> list[RemovedConnection]:
    columns = (getattr(OAuthConnection, name) for name in RemovedConnection._fields)
    return [RemovedConnection(*row) for row in session.execute(gone.returning(*columns))]


def uses_account(session: Session, account: ProviderAccount, *, or_user: int) -> bool:
    """Whether a live connection uses the grant of a provider account. Delegated connections use another one.

    Accounts are compared by id, or by address if one id is unknown. A connection of ``or_user`` with neither
    counts as using it.
    """
    email, calendar = func.lower(OAuthConnection.email), func.lower(OAuthConnection.main_calendar_id)
    nameless = and_(OAuthConnection.account_id.is_(None), OAuthConnection.email.is_(None))
    same: list[ColumnElement[bool]] = [and_(OAuthConnection.user_id == or_user, nameless)]
    if account.id is not None:
        same.append(OAuthConnection.account_id == account.id)
    if account.email is not None:
        # The id of the main calendar of a Google account is its address.
        by_address = or_(email == account.email.lower(), calendar == account.email.lower())
        unknown = OAuthConnection.account_id.is_(None)
        same.append(by_address if account.id is None else and_(unknown, by_address))
    query = select(OAuthConnection.id).where(
        OAuthConnection.provider == account.provider,
        OAuthConnection.alive,
        OAuthConnection.grant_id.is_(None),
        or_(*same),
    )
    return session.scalars(query.limit(1)).first() is not None


# For connections that ended before the time was recorded: they sort behind all others.
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class ConnectionCounts(NamedTuple):
    """The numbers of live and ended connections of a provider."""

    alive: int = 0
    dead: int = 0


class EndedConnection(NamedTuple):
    """A connection whose grant is gone; time and reason are None when they were not recorded."""

    id: str
    user: str
    provider: str
    email: str | None
    created_at: datetime
    ended_at: datetime | None
    ended_because: str | None


def expiring(
    session: Session, *, after: datetime, before: datetime, providers: Collection[str], limit: int
) -> Sequence[OAuthConnection]:
    """Live connections with a refresh token whose access token expires between two times.

    The latest come first, so that connections whose refresh fails repeatedly do not delay the others.
    """
    query = (
        select(OAuthConnection)
        .where(
            OAuthConnection.alive,
            OAuthConnection.sealed_refresh_token.is_not(None),
            OAuthConnection.expires_at > after,
            OAuthConnection.expires_at < before,
            OAuthConnection.provider.in_(providers),
        )
        .order_by(OAuthConnection.expires_at.desc(), OAuthConnection.id)
        .limit(limit)
    )
    return session.scalars(query).all()


def counts(session: Session) -> dict[str, ConnectionCounts]:
    """The connections of each provider that has any. A delegated one is alive while its grant is, too."""
    query = with_grant(select(OAuthConnection.provider, ALIVE, func.count())).group_by(
        OAuthConnection.provider, ALIVE
    )
    found: dict[str, ConnectionCounts] = {}
    for provider, alive, count in session.execute(query):
        so_far = found.get(provider, ConnectionCounts())
        found[provider] = so_far._replace(**{"alive" if alive else "dead": count})
    return found


def dead(
    session: Session,
    *,
    organization_id: int | None = None,
    after: tuple[datetime | None, str] | None = None,
    limit: int | None = None,
) -> list[EndedConnection]:
    """Ended connections, the latest first, beginning after ``after``: ``(ended_at, id)`` of the previous one.

    ``organization_id`` limits to one organization's members. Delegated connections whose grant has ended are
    absent: the organization's grant has to be replaced, and not each of them.
    """
    query = (
        select(
            OAuthConnection.id,
            User.custom_id,
            OAuthConnection.provider,
            OAuthConnection.email,
            OAuthConnection.created_at,
            OAuthConnection.ended_at,
            OAuthConnection.ended_because,
        )
        .join(User, User.id == OAuthConnection.user_id)
        .where(OAuthConnection.alive.is_(False))
        .order_by(_ENDED_AT.desc(), OAuthConnection.id)
    )
    if organization_id is not None:
        members = select(Membership.user_id).where(Membership.organization_id == organization_id)
        query = query.where(OAuthConnection.user_id.in_(members))
    if after is not None:
        ended_at, last = after
        moment = literal(ended_at or LONG_AGO, UtcDateTime())
        same = and_(moment == _ENDED_AT, OAuthConnection.id > last)
        query = query.where(or_(moment > _ENDED_AT, same))
    return [EndedConnection(*row) for row in session.execute(query.limit(limit))]


_ENDED_AT = func.coalesce(OAuthConnection.ended_at, literal(LONG_AGO, UtcDateTime()))

"""OAuth connections: without tokens for the web tier, with tokens for workers."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVarTuple, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Delete,
    Row,
    Select,
    Update,
    and_,
    bindparam,
    delete,
    func,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.orm import Session

from store.security.crypto import Keyring, Undecipherable
from store.sql.models import Membership, OAuthConnection, OrganizationGrant, User, UtcDateTime, now
from store.sql.queries import webhooks
from store.sql.queries.webhooks import Event
from store.sql.row_version import UNCACHED

_Ts = TypeVarTuple("_Ts")

# Length of the column for the reason why a grant ended.
BECAUSE_LENGTH = 300

# For connections that ended before the time was recorded: they sort behind all others.
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ConnectionRef:
    """A connection without its tokens: enough to choose what to read and to report failures.

    ``grant`` is the id of the organization's grant by which a delegated connection is read. Such a connection
    is alive only while the grant is.
    """

    id: str
    user: str
    provider: str
    email: str | None
    scope: frozenset[str]
    alive: bool
    account_id: str | None = None
    main_calendar_id: str | None = None
    mailbox: str | None = None
    grant: str | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens from a token endpoint, or from a client that posts a connection."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: datetime | None


class SealedConnection(NamedTuple):
    """The columns that a worker needs. Loading ORM objects would take three times as long.

    ``grant`` and ``alive`` as in ``ConnectionRef``.
    """

    id: str
    provider: str
    email: str | None
    scope: list[str]
    sealed_access_token: bytes | None
    sealed_refresh_token: bytes | None
    expires_at: datetime | None
    alive: bool
    account_id: str | None
    main_calendar_id: str | None
    mailbox: str | None
    obtained: bool
    grant: str | None


@dataclass(frozen=True, slots=True)
class Credentials:
    """A connection with decrypted tokens, for a provider call. It exists in workers only.

    A delegated connection has a ``grant``, the id of the organization's grant, and no ``tokens``.
    """

    id: str
    provider: str
    email: str | None
    scope: frozenset[str]
    tokens: Tokens | None
    account_id: str | None = None
    main_calendar_id: str | None = None
    mailbox: str | None = None
    obtained: bool = False
    grant: str | None = None


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


class Standing(NamedTuple):
    """The numbers of live and ended connections of a provider."""

    alive: int = 0
    dead: int = 0


class Ended(NamedTuple):
    """A connection whose grant is gone; time and reason are None when they were not recorded."""

    id: str
    user: str
    provider: str
    email: str | None
    created_at: datetime
    ended_at: datetime | None
    ended_because: str | None


def of_user(session: Session, custom_id: str, *, within: int | None) -> list[ConnectionRef] | None:
    """The connections of one user; None when there is no such user."""
    return of_users(session, [custom_id], within=within).get(custom_id)


def of_users(
    session: Session, custom_ids: Collection[str], *, within: int | None
) -> dict[str, list[ConnectionRef]]:
    """The connections of each user that exists, in one statement.

    ``within`` limits to members of one organization. A connection by the grant of another one is then absent.
    """
    query = _refs(within).where(User.custom_id.in_(custom_ids))
    if within is not None:
        query = query.join(Membership, Membership.user_id == User.id).where(
            Membership.organization_id == within
        )
    return _by_user(session, query)


def of_members(
    session: Session, organization_id: int, *, within: int | None = None
) -> dict[str, list[ConnectionRef]]:
    """The connections of every member, in one statement; a member without any has an empty list."""
    query = (
        _refs(within)
        .join(Membership, Membership.user_id == User.id)
        .where(Membership.organization_id == organization_id)
    )
    return _by_user(session, query)


def find(session: Session, user_id: int, provider: str) -> OAuthConnection | None:
    """A user's connection with one provider."""
    query = select(OAuthConnection).where(
        OAuthConnection.user_id == user_id, OAuthConnection.provider == provider
    )
    return session.scalars(query).one_or_none()


def sealed(session: Session | Connection, ids: Collection[str]) -> dict[str, SealedConnection]:
    """Connections with encrypted tokens, in one statement; deleted ones are absent.

    A plain database connection is enough: a new session costs a third of the statement's time.
    """
    return {row.id: SealedConnection(*row) for row in session.execute(_SEALED, {"ids": list(ids)})}


def opens(session: Session, keyring: Keyring, most: int) -> tuple[int, int]:
    """Try to decrypt the newest and oldest connections; returns how many were tried and how many failed.

    Delegated connections have no tokens to decrypt.
    """
    by_age = _sealed_columns().where(OAuthConnection.grant_id.is_(None))
    ends = (OAuthConnection.created_at.desc(), OAuthConnection.created_at)
    tried = {row.id: row for end in ends for row in session.execute(by_age.order_by(end).limit(most // 2))}
    closed = 0
    for row in tried.values():
        try:
            open_credentials(SealedConnection(*row), keyring)
        except Undecipherable:
            closed += 1
    return len(tried), closed


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


def open_credentials(row: SealedConnection | OAuthConnection, keyring: Keyring) -> Credentials:
    """Decrypt a connection's tokens for a provider call; a delegated connection has none.

    :raise Undecipherable: when its key is no longer on the ring
    """
    return Credentials(
        id=row.id,
        provider=row.provider,
        email=row.email,
        scope=frozenset(row.scope),
        tokens=_open_tokens(row, keyring),
        account_id=row.account_id,
        main_calendar_id=row.main_calendar_id,
        mailbox=row.mailbox,
        obtained=row.obtained,
        grant=row.grant if isinstance(row, SealedConnection) else row.grant_id,
    )


def _open_tokens(row: SealedConnection | OAuthConnection, keyring: Keyring) -> Tokens | None:
    access, refresh = row.sealed_access_token, row.sealed_refresh_token
    if access is None:
        return None
    return Tokens(
        access_token=keyring.decrypt(access, associated_data(row.id, "access")),
        refresh_token=keyring.decrypt(refresh, associated_data(row.id, "refresh")) if refresh else None,
        expires_at=row.expires_at,
    )


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
        **_sealed(new_id, keyring, tokens),
    )
    session.add(row)
    session.flush()
    if older is not None and not older.alive:
        webhooks.record(session, Event.CONNECTION_RESTORED, new_id)
    return row, older


def renew(session: Session, keyring: Keyring, connection_id: str, tokens: Tokens) -> None:
    """Store refreshed tokens and mark the connection alive; a deleted connection stays deleted."""
    connection = update(OAuthConnection).where(OAuthConnection.id == connection_id)
    # Tokens are not cached in processes, and they change often.
    session.execute(
        connection.values(**_sealed(connection_id, keyring, tokens)).execution_options(**{UNCACHED: True})
    )
    alive = {"alive": True, "ended_at": None, "ended_because": None}
    if _changes(session, connection.where(OAuthConnection.alive.is_(False)).values(alive)):
        webhooks.record(session, Event.CONNECTION_RESTORED, connection_id)


def identify(
    session: Session,
    connection_id: str,
    *,
    main_calendar_id: str,
    mailbox: str | None,
    invalidate: bool = True,
) -> None:
    """Store the provider's id of the main calendar of a connection, and its owner's address.

    Without ``invalidate``, other processes use their cached row of the connection until it expires.
    """
    values = {"main_calendar_id": main_calendar_id, "mailbox": mailbox}
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
    if _changes(session, living.values(dead)):
        webhooks.record(session, Event.CONNECTION_EXPIRED, connection_id)


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


def counts(session: Session) -> dict[str, Standing]:
    """The connections of each provider that has any. A delegated one is alive while its grant is, too."""
    query = _with_grant(select(OAuthConnection.provider, _ALIVE, func.count())).group_by(
        OAuthConnection.provider, _ALIVE
    )
    found: dict[str, Standing] = {}
    for provider, alive, count in session.execute(query):
        so_far = found.get(provider, Standing())
        found[provider] = so_far._replace(**{"alive" if alive else "dead": count})
    return found


def dead(
    session: Session,
    *,
    within: int | None = None,
    after: tuple[datetime | None, str] | None = None,
    limit: int | None = None,
) -> list[Ended]:
    """Ended connections, the latest first, beginning after ``after``: ``(ended_at, id)`` of the previous one.

    ``within`` limits to one organization's members. Delegated connections whose grant has ended are absent:
    the organization's grant has to be replaced, and not each of them.
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
    if within is not None:
        members = select(Membership.user_id).where(Membership.organization_id == within)
        query = query.where(OAuthConnection.user_id.in_(members))
    if after is not None:
        ended_at, last = after
        moment = literal(ended_at or LONG_AGO, UtcDateTime())
        same = and_(moment == _ENDED_AT, OAuthConnection.id > last)
        query = query.where(or_(moment > _ENDED_AT, same))
    return [Ended(*row) for row in session.execute(query.limit(limit))]


_ENDED_AT = func.coalesce(OAuthConnection.ended_at, literal(LONG_AGO, UtcDateTime()))

# Whether a connection is alive, and its organization's grant if it has one. Needs ``_with_grant``.
_ALIVE = and_(OAuthConnection.alive, func.coalesce(OrganizationGrant.alive, true()))


def _with_grant(query: Select[*_Ts]) -> Select[*_Ts]:
    """The query, joined with the organization's grant of each connection that has one."""
    return query.join(OrganizationGrant, OrganizationGrant.id == OAuthConnection.grant_id, isouter=True)


def _sealed_columns() -> Select[*tuple[Any, ...]]:
    named: dict[str, Any] = {"alive": _ALIVE.label("alive"), "grant": OAuthConnection.grant_id.label("grant")}
    columns: list[Any] = [
        named.get(name, getattr(OAuthConnection, name, None)) for name in SealedConnection._fields
    ]
    return _with_grant(select(*columns).select_from(OAuthConnection))


# Built once, because workers use it often.
_SEALED = _sealed_columns().where(OAuthConnection.id.in_(bindparam("ids", expanding=True)))


def _changes(session: Session, statement: Update) -> bool:
    """Whether a statement has changed a row. It must not return rows: rowcount would be undefined."""
    return bool(cast(CursorResult[Any], session.execute(statement)).rowcount)


_Refs = Select[str, str, str, str | None, list[str], bool, str | None, str | None, str | None, str | None]
_RefRow = Row[str, str, str, str | None, list[str], bool, str | None, str | None, str | None, str | None]


def _refs(within: int | None) -> _Refs:
    """Users with their connections. ``within``: without connections by the grant of another organization."""
    of_user = OAuthConnection.user_id == User.id
    if within is not None:
        own = select(OrganizationGrant.id).where(OrganizationGrant.organization_id == within)
        of_user = and_(of_user, or_(OAuthConnection.grant_id.is_(None), OAuthConnection.grant_id.in_(own)))
    return (
        select(
            User.custom_id,
            OAuthConnection.id,
            OAuthConnection.provider,
            OAuthConnection.email,
            OAuthConnection.scope,
            _ALIVE.label("alive"),
            OAuthConnection.account_id,
            OAuthConnection.main_calendar_id,
            OAuthConnection.mailbox,
            OAuthConnection.grant_id,
        )
        .join(OAuthConnection, of_user, isouter=True)
        .join(OrganizationGrant, OrganizationGrant.id == OAuthConnection.grant_id, isouter=True)
        .order_by(User.custom_id, OAuthConnection.provider)
    )


def _by_user(
    session: Session,
    query: _Refs,
) -> dict[str, list[ConnectionRef]]:
    users: dict[str, list[ConnectionRef]] = {}
    for row in session.execute(query):
        mine = users.setdefault(row.custom_id, [])
        if row.id is not None:
            mine.append(_ref(row))
    return users


def _ref(
    row: _RefRow,
) -> ConnectionRef:
    return ConnectionRef(
        row.id,
        row.custom_id,
        row.provider,
        row.email,
        frozenset(row.scope),
        row.alive,
        row.account_id,
        row.main_calendar_id,
        row.mailbox,
        row.grant_id,
    )


def _sealed(connection_id: str, keyring: Keyring, tokens: Tokens) -> dict[str, Any]:
    """The columns that hold tokens."""
    access, refresh = tokens.access_token, tokens.refresh_token
    return {
        "sealed_access_token": keyring.encrypt(access, associated_data(connection_id, "access")),
        "sealed_refresh_token": refresh
        and keyring.encrypt(refresh, associated_data(connection_id, "refresh")),
        "expires_at": tokens.expires_at,
    }


def associated_data(connection_id: str, column: str) -> str:
    """The associated data of an encrypted token; ``column`` is ``access`` or ``refresh``."""
    return f"oauth_connections/{connection_id}/{column}"

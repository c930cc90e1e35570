"""Connections as they are loaded for a request (without tokens) and for a worker (with encrypted tokens)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVarTuple

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, bindparam, func, or_, select, true
from sqlalchemy.orm import Session

from store.cache.cache_tags import PRIMARY, UserNames, booked_names, user_name
from store.security.crypto import Keyring, tried_and_failed
from store.sql.models import AvailabilityProfile, Membership, OAuthConnection, OrganizationGrant, User

_Ts = TypeVarTuple("_Ts")

# A token that expires sooner could expire on the way to the provider.
ENDING = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class ConnectionRef:
    """A connection without its tokens: enough to choose what to read and to report failures.

    ``grant`` is the id of the organization's grant by which a delegated connection is read. Such a connection
    is alive only while the grant is. ``time_zone`` is that of the main calendar, None while it is not known.
    ``user_id`` is the internal id of the user. ``main_names`` are those of ``booked_names`` for the main
    calendar, ``held_names`` the names under which the user is held if it is the only calendar of a request:
    most requests need them. ``public_id`` is the id in answers; ``first_id`` is its column.
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
    time_zone: str | None = None
    user_id: int = 0
    main_names: tuple[str, ...] = ()
    held_names: UserNames | None = None
    first_id: str | None = None

    @property
    def public_id(self) -> str:
        """The id in answers."""
        return self.first_id or self.id


# The order of a user's connections. The default one is the first of its provider.
BY_PROVIDER = (
    OAuthConnection.provider,
    OAuthConnection.is_default.desc(),
    OAuthConnection.created_at,
    OAuthConnection.id,
)


def of_user(session: Session, custom_id: str, *, organization_id: int | None) -> list[ConnectionRef] | None:
    """The connections of one user; None when there is no such user."""
    return of_users(session, [custom_id], organization_id=organization_id).get(custom_id)


def of_users(
    session: Session, custom_ids: Collection[str], *, organization_id: int | None
) -> dict[str, list[ConnectionRef]]:
    """The connections of each user that exists, in one statement.

    ``organization_id`` limits to members of one organization. A connection by the grant of another one is
    then absent.
    """
    query = _refs(organization_id).where(User.custom_id.in_(custom_ids))
    if organization_id is not None:
        query = query.join(Membership, Membership.user_id == User.id).where(
            Membership.organization_id == organization_id
        )
    return _by_user(session, query)


def of_members(
    session: Session, organization_id: int, *, only_organization_id: int | None = None
) -> dict[str, list[ConnectionRef]]:
    """The connections of every member, in one statement; a member without any has an empty list."""
    query = (
        _refs(only_organization_id)
        .join(Membership, Membership.user_id == User.id)
        .where(Membership.organization_id == organization_id)
    )
    return _by_user(session, query)


def by_id(session: Session, connection_ids: Collection[str]) -> dict[str, ConnectionRef]:
    """Connections by their ids."""
    query = _refs(None).where(OAuthConnection.id.in_(connection_ids))
    return {row.id: _ref(row) for row in session.execute(query)}


def main_names(session: Session, user_ids: Collection[int]) -> set[str]:
    """The names of the main calendars of users, in all of their connections."""
    query = _refs(None).where(User.id.in_(user_ids))
    return {name for row in session.execute(query) if row.id is not None for name in _ref(row).main_names}


def known_to(organization_id: int | None) -> ColumnElement[bool]:
    """Whether keys of an organization may know of a connection: not if it is by the grant of another one.

    None is a key of all organizations.
    """
    if organization_id is None:
        return true()
    own = select(OrganizationGrant.id).where(OrganizationGrant.organization_id == organization_id)
    return or_(OAuthConnection.grant_id.is_(None), OAuthConnection.grant_id.in_(own))


# Whether a connection is alive, and its organization's grant if it has one. Needs ``with_grant``.
ALIVE = and_(OAuthConnection.alive, func.coalesce(OrganizationGrant.alive, true()))


def with_grant(query: Select[*_Ts]) -> Select[*_Ts]:
    """The query, joined with the organization's grant of each connection that has one."""
    return query.join(OrganizationGrant, OrganizationGrant.id == OAuthConnection.grant_id, isouter=True)


_Text = str | None

_Refs = Select[str, str, str, _Text, list[str], bool, _Text, _Text, _Text, _Text, _Text, int, _Text]

_RefRow = Row[str, str, str, _Text, list[str], bool, _Text, _Text, _Text, _Text, _Text, int, _Text]


def _refs(only_organization_id: int | None) -> _Refs:
    """Users with their connections that keys of ``only_organization_id`` may know of."""
    of_user = and_(OAuthConnection.user_id == User.id, known_to(only_organization_id))
    return (
        select(
            User.custom_id,
            OAuthConnection.id,
            OAuthConnection.provider,
            OAuthConnection.email,
            OAuthConnection.scope,
            ALIVE.label("alive"),
            OAuthConnection.account_id,
            OAuthConnection.main_calendar_id,
            OAuthConnection.mailbox,
            OAuthConnection.grant_id,
            OAuthConnection.time_zone,
            User.id.label("user_id"),
            OAuthConnection.first_id,
        )
        .join(OAuthConnection, of_user, isouter=True)
        .join(OrganizationGrant, OrganizationGrant.id == OAuthConnection.grant_id, isouter=True)
        .order_by(User.custom_id, *BY_PROVIDER)
    )


def _by_user(session: Session, query: _Refs) -> dict[str, list[ConnectionRef]]:
    users: dict[str, list[ConnectionRef]] = {}
    for row in session.execute(query):
        mine = users.setdefault(row.custom_id, [])
        if row.id is not None:
            mine.append(_ref(row))
    return users


def _ref(row: _RefRow) -> ConnectionRef:
    names = booked_names(row, PRIMARY)
    user = (user_name(row.user_id),)
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
        row.time_zone,
        row.user_id,
        names,
        UserNames((*user, *names[:1]), names[:1] or user),
        row.first_id,
    )


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens from a token endpoint, or from a client that posts a connection."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: datetime | None


class SealedConnection(NamedTuple):
    """The columns that a worker needs. Loading ORM objects would take three times as long.

    ``grant`` and ``alive`` as in ``ConnectionRef``. ``own_zone`` is the time zone of the user's profile.
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
    time_zone: str | None
    obtained: bool
    grant: str | None
    own_zone: str | None = None


@dataclass(frozen=True, slots=True)
class Credentials:
    """A connection with decrypted tokens, for a provider call. It exists in workers only.

    A delegated connection has a ``grant``, the id of the organization's grant, and no ``tokens``.
    ``own_zone`` as in ``SealedConnection``.
    """

    id: str
    provider: str
    email: str | None
    scope: frozenset[str]
    tokens: Tokens | None
    account_id: str | None = None
    main_calendar_id: str | None = None
    mailbox: str | None = None
    time_zone: str | None = None
    obtained: bool = False
    grant: str | None = None
    own_zone: str | None = None


def sealed(session: Session | Connection, ids: Collection[str]) -> dict[str, SealedConnection]:
    """Connections with encrypted tokens, in one statement; deleted ones are absent.

    A plain database connection is enough: a new session costs a third of the statement's time.
    """
    return {row.id: SealedConnection(*row) for row in session.execute(_SEALED, {"ids": list(ids)})}


def check_decryption(session: Session, keyring: Keyring, most: int) -> tuple[int, int]:
    """Try to decrypt the newest and oldest connections; returns how many were tried and how many failed.

    Delegated connections have no tokens to decrypt.
    """
    by_age = _sealed_columns().where(OAuthConnection.grant_id.is_(None))
    ends = (OAuthConnection.created_at.desc(), OAuthConnection.created_at)
    tried = {row.id: row for end in ends for row in session.execute(by_age.order_by(end).limit(most // 2))}
    return tried_and_failed(
        partial(open_credentials, SealedConnection(*row), keyring) for row in tried.values()
    )


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
        time_zone=row.time_zone,
        obtained=row.obtained,
        grant=row.grant if isinstance(row, SealedConnection) else row.grant_id,
        own_zone=row.own_zone if isinstance(row, SealedConnection) else None,
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


def _sealed_columns() -> Select[*tuple[Any, ...]]:
    named: dict[str, Any] = {
        "alive": ALIVE.label("alive"),
        "grant": OAuthConnection.grant_id.label("grant"),
        "own_zone": AvailabilityProfile.time_zone.label("own_zone"),
    }
    columns: list[Any] = [
        named.get(name, getattr(OAuthConnection, name, None)) for name in SealedConnection._fields
    ]
    of_user = AvailabilityProfile.user_id == OAuthConnection.user_id
    return with_grant(select(*columns).select_from(OAuthConnection)).outerjoin(AvailabilityProfile, of_user)


# Built once, because workers use it often.
_SEALED = _sealed_columns().where(OAuthConnection.id.in_(bindparam("ids", expanding=True)))


def token_columns(connection_id: str, keyring: Keyring, tokens: Tokens) -> dict[str, Any]:
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


def ends_soon(expires_at: datetime | None) -> bool:
    """Whether a token has expired or expires within a minute; False if its expiry is unknown."""
    return expires_at is not None and expires_at - ENDING <= datetime.now(UTC)

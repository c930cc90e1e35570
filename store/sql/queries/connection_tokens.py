"""The tokens of connections: encrypted as they are stored, decrypted for a provider call."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, select
from sqlalchemy.orm import Session

from store.security.crypto import Keyring, Undecipherable
from store.sql.models import OAuthConnection
from store.sql.queries.connection_refs import ALIVE, with_grant


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
    time_zone: str | None
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
    time_zone: str | None = None
    obtained: bool = False
    grant: str | None = None


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
    closed = 0
    for row in tried.values():
        try:
            open_credentials(SealedConnection(*row), keyring)
        except Undecipherable:
            closed += 1
    return len(tried), closed


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
    named: dict[str, Any] = {"alive": ALIVE.label("alive"), "grant": OAuthConnection.grant_id.label("grant")}
    columns: list[Any] = [
        named.get(name, getattr(OAuthConnection, name, None)) for name in SealedConnection._fields
    ]
    return with_grant(select(*columns).select_from(OAuthConnection))


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

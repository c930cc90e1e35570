"""Key rotation: re-encrypts values of other keys with the first key, so that the others may be removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, inspect, literal, select, tuple_, update
from sqlalchemy.orm import InstrumentedAttribute

from store.security.crypto import PREFIX_BYTES, Keyring, Undecipherable
from store.sql.database import UNCACHED, Database, changed_rows
from store.sql.models import (
    Administrator,
    Base,
    EventFeed,
    IdempotencyKey,
    Identity,
    OAuthConnection,
    OrganizationGrant,
    ProviderClient,
    WebhookEndpoint,
)
from store.sql.queries import (
    connection_rows,
    event_feeds,
    idempotency,
    identities,
    organization_grants,
    provider_clients,
    second_factors,
    webhooks,
)

# Rows of one transaction: SQLite allows one writer at a time, and requests write too.
BATCH = 100


class SealedColumn(NamedTuple):
    """A column of ciphertexts. ``associated_data`` makes that of a value from its row's primary key."""

    model: type[Base]
    column: InstrumentedAttribute[Any]
    associated_data: Callable[..., str]

    def __str__(self) -> str:
        return f"{self.model.__tablename__}.{self.column.key}"


# Every encrypted column. Encrypted values in Redis are not re-encrypted, as they expire: consents within ten
# minutes, the undo of removed members within fifteen, tokens of grants with the token, within a day at most.
EVERY = (
    SealedColumn(
        OAuthConnection,
        OAuthConnection.sealed_access_token,
        lambda id: connection_rows.associated_data(id, "access"),
    ),
    SealedColumn(
        OAuthConnection,
        OAuthConnection.sealed_refresh_token,
        lambda id: connection_rows.associated_data(id, "refresh"),
    ),
    SealedColumn(OrganizationGrant, OrganizationGrant.sealed_secret, organization_grants.associated_data),
    SealedColumn(ProviderClient, ProviderClient.sealed_secret, provider_clients.associated_data),
    SealedColumn(WebhookEndpoint, WebhookEndpoint.sealed_secret, webhooks.associated_data),
    SealedColumn(WebhookEndpoint, WebhookEndpoint.sealed_previous_secret, webhooks.previous_associated_data),
    SealedColumn(Administrator, Administrator.sealed_totp_secret, second_factors.associated_data),
    SealedColumn(Identity, Identity.sealed_refresh_token, identities.associated_data),
    SealedColumn(IdempotencyKey, IdempotencyKey.sealed_answer, idempotency.associated_data),
    SealedColumn(EventFeed, EventFeed.sealed_state, event_feeds.associated_data),
)


@dataclass(slots=True)
class ColumnProgress:
    """The progress of one column: values re-encrypted, and values that no key decrypts."""

    column: SealedColumn
    reencrypted: int = 0
    undecryptable: int = 0


def reencrypt(database: Database, keyring: Keyring, *, batch: int = BATCH) -> Iterator[ColumnProgress]:
    """Re-encrypt everything with the first key, and yield the progress after each batch.

    A value that changes meanwhile is never overwritten. The rotation may be interrupted and restarted.
    """
    for column in EVERY:
        progress = ColumnProgress(column)
        last: tuple[Any, ...] | None = None
        while True:
            rows = _older(database, keyring, column, after=last, limit=batch)
            if rows:
                _seal(database, keyring, rows, progress)
            yield progress
            if len(rows) < batch:
                break
            last = tuple(rows[-1][:-1])


def remaining(database: Database, keyring: Keyring) -> dict[str, int]:
    """The number of values in each column that another key has encrypted; columns without any are absent."""
    found: dict[str, int] = {}
    with database.reading() as session:
        for each in EVERY:
            count = session.scalars(select(func.count()).where(_other(keyring, each))).one()
            if count:
                found[str(each)] = count
    return found


def _older(
    database: Database,
    keyring: Keyring,
    sealed: SealedColumn,
    *,
    after: tuple[Any, ...] | None,
    limit: int,
) -> Sequence[Sequence[Any]]:
    """The next rows with a value of another key: the primary key's columns, then the ciphertext."""
    key = _key(sealed)
    query = select(*key, sealed.column).where(_other(keyring, sealed)).order_by(*key).limit(limit)
    if after is not None:
        query = query.where(tuple_(*key) > tuple_(*map(literal, after)))
    with database.reading() as session:
        return session.execute(query).all()


def _seal(
    database: Database, keyring: Keyring, rows: Sequence[Sequence[Any]], progress: ColumnProgress
) -> None:
    sealed = progress.column
    with database.writing() as session:
        for *key, old in rows:
            associated_data = sealed.associated_data(*key)
            try:
                new = keyring.encrypt(keyring.decrypt(old, associated_data), associated_data)
            except Undecipherable:
                progress.undecryptable += 1
                continue
            row = [column == value for column, value in zip(_key(sealed), key, strict=True)]
            # Only if the value is still the same: a token may have been refreshed meanwhile.
            replace = update(sealed.model).where(*row, sealed.column == old).values({sealed.column: new})
            # The plaintext stays the same, so no cache has to be invalidated.
            progress.reencrypted += changed_rows(session, replace.execution_options(**{UNCACHED: True}))


def _other(keyring: Keyring, sealed: SealedColumn) -> ColumnElement[bool]:
    """Whether the value exists and another key has encrypted it."""
    return func.substr(sealed.column, 1, PREFIX_BYTES) != keyring.prefix


def _key(sealed: SealedColumn) -> tuple[Any, ...]:
    return inspect(sealed.model).primary_key

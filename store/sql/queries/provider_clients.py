"""OAuth clients registered with providers, for providers without one in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import CursorResult, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from store.security.crypto import Keyring
from store.sql.models import ProviderClient, now

_INSERT: Mapping[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


class SealedClient(NamedTuple):
    """A registration as stored. Two values are equal if the registration was not saved in between."""

    provider: str
    client_id: str
    sealed_secret: bytes
    tenant: str | None
    updated_at: datetime

    def __repr__(self) -> str:
        return f"<SealedClient of {self.provider}>"


@dataclass(frozen=True, slots=True)
class StoredClient:
    """A registration with its decrypted secret. ``tenant`` is Microsoft's; None uses that of the settings."""

    client_id: str
    secret: str = field(repr=False)
    tenant: str | None


def load(session: Session) -> dict[str, SealedClient]:
    """Every registration, by provider, in one statement."""
    return {row.provider: SealedClient(*row) for row in session.execute(_ALL)}


def open_client(row: SealedClient, keyring: Keyring) -> StoredClient:
    """Decrypt the secret of a registration.

    :raise Undecipherable: when its key is no longer on the ring
    """
    return StoredClient(
        row.client_id, keyring.decrypt(row.sealed_secret, associated_data(row.provider)), row.tenant
    )


def save(session: Session, keyring: Keyring, provider: str, client: StoredClient) -> None:
    """Store a registration, replacing an older one."""
    values = {
        "client_id": client.client_id,
        "sealed_secret": keyring.encrypt(client.secret, associated_data(provider)),
        "tenant": client.tenant,
        "updated_at": now(),
    }
    insert = _INSERT[session.get_bind().dialect.name](ProviderClient).values(provider=provider, **values)
    session.execute(insert.on_conflict_do_update(index_elements=[ProviderClient.provider], set_=values))


def remove(session: Session, provider: str) -> bool:
    """Delete a registration; False when there is none."""
    gone = session.execute(delete(ProviderClient).where(ProviderClient.provider == provider))
    return bool(cast(CursorResult[Any], gone).rowcount)


_ALL = select(*(getattr(ProviderClient, name) for name in SealedClient._fields))


def associated_data(provider: str) -> str:
    """The associated data of an encrypted secret."""
    return f"provider_clients/{provider}/secret"

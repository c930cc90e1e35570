"""OAuth clients registered with providers, for providers without one in the environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from store.security.crypto import Keyring
from store.sql.database import changed_rows, insert_or_update
from store.sql.models import ProviderClient, now


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
    insert = insert_or_update(session, ProviderClient).values(provider=provider, **values)
    session.execute(insert.on_conflict_do_update(index_elements=[ProviderClient.provider], set_=values))


def remove(session: Session, provider: str) -> bool:
    """Delete a registration; False when there is none."""
    return bool(changed_rows(session, delete(ProviderClient).where(ProviderClient.provider == provider)))


_ALL = select(*(getattr(ProviderClient, name) for name in SealedClient._fields))


def associated_data(provider: str) -> str:
    """The associated data of an encrypted secret."""
    return f"provider_clients/{provider}/secret"

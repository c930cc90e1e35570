"""The secrets that sign deliveries to webhook endpoints: encrypted and bound to their row."""

from __future__ import annotations

import secrets
from base64 import b64encode
from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from store.security.crypto import Keyring, Undecipherable
from store.sql.models import WebhookEndpoint, now

SECRET_BYTES = 24


def new_secret() -> str:
    """A random secret in the form of Standard Webhooks."""
    return "whsec_" + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def open_secret(endpoint_id: str, sealed: bytes, keyring: Keyring) -> str:
    """The secret that signs the deliveries to an endpoint.

    :raise Undecipherable: when its key is no longer on the ring
    """
    return keyring.decrypt(sealed, associated_data(endpoint_id))


def open_previous(endpoint_id: str, sealed: bytes, keyring: Keyring) -> str:
    """The secret before the last rotation; errors as for ``open_secret``."""
    return keyring.decrypt(sealed, previous_associated_data(endpoint_id))


def rotate(session: Session, keyring: Keyring, row: WebhookEndpoint, *, overlap: timedelta) -> str:
    """Replace the secret of an endpoint; returns the new one, which is not shown again.

    Deliveries are signed with the replaced secret too, until ``overlap`` has passed. A second rotation within
    that time ends the oldest secret. A secret that no key decrypts is not kept.
    """
    # A concurrent rotation waits here, and then keeps the secret that this one has returned.
    session.refresh(row, with_for_update=True)
    secret = new_secret()
    row.sealed_previous_secret = _kept(keyring, row) if overlap else None
    row.overlap_until = now() + overlap if row.sealed_previous_secret else None
    row.sealed_secret = keyring.encrypt(secret, associated_data(row.id))
    session.flush()
    return secret


def forget_expired(session: Session) -> None:
    """Delete replaced secrets whose overlap has passed."""
    expired = update(WebhookEndpoint).where(WebhookEndpoint.overlap_until <= now())
    session.execute(expired.values(sealed_previous_secret=None, overlap_until=None))


def check_decryption(session: Session, keyring: Keyring, most: int) -> tuple[int, int]:
    """Try to decrypt secrets of endpoints; returns how many were tried and how many failed."""
    some = select(WebhookEndpoint.id, WebhookEndpoint.sealed_secret).limit(most)
    rows = session.execute(some.order_by(WebhookEndpoint.created_at)).all()
    closed = 0
    for endpoint_id, sealed in rows:
        try:
            open_secret(endpoint_id, sealed, keyring)
        except Undecipherable:
            closed += 1
    return len(rows), closed


def associated_data(endpoint_id: str) -> str:
    """The associated data of an encrypted secret."""
    return f"webhook_endpoints/{endpoint_id}/secret"


def previous_associated_data(endpoint_id: str) -> str:
    """The associated data of an encrypted secret that was replaced."""
    return f"webhook_endpoints/{endpoint_id}/previous_secret"


def _kept(keyring: Keyring, row: WebhookEndpoint) -> bytes | None:
    try:
        secret = open_secret(row.id, row.sealed_secret, keyring)
    except Undecipherable:
        return None
    return keyring.encrypt(secret, previous_associated_data(row.id))

"""Webhook endpoints, and the secrets that sign deliveries to them: encrypted and bound to their row."""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.orm import Session

from store.security.crypto import Keyring, Undecipherable, tried_and_failed
from store.sql.database import note_events
from store.sql.models import Organization, WebhookEndpoint, now

# Limit for each organization, and for endpoints of all organizations: an event is recorded for each endpoint.
MAX_ENDPOINTS = 100

SECRET_BYTES = 24


class TooManyEndpoints(Exception):
    """There are already ``MAX_ENDPOINTS`` endpoints."""


class EndpointRow(NamedTuple):
    """An endpoint with its organization's slug, or None for an endpoint of all organizations."""

    endpoint: WebhookEndpoint
    organization: str | None


def create(
    session: Session, keyring: Keyring, *, url: str, events: Sequence[str], organization_id: int | None
) -> tuple[WebhookEndpoint, str]:
    """Register an endpoint; returns it with its secret, which is not shown again.

    :raise TooMany: when the limit is reached; concurrent calls may exceed it
    """
    # IS, not =: an endpoint of all organizations has NULL.
    beside = select(func.count()).where(WebhookEndpoint.organization_id.is_not_distinct_from(organization_id))
    if session.scalars(beside).one() >= MAX_ENDPOINTS:
        raise TooManyEndpoints
    secret = new_secret()
    endpoint_id = f"wh_{secrets.token_hex(12)}"
    row = WebhookEndpoint(
        id=endpoint_id,
        organization_id=organization_id,
        url=url,
        events=list(events),
        sealed_secret=keyring.encrypt(secret, associated_data(endpoint_id)),
    )
    session.add(row)
    session.flush()
    return row, secret


def page(
    session: Session, *, organization_id: int | None, after: str | None = None, limit: int | None = None
) -> Sequence[WebhookEndpoint]:
    """Endpoints ordered by id, beginning after ``after``; those of one organization, if it is given."""
    query = _endpoints(organization_id).order_by(WebhookEndpoint.id)
    if after is not None:
        query = query.where(WebhookEndpoint.id > after)
    return session.scalars(query.limit(limit)).all()


def listed(
    session: Session,
    *,
    after: str | None = None,
    limit: int | None = None,
    endpoint_ids: Collection[str] | None = None,
) -> list[EndpointRow]:
    """All endpoints ordered by id, beginning after ``after``, each with its organization's slug.

    ``endpoint_ids`` limits to endpoints of these ids.
    """
    query = (
        select(WebhookEndpoint, Organization.slug)
        .join(Organization, Organization.id == WebhookEndpoint.organization_id, isouter=True)
        .order_by(WebhookEndpoint.id)
    )
    if endpoint_ids is not None:
        query = query.where(WebhookEndpoint.id.in_(endpoint_ids))
    if after is not None:
        query = query.where(WebhookEndpoint.id > after)
    return [EndpointRow(endpoint, slug) for endpoint, slug in session.execute(query.limit(limit))]


def count(session: Session, organization_id: int) -> int:
    """The number of endpoints of an organization."""
    query = select(func.count()).select_from(WebhookEndpoint)
    return session.scalars(query.where(WebhookEndpoint.organization_id == organization_id)).one()


def find(
    session: Session, endpoint_id: str, *, organization_id: int | None, to_change: bool = False
) -> WebhookEndpoint | None:
    """One endpoint. ``to_change`` locks it, so that it is not deleted meanwhile."""
    query = _endpoints(organization_id).where(WebhookEndpoint.id == endpoint_id)
    if to_change:
        # Events are recorded meanwhile: they only keep the row.
        query = query.with_for_update(key_share=True)
    return session.scalars(query).one_or_none()


def existing(session: Session, endpoint_ids: Collection[str]) -> set[str]:
    """Those of ``endpoint_ids`` that exist."""
    found = select(WebhookEndpoint.id).where(WebhookEndpoint.id.in_(endpoint_ids))
    return set(session.scalars(found))


def remove(session: Session, endpoint_id: str) -> None:
    """Delete an endpoint with its deliveries."""
    session.execute(delete(WebhookEndpoint).where(WebhookEndpoint.id == endpoint_id))


def resume(session: Session, row: WebhookEndpoint) -> None:
    """End the pause of an endpoint, or enable it; its pending deliveries are sent after the commit."""
    row.paused_at = row.disabled_at = None
    session.flush()
    note_events(session, [row.id])


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
    return tried_and_failed(partial(open_secret, *row, keyring) for row in rows)


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


def _endpoints(organization_id: int | None) -> Select[WebhookEndpoint]:
    query = select(WebhookEndpoint)
    return (
        query if organization_id is None else query.where(WebhookEndpoint.organization_id == organization_id)
    )

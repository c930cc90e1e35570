"""Webhook endpoints, and the events that are recorded for them."""

from __future__ import annotations

import hashlib
import secrets
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, delete, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from scheduling.json_render import timestamp
from store.security.crypto import Keyring, Undecipherable
from store.sql import after_commit
from store.sql.models import (
    Membership,
    OAuthConnection,
    Organization,
    User,
    WebhookDelivery,
    WebhookEndpoint,
    now,
)

SECRET_BYTES = 24

# Limit for each organization, and for endpoints of all organizations: an event is recorded for each endpoint.
MOST_ENDPOINTS = 100

# Shortest interval between attempts for a calendar that changes continuously while its receiver fails.
SOON = timedelta(seconds=60)

# Both providers accept this alias for the main calendar.
MAIN = "primary"

_INSERT: Mapping[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


class TooMany(Exception):
    """There are already ``MOST_ENDPOINTS`` endpoints."""


class Listed(NamedTuple):
    """An endpoint with its organization's slug, or None for an endpoint of all organizations."""

    endpoint: WebhookEndpoint
    organization: str | None


class Event(StrEnum):
    """The types of webhook events."""

    CALENDAR_CHANGED = "calendar.changed"
    CONNECTION_EXPIRED = "connection.expired"
    CONNECTION_RESTORED = "connection.restored"


def create(
    session: Session, keyring: Keyring, *, url: str, events: Sequence[str], within: int | None
) -> tuple[WebhookEndpoint, str]:
    """Register an endpoint; returns it with its secret, which is not shown again.

    :raise TooMany: when the limit is reached; concurrent calls may exceed it
    """
    # IS, not =: an endpoint of all organizations has NULL.
    beside = select(func.count()).where(WebhookEndpoint.organization_id.is_not_distinct_from(within))
    if session.scalars(beside).one() >= MOST_ENDPOINTS:
        raise TooMany
    secret = "whsec_" + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    endpoint_id = f"wh_{secrets.token_hex(12)}"
    row = WebhookEndpoint(
        id=endpoint_id,
        organization_id=within,
        url=url,
        events=list(events),
        sealed_secret=keyring.encrypt(secret, associated_data(endpoint_id)),
    )
    session.add(row)
    session.flush()
    return row, secret


def open_secret(endpoint_id: str, sealed: bytes, keyring: Keyring) -> str:
    """The secret that signs the deliveries to an endpoint.

    :raise Undecipherable: when its key is no longer on the ring
    """
    return keyring.decrypt(sealed, associated_data(endpoint_id))


def opens(session: Session, keyring: Keyring, most: int) -> tuple[int, int]:
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


def page(
    session: Session, *, within: int | None, after: str | None = None, limit: int | None = None
) -> Sequence[WebhookEndpoint]:
    """Endpoints ordered by id, beginning after ``after``. ``within`` limits to one organization's."""
    query = _endpoints(within).order_by(WebhookEndpoint.id)
    if after is not None:
        query = query.where(WebhookEndpoint.id > after)
    return session.scalars(query.limit(limit)).all()


def listed(session: Session, *, after: str | None = None, limit: int | None = None) -> list[Listed]:
    """All endpoints ordered by id, beginning after ``after``, each with its organization's slug."""
    query = (
        select(WebhookEndpoint, Organization.slug)
        .join(Organization, Organization.id == WebhookEndpoint.organization_id, isouter=True)
        .order_by(WebhookEndpoint.id)
    )
    if after is not None:
        query = query.where(WebhookEndpoint.id > after)
    return [Listed(endpoint, slug) for endpoint, slug in session.execute(query.limit(limit))]


def count(session: Session, organization_id: int) -> int:
    """The number of endpoints of an organization."""
    query = select(func.count()).select_from(WebhookEndpoint)
    return session.scalars(query.where(WebhookEndpoint.organization_id == organization_id)).one()


def find(session: Session, endpoint_id: str, *, within: int | None) -> WebhookEndpoint | None:
    """One endpoint."""
    return session.scalars(_endpoints(within).where(WebhookEndpoint.id == endpoint_id)).one_or_none()


def remove(session: Session, endpoint_id: str) -> None:
    """Delete an endpoint with its deliveries."""
    session.execute(delete(WebhookEndpoint).where(WebhookEndpoint.id == endpoint_id))


def record(session: Session, event: Event, connection_id: str, *, calendar_id: str | None = None) -> None:
    """Record an event of a connection for every subscribed endpoint, in the caller's transaction.

    It is sent after the commit. If a change of the same calendar is recorded and not yet being sent, no other
    is recorded, because the receiver reads the current state anyway. The recorded one is sent within
    ``SOON``, even if its next attempt was due later.
    """
    listeners = _listeners(session, event, connection_id)
    if not listeners:
        return
    connection = listeners[0]
    data = {"userId": connection.custom_id, "provider": connection.provider}
    if calendar_id is not None:
        data["calendarId"] = _calendar_name(connection, calendar_id)
    moment = time.time_ns() // 1_000_000
    payload = {"type": event.value, "timestamp": timestamp(moment), "data": data}
    rows = [
        {
            "id": f"msg_{moment:012x}{secrets.token_hex(10)}",
            "endpoint_id": listener.endpoint_id,
            "user_id": connection.user_id,
            "topic": topic(payload),
            "event": event.value,
            "payload": payload,
        }
        for listener in listeners
    ]
    insert = _INSERT[session.get_bind().dialect.name](WebhookDelivery)
    soon = now() + SOON
    once = insert.on_conflict_do_update(
        index_elements=[WebhookDelivery.endpoint_id, WebhookDelivery.topic],
        # The delivery now reports the newer change, which has had no attempt yet.
        set_={"next_attempt_at": soon, "attempts": 0},
        where=WebhookDelivery.next_attempt_at > soon,
    )
    after_commit.note(session, session.scalars(once.returning(WebhookDelivery.endpoint_id), rows))


def topic(payload: Mapping[str, Any]) -> str | None:
    """The topic of an event, by which later events are merged into it; None if it is never merged."""
    if payload["type"] != Event.CALENDAR_CHANGED:
        return None
    data = payload["data"]
    subject = "\n".join((data["userId"], data["provider"], data["calendarId"]))
    return hashlib.sha256(subject.encode()).hexdigest()


_Listener = Row[int, str, str, str | None, str | None, str, list[str]]


def _listeners(session: Session, event: Event, connection_id: str) -> list[_Listener]:
    """The endpoints that are subscribed to an event of a connection, each with the connection's user."""
    theirs = select(Membership.organization_id).where(Membership.user_id == User.id).correlate(User)
    query = (
        select(
            OAuthConnection.user_id,
            User.custom_id,
            OAuthConnection.provider,
            OAuthConnection.email,
            OAuthConnection.main_calendar_id,
            WebhookEndpoint.id.label("endpoint_id"),
            WebhookEndpoint.events,
        )
        .select_from(OAuthConnection)
        .join(User, User.id == OAuthConnection.user_id)
        .join(
            WebhookEndpoint,
            or_(WebhookEndpoint.organization_id.is_(None), WebhookEndpoint.organization_id.in_(theirs)),
        )
        .where(OAuthConnection.id == connection_id, WebhookEndpoint.disabled_at.is_(None))
        # One order for row locks, so that concurrent recordings do not deadlock.
        .order_by(WebhookEndpoint.id)
    )
    return [row for row in session.execute(query) if event in row.events]


def _calendar_name(connection: _Listener, calendar_id: str) -> str:
    """The name of a calendar in events.

    Google's main calendar is ``primary``: its id is a person's address, which events must not contain.
    Microsoft's is named by its id once Graph has reported it.
    """
    main = connection.main_calendar_id
    if connection.provider == "microsoft" and main is not None:
        return main if calendar_id == MAIN else calendar_id
    addresses = {each.lower() for each in (connection.email, main) if each}
    return MAIN if calendar_id.lower() in addresses else calendar_id


def _endpoints(within: int | None) -> Select[WebhookEndpoint]:
    query = select(WebhookEndpoint)
    return query if within is None else query.where(WebhookEndpoint.organization_id == within)


def associated_data(endpoint_id: str) -> str:
    """The associated data of an encrypted secret."""
    return f"webhook_endpoints/{endpoint_id}/secret"

"""Webhook endpoints, and the events that are recorded for them."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, delete, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from scheduling.json_render import timestamp
from store.security.crypto import Keyring
from store.sql import database
from store.sql.models import (
    Membership,
    OAuthConnection,
    Organization,
    OrganizationGrant,
    User,
    WebhookDelivery,
    WebhookEndpoint,
    now,
)
from store.sql.queries import webhook_secrets

# Limit for each organization, and for endpoints of all organizations: an event is recorded for each endpoint.
MAX_ENDPOINTS = 100

# Shortest interval between attempts for a calendar that changes continuously while its receiver fails.
SOON = timedelta(seconds=60)

# The type of an event that a client requests; it is about no user, and no endpoint subscribes to it.
TEST_EVENT = "webhook.test"

# Both providers accept this alias for the main calendar.
MAIN = "primary"

_INSERT: Mapping[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


class TooMany(Exception):
    """There are already ``MAX_ENDPOINTS`` endpoints."""


class EndpointRow(NamedTuple):
    """An endpoint with its organization's slug, or None for an endpoint of all organizations."""

    endpoint: WebhookEndpoint
    organization: str | None


class WebhookEvent(StrEnum):
    """The types of webhook events."""

    CALENDAR_CHANGED = "calendar.changed"
    CONNECTION_EXPIRED = "connection.expired"
    CONNECTION_RESTORED = "connection.restored"
    GRANT_EXPIRED = "grant.expired"
    GRANT_RESTORED = "grant.restored"
    HOLD_CREATED = "hold.created"
    HOLD_EXPIRED = "hold.expired"
    HOLD_RELEASED = "hold.released"


def create(
    session: Session, keyring: Keyring, *, url: str, events: Sequence[str], organization_id: int | None
) -> tuple[WebhookEndpoint, str]:
    """Register an endpoint; returns it with its secret, which is not shown again.

    :raise TooMany: when the limit is reached; concurrent calls may exceed it
    """
    # IS, not =: an endpoint of all organizations has NULL.
    beside = select(func.count()).where(WebhookEndpoint.organization_id.is_not_distinct_from(organization_id))
    if session.scalars(beside).one() >= MAX_ENDPOINTS:
        raise TooMany
    secret = webhook_secrets.new_secret()
    endpoint_id = f"wh_{secrets.token_hex(12)}"
    row = WebhookEndpoint(
        id=endpoint_id,
        organization_id=organization_id,
        url=url,
        events=list(events),
        sealed_secret=keyring.encrypt(secret, webhook_secrets.associated_data(endpoint_id)),
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


def find(session: Session, endpoint_id: str, *, organization_id: int | None) -> WebhookEndpoint | None:
    """One endpoint."""
    return session.scalars(_endpoints(organization_id).where(WebhookEndpoint.id == endpoint_id)).one_or_none()


def existing(session: Session, endpoint_ids: Collection[str]) -> set[str]:
    """Those of ``endpoint_ids`` that exist."""
    found = select(WebhookEndpoint.id).where(WebhookEndpoint.id.in_(endpoint_ids))
    return set(session.scalars(found))


def remove(session: Session, endpoint_id: str) -> None:
    """Delete an endpoint with its deliveries."""
    session.execute(delete(WebhookEndpoint).where(WebhookEndpoint.id == endpoint_id))


def record(
    session: Session, event: WebhookEvent, connection_id: str, *, calendar_id: str | None = None
) -> None:
    """Record an event of a connection for every subscribed endpoint, in the caller's transaction.

    It is sent after the commit. If a change of the same calendar is recorded and not yet being sent, no other
    is recorded, because the receiver reads the current state anyway. The recorded one is sent within
    ``SOON``, even if its next attempt was due later.
    """
    record_all(session, event, [connection_id], calendar_id=calendar_id)


def record_all(
    session: Session, event: WebhookEvent, connection_ids: Collection[str], *, calendar_id: str | None = None
) -> None:
    """Record an event of each of some connections as ``record`` does, in two statements."""
    listeners = _listeners(session, event, connection_ids) if connection_ids else []
    if not listeners:
        return
    moment = time.time_ns() // 1_000_000
    rows = []
    for listener in listeners:
        data = {"userId": listener.custom_id, "provider": listener.provider}
        if calendar_id is not None:
            data["calendarId"] = _calendar_name(listener, calendar_id)
        payload = {"type": event.value, "timestamp": timestamp(moment), "data": data}
        rows.append(
            {
                "id": delivery_id(moment),
                "endpoint_id": listener.endpoint_id,
                "user_id": listener.user_id,
                "topic": topic(payload),
                "event": event.value,
                "payload": payload,
            }
        )
    insert = _INSERT[session.get_bind().dialect.name](WebhookDelivery)
    soon = now() + SOON
    once = insert.on_conflict_do_update(
        index_elements=[WebhookDelivery.endpoint_id, WebhookDelivery.topic],
        # The delivery now reports the newer change, which has had no attempt yet.
        set_={"next_attempt_at": soon, "attempts": 0},
        where=WebhookDelivery.next_attempt_at > soon,
    )
    database.note_events(session, session.scalars(once.returning(WebhookDelivery.endpoint_id), rows))


def record_grant(session: Session, event: WebhookEvent, organization_id: int, provider: str) -> None:
    """Record one event of an organization's grant, for every subscribed endpoint that may receive it.

    It is sent after the commit. Its data name the organization, and none of its members.
    """
    query = (
        select(WebhookEndpoint.id, WebhookEndpoint.events, Organization.slug)
        .join(
            Organization,
            or_(
                WebhookEndpoint.organization_id.is_(None), WebhookEndpoint.organization_id == Organization.id
            ),
        )
        .where(Organization.id == organization_id, WebhookEndpoint.disabled_at.is_(None))
        .order_by(WebhookEndpoint.id)
    )
    listeners = [row for row in session.execute(query) if event in row.events]
    moment = time.time_ns() // 1_000_000
    for listener in listeners:
        data = {"organization": listener.slug, "provider": provider}
        payload = {"type": event.value, "timestamp": timestamp(moment), "data": data}
        row = WebhookDelivery(
            id=delivery_id(moment), endpoint_id=listener.id, event=event.value, payload=payload
        )
        session.add(row)
    session.flush()
    database.note_events(session, [listener.id for listener in listeners])


def record_test(session: Session, endpoint_id: str) -> WebhookDelivery:
    """Record a test event for one endpoint, whatever it subscribes to; it is sent after the commit."""
    moment = time.time_ns() // 1_000_000
    payload = {"type": TEST_EVENT, "timestamp": timestamp(moment), "data": {"webhookId": endpoint_id}}
    row = WebhookDelivery(id=delivery_id(moment), endpoint_id=endpoint_id, event=TEST_EVENT, payload=payload)
    session.add(row)
    session.flush()
    database.note_events(session, [endpoint_id])
    return row


def delivery_id(moment: int) -> str:
    """A random id that sorts by time."""
    return f"msg_{moment:012x}{secrets.token_hex(10)}"


def resume(session: Session, row: WebhookEndpoint) -> None:
    """End the pause of an endpoint, or enable it; its pending deliveries are sent after the commit."""
    row.paused_at = row.disabled_at = None
    session.flush()
    database.note_events(session, [row.id])


def topic(payload: Mapping[str, Any]) -> str | None:
    """The topic of an event, by which later events are merged into it; None if it is never merged."""
    if payload["type"] != WebhookEvent.CALENDAR_CHANGED:
        return None
    data = payload["data"]
    subject = "\n".join((data["userId"], data["provider"], data["calendarId"]))
    return hashlib.sha256(subject.encode()).hexdigest()


_Listener = Row[int, str, str, str | None, str | None, str, list[str]]


def _listeners(session: Session, event: WebhookEvent, connection_ids: Collection[str]) -> list[_Listener]:
    """The endpoints that are subscribed to an event of some connections, each with a connection's user.

    A delegated connection concerns only the organization whose grant reads it.
    """
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
        .join(OrganizationGrant, OrganizationGrant.id == OAuthConnection.grant_id, isouter=True)
        .where(
            or_(
                WebhookEndpoint.organization_id.is_(None),
                OAuthConnection.grant_id.is_(None),
                OrganizationGrant.organization_id == WebhookEndpoint.organization_id,
            )
        )
        .where(OAuthConnection.id.in_(connection_ids), WebhookEndpoint.disabled_at.is_(None))
        # One order for row locks, so that concurrent recordings do not deadlock.
        .order_by(WebhookEndpoint.id, OAuthConnection.id)
    )
    return [row for row in session.execute(query) if event in row.events]


def _calendar_name(connection: _Listener, calendar_id: str) -> str:
    """The name of a calendar in events, as in answers: the real id, also of the main calendar.

    While the provider has not returned the id of the main calendar, it is the address at Google, and the
    alias at Microsoft.
    """
    google = connection.provider != "microsoft"
    main = connection.main_calendar_id or (connection.email if google else None)
    is_main = calendar_id == MAIN
    if google:
        addresses = {each.lower() for each in (connection.email, connection.main_calendar_id) if each}
        is_main = is_main or calendar_id.lower() in addresses
    return main or MAIN if is_main else calendar_id


def _endpoints(organization_id: int | None) -> Select[WebhookEndpoint]:
    query = select(WebhookEndpoint)
    return (
        query if organization_id is None else query.where(WebhookEndpoint.organization_id == organization_id)
    )

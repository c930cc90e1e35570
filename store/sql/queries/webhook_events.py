"""The events of webhooks, recorded for the endpoints that subscribe to them, and sent after the commit."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeVarTuple

from sqlalchemy import Row, Select, insert, or_, select
from sqlalchemy.orm import Session

from scheduling.json_render import timestamp
from store.cache.cache_tags import has_global_ids
from store.sql.database import insert_or_update, note_events
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

# Shortest interval between attempts for a calendar that changes continuously while its receiver fails.
SOON = timedelta(seconds=60)

# The type of an event that a client requests; it is about no user, and no endpoint subscribes to it.
TEST_EVENT = "webhook.test"

# Both providers accept this alias for the main calendar.
MAIN = "primary"


class WebhookEvent(StrEnum):
    """The types of webhook events."""

    CALENDAR_CHANGED = "calendar.changed"
    EVENT_CREATED = "event.created"
    EVENT_UPDATED = "event.updated"
    EVENT_DELETED = "event.deleted"
    CONNECTION_EXPIRED = "connection.expired"
    CONNECTION_RESTORED = "connection.restored"
    GRANT_EXPIRED = "grant.expired"
    GRANT_RESTORED = "grant.restored"
    HOLD_CREATED = "hold.created"
    HOLD_EXPIRED = "hold.expired"
    HOLD_RELEASED = "hold.released"


# About single events of watched calendars.
OF_EVENTS = (WebhookEvent.EVENT_CREATED, WebhookEvent.EVENT_UPDATED, WebhookEvent.EVENT_DELETED)


_Ts = TypeVarTuple("_Ts")


class EventChange(NamedTuple):
    """A change of an event of a calendar, or of a whole series, whose id is both ids then.

    ``content`` is the event as in answers; None for a deleted one.
    """

    kind: WebhookEvent
    event_id: str
    series_id: str | None = None
    content: Mapping[str, Any] | None = None


class HoldView(NamedTuple):
    """A promised hold and its users' identifiers, in alphabetical order; times are in milliseconds.

    ``claimed``: a create is using it. ``organization_id`` as in ``Hold``. ``user_ids`` are the internal ids
    of ``users``, in the same order.
    """

    id: str
    users: tuple[str, ...]
    starts: int
    ends: int
    expires_at: int
    note: str | None
    claimed: bool
    organization_id: int | None = None
    user_ids: tuple[int, ...] = ()


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
    listeners = _listeners(session, [event], connection_ids, keep=True) if connection_ids else []
    if not listeners:
        return
    moment = time.time_ns() // 1_000_000
    rows = []
    for listener in listeners:
        payload = _payload(event, moment, _subject(listener, calendar_id))
        rows.append(
            {
                "id": _delivery_id(moment),
                "endpoint_id": listener.endpoint_id,
                "user_id": listener.user_id,
                "topic": topic(payload),
                "event": event.value,
                "payload": payload,
            }
        )
    upsert = insert_or_update(session, WebhookDelivery)
    soon = now() + SOON
    once = upsert.on_conflict_do_update(
        index_elements=[WebhookDelivery.endpoint_id, WebhookDelivery.topic],
        # The delivery now reports the newer change, which has had no attempt yet.
        set_={"next_attempt_at": soon, "attempts": 0},
        where=WebhookDelivery.next_attempt_at > soon,
    )
    note_events(session, session.scalars(once.returning(WebhookDelivery.endpoint_id), rows))


def follow_events(session: Session, connection_ids: Collection[str]) -> set[str]:
    """Those of some connections about whose events endpoints want to know."""
    rows = _listeners(session, OF_EVENTS, connection_ids) if connection_ids else ()
    return {row.connection_id for row in rows}


def anybody_follows_events(session: Session) -> bool:
    """Whether an endpoint wants to know about single events."""
    enabled = select(WebhookEndpoint.events).where(WebhookEndpoint.disabled_at.is_(None))
    return any(not set(OF_EVENTS).isdisjoint(events) for events in session.scalars(enabled))


def record_changes(
    session: Session, connection_id: str, calendar_id: str, changes: Collection[EventChange]
) -> None:
    """Record changes of events of a calendar, one delivery for each endpoint and change."""
    moment = time.time_ns() // 1_000_000
    rows = []
    for listener in _listeners(session, OF_EVENTS, [connection_id], keep=True):
        subject = _subject(listener, calendar_id)
        for change in (each for each in changes if each.kind in listener.events):
            data: dict[str, Any] = {**subject, "eventId": change.event_id}
            if change.series_id is not None:
                data["seriesId"] = change.series_id
            if listener.content and change.content is not None:
                data["event"] = {**change.content, "calendarId": subject["calendarId"]}
            rows.append(
                {
                    "id": _delivery_id(moment),
                    "endpoint_id": listener.endpoint_id,
                    "user_id": listener.user_id,
                    "subject": _digest(connection_id, calendar_id, change.series_id or change.event_id),
                    "event": change.kind.value,
                    "payload": _payload(change.kind, moment, data),
                }
            )
    if rows:
        session.execute(insert(WebhookDelivery), rows)
        note_events(session, {each["endpoint_id"] for each in rows})


def record_grant(session: Session, event: WebhookEvent, organization_id: int, provider: str) -> None:
    """Record one event of an organization's grant, for every subscribed endpoint that may receive it.

    Its data name the organization, and none of its members.
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
    moment = time.time_ns() // 1_000_000
    for listener in session.execute(_kept(query)).all():
        if event in listener.events:
            _add(session, listener.id, event, moment, {"organization": listener.slug, "provider": provider})
    session.flush()


def record_test(session: Session, endpoint_id: str) -> WebhookDelivery:
    """Record a test event for one endpoint, whatever it subscribes to."""
    row = _add(session, endpoint_id, TEST_EVENT, time.time_ns() // 1_000_000, {"webhookId": endpoint_id})
    session.flush()
    return row


def record_holds(
    session: Session, event: WebhookEvent, holds: Collection[HoldView], *, reason: str | None = None
) -> None:
    """Record an event of each of some holds, for every endpoint that names it.

    The endpoint of an organization receives those of the holds that the organization took, with the names of
    its members only.
    """
    if not holds:
        return
    query = select(WebhookEndpoint.id, WebhookEndpoint.events, WebhookEndpoint.organization_id)
    enabled = query.where(WebhookEndpoint.disabled_at.is_(None)).order_by(WebhookEndpoint.id)
    moment = time.time_ns() // 1_000_000
    for listener in [row for row in session.execute(_kept(enabled)) if event in row.events]:
        own = [each for each in holds if listener.organization_id in (None, each.organization_id)]
        members = members_among(session, listener.organization_id, [n for each in own for n in each.user_ids])
        for hold in own:
            named = [each for each in zip(hold.users, hold.user_ids, strict=True) if each[1] in members]
            if not named:
                continue
            data: dict[str, Any] = {
                "holdId": hold.id,
                "users": [user for user, _ in named],
                "start": timestamp(hold.starts),
                "end": timestamp(hold.ends),
                "expiresAt": timestamp(hold.expires_at),
            }
            if reason is not None:
                data["reason"] = reason
            _add(session, listener.id, event, moment, data, [number for _, number in named])
    session.flush()


def topic(payload: Mapping[str, Any]) -> str | None:
    """The topic of an event, by which later events are merged into it; None if it is never merged."""
    if payload["type"] != WebhookEvent.CALENDAR_CHANGED:
        return None
    data = payload["data"]
    # Without the connection in events of the release before.
    return _digest(data["userId"], data["provider"], data["calendarId"], data.get("connectionId", ""))


def members_among(session: Session, organization_id: int | None, user_ids: Collection[int]) -> set[int]:
    """Those of some users who are members of the organization of an endpoint; all for an endpoint of none."""
    if organization_id is None or not user_ids:
        return set(user_ids)
    query = select(Membership.user_id).where(
        Membership.organization_id == organization_id, Membership.user_id.in_(user_ids)
    )
    return set(session.scalars(query))


def about(
    payload: dict[str, Any], user_ids: Sequence[int] | None, members: Collection[int]
) -> dict[str, Any]:
    """The event of a hold, which names ``members`` only; any other event as it is.

    ``user_ids`` are those of the users in the payload, in the same order; None for other events.
    """
    if user_ids is None:
        return payload
    named = zip(payload["data"]["users"], user_ids, strict=True)
    users = [user for user, number in named if number in members]
    return {**payload, "data": {**payload["data"], "users": users}}


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _subject(listener: _Listener, calendar_id: str | None) -> dict[str, Any]:
    """The data of an event of a connection or a calendar."""
    data = {
        "userId": listener.custom_id,
        "provider": listener.provider,
        "connectionId": listener.first_id or listener.connection_id,
    }
    return data if calendar_id is None else {**data, "calendarId": _calendar_name(listener, calendar_id)}


def _payload(event: str, moment: int, data: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": str(event), "timestamp": timestamp(moment), "data": data}


def _delivery_id(moment: int) -> str:
    """A random id that sorts by time."""
    return f"msg_{moment:012x}{secrets.token_hex(10)}"


def _add(
    session: Session,
    endpoint_id: str,
    event: str,
    moment: int,
    data: Mapping[str, Any],
    user_ids: list[int] | None = None,
) -> WebhookDelivery:
    """Add the delivery of an event to one endpoint."""
    row = WebhookDelivery(
        id=_delivery_id(moment),
        endpoint_id=endpoint_id,
        event=str(event),
        payload=_payload(event, moment, data),
        user_ids=user_ids,
    )
    session.add(row)
    note_events(session, [endpoint_id])
    return row


_Listener = Row[int, str, str, str | None, str | None, str, list[str], bool, str, str | None]


def _kept(query: Select[*_Ts]) -> Select[*_Ts]:
    """A query of endpoints that locks them against deletion.

    The deliveries refer to them. An endpoint that is being deleted is waited for, and not found.
    """
    return query.with_for_update(read=True, key_share=True, of=WebhookEndpoint)


def _listeners(
    session: Session,
    events: Collection[WebhookEvent],
    connection_ids: Collection[str],
    *,
    keep: bool = False,
) -> list[_Listener]:
    """The endpoints that are subscribed to one of some events of connections, each with a connection's user.

    A delegated connection concerns only the organization whose grant reads it. ``keep`` locks the endpoints
    against deletion.
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
            WebhookEndpoint.content,
            OAuthConnection.id.label("connection_id"),
            OAuthConnection.first_id,
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
    rows = session.execute(_kept(query) if keep else query)
    return [row for row in rows if not set(events).isdisjoint(row.events)]


def _calendar_name(connection: _Listener, calendar_id: str) -> str:
    """The name of a calendar in events, as in answers: the real id, also of the main calendar.

    While the provider has not returned the id of the main calendar, it is the address at Google, and the
    alias at Microsoft.
    """
    global_ids = has_global_ids(connection.provider)
    main = connection.main_calendar_id or (connection.email if global_ids else None)
    is_main = calendar_id == MAIN
    if global_ids:
        addresses = {each.lower() for each in (connection.email, connection.main_calendar_id) if each}
        is_main = is_main or calendar_id.lower() in addresses
    return main or MAIN if is_main else calendar_id

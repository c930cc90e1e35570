"""The data of a person: every row about a user, without secrets; and what a deletion has to erase besides.

Each column of each table is exported, or has a reason in ``WITHHELD``; each table that is not exported has a
reason in ``OF_NOBODY``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, String, Table, cast, or_, select
from sqlalchemy.orm import Session

from store.sql.models import (
    AuditRecord,
    AvailabilityProfile,
    Base,
    Channel,
    HeldName,
    HeldTime,
    Hold,
    Membership,
    OAuthConnection,
    Organization,
    User,
    UserInvitation,
    WebhookDelivery,
)
from store.sql.queries import webhook_events

_INTERNAL = "a number of this installation, which no answer shows"
_SECRET = "a secret, or the hash of one"  # noqa: S105
_REQUEST = "names the request that has stored the row"
_DIGEST = "a digest of other columns"

# Why a column of an exported table is left out.
WITHHELD = {
    "users.id": _INTERNAL,
    "memberships.organization_id": _INTERNAL,
    "memberships.user_id": _INTERNAL,
    "availability_profiles.user_id": _INTERNAL,
    "oauth_connections.user_id": _INTERNAL,
    "oauth_connections.sealed_access_token": _SECRET,
    "oauth_connections.sealed_refresh_token": _SECRET,
    "channels.secret_digest": _SECRET,
    "holds.organization_id": _INTERNAL,
    "holds.request": _REQUEST,
    "holds.claim": _REQUEST,
    "held_times.user_id": _INTERNAL,
    "held_names.user_id": _INTERNAL,
    "webhook_deliveries.user_id": _INTERNAL,
    "webhook_deliveries.user_ids": _INTERNAL,
    "webhook_deliveries.topic": _DIGEST,
    "webhook_deliveries.subject": _DIGEST,
    "user_invitations.digest": _SECRET,
    "user_invitations.user_id": _INTERNAL,
    "user_invitations.administrator_id": _INTERNAL,
    "user_invitations.security_stamp": _SECRET,
}
_OPERATORS = "of the people who operate the installation"
_COMPANY = "of an organization, and not of one person"
# Why a table is left out.
OF_NOBODY = {
    "organizations": _COMPANY,
    "organization_grants": _COMPANY,
    "api_keys": _COMPANY,
    "webhook_endpoints": _COMPANY,
    "provider_clients": _COMPANY,
    "administrators": _OPERATORS,
    "identities": _OPERATORS,
    "recovery_codes": _OPERATORS,
    "dashboard_sessions": _OPERATORS,
    "invitations": _OPERATORS,
    "event_feeds": "digests of events, encrypted; the events are at the provider",
    "idempotency_keys": "answers to requests of a program, encrypted, for a day",
}


def export(session: Session, user: User) -> dict[str, list[dict[str, Any]]]:
    """Every row about a user, by table, with the names and values of the columns.

    A membership has the slug of its organization besides. The event of a hold names this user only.
    """
    found = {model.__tablename__: _rows(session, model, about) for model, about in _conditions(user)}
    joined = select(Organization.id, Organization.slug).join(
        Membership, Membership.organization_id == Organization.id
    )
    slugs = {row.id: row.slug for row in session.execute(joined.where(Membership.user_id == user.id))}
    # A membership may have ended since its row was read.
    found["memberships"] = [
        {**row, "organization": slugs[row["organization_id"]]}
        for row in found["memberships"]
        if row["organization_id"] in slugs
    ]
    deliveries = [row for row in found["webhook_deliveries"] if _is_about(row, user.id)]
    for row in deliveries:
        row["payload"] = webhook_events.about(row["payload"], row["user_ids"], [user.id])
    found["webhook_deliveries"] = deliveries
    return {table: [_shown(table, row) for row in rows] for table, rows in found.items()}


def forget_in_deliveries(session: Session, user_id: int) -> None:
    """Remove a user from the stored events of holds, which name several users."""
    for row in session.scalars(select(WebhookDelivery).where(_may_name(user_id))):
        numbers = row.user_ids or []
        others = [number for number in numbers if number != user_id]
        if others != numbers:
            row.payload = webhook_events.about(row.payload, numbers, others)
            row.user_ids = others


def _conditions(user: User) -> Iterator[tuple[type[Base], ColumnElement[bool]]]:
    """How the rows about a user are found in each table."""
    yield User, User.id == user.id
    yield Membership, Membership.user_id == user.id
    yield AvailabilityProfile, AvailabilityProfile.user_id == user.id
    yield OAuthConnection, OAuthConnection.user_id == user.id
    own = select(OAuthConnection.id).where(OAuthConnection.user_id == user.id)
    yield Channel, Channel.connection_id.in_(own)
    yield Hold, Hold.id.in_(select(HeldTime.hold_id).where(HeldTime.user_id == user.id))
    yield HeldTime, HeldTime.user_id == user.id
    yield HeldName, HeldName.user_id == user.id
    yield WebhookDelivery, or_(WebhookDelivery.user_id == user.id, _may_name(user.id))
    yield UserInvitation, UserInvitation.user_id == user.id
    # Records about an account begin with the user.
    account = AuditRecord.subject.startswith(f"{user.custom_id}/", autoescape=True)
    yield AuditRecord, or_(AuditRecord.subject == user.custom_id, account)


def _rows(session: Session, model: type[Base], about: ColumnElement[bool]) -> list[dict[str, Any]]:
    table = model.__table__
    assert isinstance(table, Table), "each model has one table"
    # Ids at random say nothing about the order of things.
    order = [table.columns[each] for each in ("created_at",) if each in table.columns]
    query = select(*table.columns).where(about).order_by(*order, *table.primary_key.columns)
    return [dict(row) for row in session.execute(query).mappings()]


def _may_name(user_id: int) -> ColumnElement[bool]:
    """Whether the digits of a user's id are in the text of the list: a condition that SQL can decide."""
    return cast(WebhookDelivery.user_ids, String).contains(str(user_id))


def _is_about(row: dict[str, Any], user_id: int) -> bool:
    return row["user_id"] == user_id or user_id in (row["user_ids"] or ())


def _shown(table: str, row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if f"{table}.{name}" not in WITHHELD}

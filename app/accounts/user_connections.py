"""The connections of a user by their ids: reading them with their last reads, and changing one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from app.accounts import delegations
from app.accounts.disconnect import clean_up
from app.accounts.ownership import CONNECTION, own_user
from app.http.errors import Invalid, NotFound
from app.schemas.error_codes import Code
from app.schemas.timestamps import EPOCH, MILLISECOND
from app.services import services
from providers import registry
from store.cache.last_reads import LastRead
from store.sql.models import OAuthConnection
from store.sql.queries import audit, connections, users
from store.sql.queries.api_keys import Caller
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.connections import ReplacedConnection


@dataclass(frozen=True, slots=True)
class UserConnection:
    """A connection, whether it is the default one of its provider, and its last read, if there was one."""

    row: OAuthConnection
    is_default: bool
    last_read: LastRead | None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a connection: its label if ``labels`` says so, and whether it is the default one."""

    label: str | None = None
    labels: bool = False
    default: bool | None = None


def of_user(caller: Caller, custom_id: str) -> list[UserConnection]:
    """All connections of a user that the caller may know of, in the order of answers.

    :raise NotFound: for a user that the caller does not reach
    """
    with services().stores.database.reading() as session:
        user = users.load(
            session, custom_id, organization_id=caller.organization_id, include=["oauthConnections"]
        )
    if user is None:
        raise NotFound("User not found", Code.USER_NOT_FOUND)
    last_reads: Mapping[str, LastRead] = services().stores.last_reads.load(
        [row.id for row in user.connections]
    )
    # The default one is the first of its provider.
    defaults = {row.provider: row.id for row in reversed(user.connections)}
    return [
        UserConnection(row, defaults[row.provider] == row.id, last_reads.get(row.id))
        for row in user.connections
    ]


def one(caller: Caller, custom_id: str, public_id: str) -> UserConnection:
    """One connection of a user.

    :raise NotFound: for a user that the caller does not reach, or an id of none of the user's connections
    """
    for each in of_user(caller, custom_id):
        if each.row.public_id == public_id:
            return each
    raise NotFound("OAuth connection not found", Code.CONNECTION_NOT_FOUND)


def store(caller: Caller, custom_id: str, body: Mapping[str, Any]) -> tuple[OAuthConnection, bool]:
    """Store tokens as a connection; returns it, and whether it replaces one of the same account.

    Do not call this within a transaction, because it waits for a provider.

    :raise ApiError: for a user that the caller does not reach, or may not change
    """
    stores, provider = services().stores, body["provider"]
    with stores.database.writing() as session:
        row, replaced = connections.replace(
            session,
            stores.keyring,
            user_id=own_user(session, caller, custom_id, otherwise=CONNECTION).id,
            provider=provider,
            email=body["email"],
            scope=registry.scopes(provider).expand_levels(body["scope"]),
            tokens=posted_tokens(body),
            account=ReplacedConnection.ADD,
            label=body["label"],
        )
        action = "replaceConnection" if replaced else "storeConnection"
        audit.record(session, actor=caller.visible, action=action, subject=f"{custom_id}/{provider}")
    clean_up(replaced)
    return row, bool(replaced)


def delegate(caller: Caller, custom_id: str, body: Mapping[str, Any]) -> tuple[OAuthConnection, bool]:
    """Store a connection by an organization's grant; returns it, and whether there was one for the address.

    :raise ApiError: see ``delegations.connect``
    """
    with services().stores.database.writing() as session:
        row, done = delegations.connect(
            session, caller, body["organization"], body["provider"], custom_id, body["email"], adds=True
        )
        if body["label"] is not None:
            row.label = body["label"]
    clean_up(done.replaced)
    return row, not done.created


def posted_tokens(body: Mapping[str, Any]) -> Tokens:
    """The tokens in the body of a request."""
    expires = body["expiresAt"]
    at = None if expires is None else EPOCH + expires.milliseconds(_UTC) * MILLISECOND
    return Tokens(body["accessToken"], body["refreshToken"], at)


_UTC = ZoneInfo("UTC")


def change(caller: Caller, custom_id: str, public_id: str, change: Change) -> OAuthConnection:
    """Change the label of a connection, or make it the default one of its provider; audited.

    :raise ApiError: for a user that the caller does not reach, or may not change
    :raise NotFound: for an id of none of the user's connections
    :raise Invalid: when the default one is to be one no more: another one has to become it
    """
    with services().stores.database.writing() as session:
        user = own_user(session, caller, custom_id, otherwise=CONNECTION)
        row = connections.find_one(session, user.id, public_id, organization_id=caller.organization_id)
        if row is None:
            raise NotFound("OAuth connection not found", Code.CONNECTION_NOT_FOUND)
        before = connections.find(session, user.id, row.provider, organization_id=caller.organization_id)
        was_default = before is not None and before.id == row.id
        if change.default is False and was_default:
            raise Invalid(
                "default cannot be false for the default connection: make another one the default instead",
                param="default",
            )
        changes: dict[str, tuple[str | None, str | None]] = {}
        if change.labels and change.label != row.label:
            changes["label"] = (row.label, change.label)
            row.label = change.label
        if change.default and not was_default:
            changes["default"] = (None if before is None else before.public_id, row.public_id)
            connections.make_default(session, row)
        if changes:
            audit.record(
                session,
                actor=caller.visible,
                action="changeConnection",
                subject=f"{custom_id}/{row.provider}",
                changes=changes,
            )
    return row

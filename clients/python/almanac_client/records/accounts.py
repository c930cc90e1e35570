"""Users, organizations, and connections with providers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import field

from almanac_client.records.base import Record

if TYPE_CHECKING:
    from almanac_client.words import (
        ConnectionType,
        ConsentProvider,
        DirectoryKind,
        FailureReason,
        GrantType,
        Provider,
    )
else:
    # A newer server may use further words, so any text is decoded.
    ConnectionType = ConsentProvider = DirectoryKind = FailureReason = GrantType = Provider = str


class PersonData(Record):
    """Everything that is stored about a user, by kind; a row has the columns of its table."""

    users: list[dict[str, Any]]
    memberships: list[dict[str, Any]]
    availability_profiles: list[dict[str, Any]]
    oauth_connections: list[dict[str, Any]]
    channels: list[dict[str, Any]]
    holds: list[dict[str, Any]]
    held_times: list[dict[str, Any]]
    held_names: list[dict[str, Any]]
    webhook_deliveries: list[dict[str, Any]]
    user_invitations: list[dict[str, Any]]
    audit_records: list[dict[str, Any]]


class Connection(Record):
    """A provider account of a user."""

    provider: Provider
    email: str | None
    alive: bool
    expires_at: datetime | None
    scope: list[str]
    type: ConnectionType
    access_token: str | None
    refresh_token: str | None

    def __repr__(self) -> str:
        # Tokens must not get into logs.
        return f"<Connection {self.provider} {self.email}{'' if self.alive else ', ended'}>"


class LastRead(Record, kw_only=True):
    """The result of the last read of a main calendar; ``since``: the beginning of the run of failures."""

    at: datetime
    ok: bool
    reason: FailureReason | None = None
    message: str | None = None
    since: datetime | None = None


class UserConnection(Record, kw_only=True):
    """An account of a user, by the id of its connection."""

    id: str
    provider: Provider
    type: ConnectionType
    email: str | None
    label: str | None
    default: bool
    alive: bool
    scope: list[str]
    expires_at: datetime | None
    created_at: datetime
    last_read: LastRead | None


class Grant(Record, kw_only=True):
    """An administrator's grant for a whole organization, without its secrets.

    ``email`` and ``service_account`` are Google's; ``tenant`` and ``client_id`` are Microsoft's.
    """

    provider: ConsentProvider
    type: GrantType
    email: str | None = None
    service_account: str | None = None
    tenant: str | None = None
    client_id: str | None = None
    scope: list[str]
    alive: bool
    ended_at: datetime | None = None
    ended_because: str | None = None
    created_at: datetime


class ImportedMembers(Record):
    """The users of an import, by what it has changed for them."""

    created: list[str]
    changed: list[str]
    unchanged: list[str]


class DirectoryEntry(Record, kw_only=True):
    """A person or a room of a directory; ``user_id`` is the user whom the grant reads under its address."""

    kind: DirectoryKind
    id: str
    email: str
    name: str
    building: str | None = None
    capacity: int | None = None
    user_id: str | None = None


class DirectoryAnswer(Record, kw_only=True):
    """The entries of a directory by address; ``more``: there are others, which are left out."""

    entries: list[DirectoryEntry] = field(name="data")
    more: bool = False


class Member(Record):
    """A user as a member of an organization."""

    id: str
    created_at: datetime


class Quotas(Record):
    """The limits of an organization that differ from the installation's settings."""

    requests_per_minute: int | None = None
    waiting_reads: int | None = None
    waiting_writes: int | None = None
    held_users: int | None = None
    webhook_turns: int | None = None


class Organization(Record, kw_only=True):
    """A workspace and its members."""

    slug: str
    name: str | None
    created_at: datetime
    members: list[Member]
    members_truncated: bool = False
    member_count: int | None = None
    quotas: Quotas | None = None


class AddedMembersAnswer(Record):
    """The users who are members now. ``count`` is the length of ``added``."""

    sentence: str = field(name="data")
    added: list[str]
    already_members: list[str]
    count: int


class RemovedMembersAnswer(Record):
    """The users who are not members any more. ``count`` is the length of ``removed``."""

    sentence: str = field(name="data")
    removed: list[str]
    not_members: list[str]
    count: int


class User(Record, kw_only=True):
    """A user; a relation that the request did not ``include`` is None."""

    id: str
    created_at: datetime
    oauth_connections: list[Connection] | None = None
    organizations: list[Organization] | None = None


class ProviderLink(Record):
    """A link to one provider's consent page."""

    provider: ConsentProvider
    link: str

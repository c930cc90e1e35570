"""Users, organizations, and connections with providers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import field

from almanac_client.records.base import Record

if TYPE_CHECKING:
    from almanac_client.words import ConnectionType, GrantType, Provider
else:
    # A newer server may use further words, so any text is decoded.
    ConnectionType = GrantType = Provider = str


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


class Grant(Record, kw_only=True):
    """An administrator's grant for a whole organization, without its secrets.

    ``email`` and ``service_account`` are Google's; ``tenant`` and ``client_id`` are Microsoft's.
    """

    provider: Provider
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


class Member(Record):
    """A user as a member of an organization."""

    id: str
    created_at: datetime


class Organization(Record, kw_only=True):
    """A workspace and its members."""

    slug: str
    name: str | None
    created_at: datetime
    members: list[Member]
    members_truncated: bool = False
    member_count: int | None = None


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

    provider: Provider
    link: str

"""The SQL tables."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    TypeDecorator,
    UniqueConstraint,
    and_,
    bindparam,
    exists,
    false,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    column_property,
    mapped_column,
    relationship,
)


class Role(StrEnum):
    """The rights of a person; each role may do everything that the roles before it may.

    A viewer changes only their own account. An operator changes everything except API keys,
    registrations with providers, and the people who sign in. An administrator changes everything.
    """

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"

    def includes(self, other: Role) -> bool:
        """Whether this role may do everything that the other one may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(other)

    def and_above(self) -> list[Role]:
        """The roles that include this one."""
        return [each for each in Role if each.includes(self)]


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime, stored in UTC. A naive datetime raises ``ValueError``."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"an instant has an offset, got {value!r}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        # SQLite stores no offset; stored values are UTC.
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


class Base(DeclarativeBase):
    """Constraints have names, so that migrations can refer to them and code can identify a violated one."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: UtcDateTime()}  # noqa: RUF012 - read by SQLAlchemy, never changed


# Without it SQLite gives the id of a deleted last row to the next row. A consent link, a cache entry or a log
# line of the deleted row would then name the new one. https://www.sqlite.org/autoinc.html
NEVER_REUSE_IDS = {"sqlite_autoincrement": True}


class Membership(Base):
    """A user's membership in an organization."""

    __tablename__ = "memberships"

    organization_id: Mapped[int] = mapped_column(
        ForeignKey("organizations.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    created_at: Mapped[datetime] = mapped_column(default=now)


class User(Base):
    """A person whose calendars are read. ``custom_id`` is the client's identifier; it may change."""

    __tablename__ = "users"
    __table_args__ = NEVER_REUSE_IDS

    id: Mapped[int] = mapped_column(primary_key=True)
    custom_id: Mapped[str] = mapped_column(String(128), unique=True)
    created_at: Mapped[datetime] = mapped_column(default=now)

    # Lazy loading raises: a list of users takes the same number of statements whatever its length.
    connections: Mapped[list[OAuthConnection]] = relationship(
        lazy="raise",
        order_by="OAuthConnection.provider, OAuthConnection.is_default.desc(), "
        "OAuthConnection.created_at, OAuthConnection.id",
        passive_deletes=True,
    )
    organizations: Mapped[list[Organization]] = relationship(
        secondary="memberships", lazy="raise", order_by="Organization.slug", back_populates="members"
    )


class AvailabilityProfile(Base):
    """What counts for a person on every route of scheduling; None: not stated.

    Windows, overrides and calendars are as the API shows them. ``calendars`` may name a connection that was
    removed since: it does not count.
    """

    __tablename__ = "availability_profiles"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    time_zone: Mapped[str | None] = mapped_column(String(64))
    schedules: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    overrides: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    calendars: Mapped[list[dict[str, str]] | None] = mapped_column(JSON(none_as_null=True))
    padding_before: Mapped[int | None]
    padding_after: Mapped[int | None]
    minimum_notice: Mapped[int | None]
    holiday_country: Mapped[str | None] = mapped_column(String(2))
    holiday_subdivision: Mapped[str | None] = mapped_column(String(64))


class Organization(Base):
    """A workspace: a group of users.

    ``quotas`` has those of ``store.coordination.shares:OWN`` that differ from the installation's.
    """

    __tablename__ = "organizations"
    __table_args__ = NEVER_REUSE_IDS

    id: Mapped[int] = mapped_column(primary_key=True)
    slug: Mapped[str] = mapped_column(String(128), unique=True)
    name: Mapped[str | None] = mapped_column(String(128))
    created_at: Mapped[datetime] = mapped_column(default=now)
    quotas: Mapped[dict[str, int] | None] = mapped_column(JSON(none_as_null=True))

    members: Mapped[list[User]] = relationship(
        secondary="memberships", lazy="raise", order_by="User.custom_id", back_populates="organizations"
    )


class OrganizationGrant(Base):
    """An administrator's grant for a whole domain (Google) or tenant (Microsoft).

    ``subject`` is the account that Google free/busy is read as, ``client_email`` the service account.
    ``client_id`` is the application of Microsoft; None is the installation's registration. ``sealed_secret``
    is encrypted and bound to ``id``: the key file of the service account or the application's secret; None
    is the installation's secret.
    """

    __tablename__ = "organization_grants"
    __table_args__ = (UniqueConstraint("organization_id", "provider"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id", ondelete="CASCADE"))
    provider: Mapped[str] = mapped_column(String(16))
    subject: Mapped[str | None] = mapped_column(String(320))
    client_email: Mapped[str | None] = mapped_column(String(320))
    tenant: Mapped[str | None] = mapped_column(String(256))
    client_id: Mapped[str | None] = mapped_column(String(512))
    sealed_secret: Mapped[bytes | None] = mapped_column(LargeBinary)
    scope: Mapped[list[str]] = mapped_column(JSON)
    alive: Mapped[bool] = mapped_column(default=True)
    # When the provider refused the grant, and its message; None while the grant is alive.
    ended_at: Mapped[datetime | None]
    ended_because: Mapped[str | None] = mapped_column(String(300))
    created_at: Mapped[datetime] = mapped_column(default=now)


class OAuthConnection(Base):
    """A user's connection with one provider account. Tokens are encrypted, bound to ``id`` and column.

    A delegated connection has a ``grant_id`` and no tokens: it is read by an organization's grant.

    ``id`` is random and never reused, so that nothing cached for a replaced connection is taken for its
    successor's. ``account_id`` is the provider's own id of the account (``sub`` at Google, the user's ``id``
    in Graph), ``main_calendar_id`` the provider's id of its main calendar, ``mailbox`` the address of that
    calendar's owner, ``time_zone`` the IANA name of that calendar's zone. Each is None until the provider has
    reported it; ``email`` may be from the client.
    ``obtained``: the service got this grant by its own consent flow, and may revoke it.

    ``public_id`` is the id in answers. It stays when the same account is connected again, which replaces the
    row. ``first_id`` is its column: None while the row is the first one of the account. ``is_default``: it is
    the user's default connection with the provider, which is exactly one of them (``connections.promote``).
    """

    __tablename__ = "oauth_connections"
    __table_args__ = (
        Index(None, "user_id", "provider"),
        # The name cannot be derived: it would be that of the index above.
        Index(
            "uq_oauth_connections_default",
            "user_id",
            "provider",
            unique=True,
            sqlite_where=text("is_default"),
            postgresql_where=text("is_default"),
        ),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    first_id: Mapped[str | None] = mapped_column(String(32), index=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    provider: Mapped[str] = mapped_column(String(16))
    email: Mapped[str | None] = mapped_column(String(320))
    # None for a delegated connection only.
    sealed_access_token: Mapped[bytes | None] = mapped_column(LargeBinary)
    sealed_refresh_token: Mapped[bytes | None] = mapped_column(LargeBinary)
    expires_at: Mapped[datetime | None] = mapped_column(index=True)
    scope: Mapped[list[str]] = mapped_column(JSON)
    account_id: Mapped[str | None] = mapped_column(String(256), index=True)
    main_calendar_id: Mapped[str | None] = mapped_column(String(2048))
    mailbox: Mapped[str | None] = mapped_column(String(320))
    time_zone: Mapped[str | None] = mapped_column(String(64))
    obtained: Mapped[bool] = mapped_column(default=False, server_default=false())
    alive: Mapped[bool] = mapped_column(default=True)
    # When the provider reported that the grant is gone, and its message; None while the grant is alive.
    ended_at: Mapped[datetime | None]
    ended_because: Mapped[str | None] = mapped_column(String(300))
    created_at: Mapped[datetime] = mapped_column(default=now)
    grant_id: Mapped[str | None] = mapped_column(
        ForeignKey("organization_grants.id", ondelete="CASCADE"), index=True
    )
    label: Mapped[str | None] = mapped_column(String(128))
    # The release before replaces every connection of the provider, by one without a value.
    is_default: Mapped[bool] = mapped_column(default=True, server_default=true())

    # Loaded with the row; a join would break ``FOR UPDATE`` of PostgreSQL.
    grant_alive: Mapped[bool | None] = column_property(
        select(OrganizationGrant.alive).where(OrganizationGrant.id == grant_id).scalar_subquery()
    )

    @property
    def public_id(self) -> str:
        """The id in answers."""
        return self.first_id or self.id

    @property
    def usable(self) -> bool:
        """Whether the connection is alive, and the organization's grant of a delegated connection too."""
        return self.alive and (self.grant_id is None or self.grant_alive is True)


class Channel(Base):
    """A provider's notification channel for one calendar: a watch channel (Google) or a subscription (Graph).

    ``id`` is ours, ``provider_id`` and ``resource`` are the provider's. The secret that authenticates
    notifications is stored as a hash. ``renew_at``, ``watch_until`` and ``expires_at`` are None until the
    provider has opened the channel, ``confirmed_at`` until a notification has arrived. From then until
    ``watch_until`` the calendar is watched.
    """

    __tablename__ = "channels"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    connection_id: Mapped[str] = mapped_column(
        ForeignKey("oauth_connections.id", ondelete="CASCADE"), index=True
    )
    calendar: Mapped[str] = mapped_column(String(2048))
    secret_digest: Mapped[str] = mapped_column(String(64))
    provider_id: Mapped[str | None] = mapped_column(String(256))
    resource: Mapped[str | None] = mapped_column(String(1024))
    created_at: Mapped[datetime] = mapped_column(default=now)
    confirmed_at: Mapped[datetime | None]
    renew_at: Mapped[datetime | None] = mapped_column(index=True)
    watch_until: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]


class EventFeed(Base):
    """The state of the events of a watched calendar, for webhooks about single events.

    ``calendar`` is the SHA-256 digest of the calendar's id. ``sealed_state`` is encrypted and bound to the
    row (``workers.upkeep.event_states.State``). ``version`` counts its changes: of two that are made at
    the same time, one is stored. ``synced_at`` is when the last comparison began, ``reported_at`` when the
    provider last reported a change.
    """

    __tablename__ = "event_feeds"

    connection_id: Mapped[str] = mapped_column(
        ForeignKey("oauth_connections.id", ondelete="CASCADE"), primary_key=True
    )
    calendar: Mapped[str] = mapped_column(String(64), primary_key=True)
    sealed_state: Mapped[bytes] = mapped_column(LargeBinary)
    version: Mapped[int] = mapped_column(default=1)
    synced_at: Mapped[datetime] = mapped_column(default=now)
    reported_at: Mapped[datetime | None]


class ApiKey(Base):
    """An API key: for the whole service or one organization, read-only or with all rights.

    ``rate_limit`` is in requests a minute; None is the installation's. After a rotation, ``previous_digest``
    is the hash of the replaced key, which is valid until ``previous_until``.
    """

    __tablename__ = "api_keys"
    __table_args__ = NEVER_REUSE_IDS

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    visible: Mapped[str] = mapped_column(String(64), index=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    organization_id: Mapped[int | None] = mapped_column(
        ForeignKey("organizations.id", ondelete="CASCADE"), index=True
    )
    read_only: Mapped[bool] = mapped_column(default=False)
    shows_tokens: Mapped[bool] = mapped_column(default=False)
    manages_keys: Mapped[bool] = mapped_column(default=False, server_default=false())
    rate_limit: Mapped[int | None]
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    previous_digest: Mapped[str | None] = mapped_column(String(64), unique=True, index=True)
    previous_until: Mapped[datetime | None]
    # Up to a minute old: requests do not wait for it to be written.
    last_used_at: Mapped[datetime | None]

    organization: Mapped[Organization | None] = relationship(lazy="raise")

    @property
    def public_id(self) -> str:
        """The id in the API."""
        return f"key_{self.id}"

    @staticmethod
    def number_of(public_id: str) -> int:
        """The id of the row with a well-formed ``public_id``."""
        return int(public_id.removeprefix("key_"))

    @classmethod
    def in_force(cls) -> ColumnElement[bool]:
        """Whether a key is neither revoked nor expired."""
        lasts = or_(cls.expires_at.is_(None), cls.expires_at > now())
        return and_(cls.revoked_at.is_(None), lasts)


class IdempotencyKey(Base):
    """A request that a client may repeat without its work being done twice.

    ``digest`` is a hash of the client's idempotency key, ``fingerprint`` of the request. ``claim`` is the
    token of the request in progress. The answer is encrypted and bound to the row.
    """

    __tablename__ = "idempotency_keys"

    api_key_id: Mapped[int] = mapped_column(ForeignKey("api_keys.id", ondelete="CASCADE"), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    claim: Mapped[str | None] = mapped_column(String(32))
    claimed_until: Mapped[datetime | None]
    sealed_answer: Mapped[bytes | None] = mapped_column(LargeBinary)
    expires_at: Mapped[datetime] = mapped_column(index=True)


class AuditRecord(Base):
    """An entry of the audit log; ``actor`` is the visible part of an API key, or a person's role and name.

    ``changes`` has the old and the new value of each field that changed, without secrets.
    """

    __tablename__ = "audit_records"

    id: Mapped[int] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)
    actor: Mapped[str] = mapped_column(String(128))
    action: Mapped[str] = mapped_column(String(64))
    subject: Mapped[str] = mapped_column(String(256))
    changes: Mapped[dict[str, list[str | None]] | None] = mapped_column(JSON(none_as_null=True))


class Hold(Base):
    """Time of one or more users that is kept free until ``expires_at``; times are in milliseconds.

    A hold that is not ``promised`` blocks other holds only: its client has no answer yet, or it is the lock
    of a create. ``request_key`` identifies the request that took it, so that a repeated request can replace
    it. ``claim`` identifies the create that is using it. ``organization_id`` is the organization of the API
    key that took it, None for a key that is bound to none.
    """

    __tablename__ = "holds"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    starts: Mapped[int] = mapped_column(BigInteger)
    ends: Mapped[int] = mapped_column(BigInteger)
    expires_at: Mapped[int] = mapped_column(BigInteger, index=True)
    promised: Mapped[bool] = mapped_column(default=False)
    request_key: Mapped[str] = mapped_column("request", String(64), index=True)
    claim: Mapped[str | None] = mapped_column(String(64))
    note: Mapped[str | None] = mapped_column(String(256))
    organization_id: Mapped[int | None] = mapped_column(
        ForeignKey("organizations.id", ondelete="CASCADE"), index=True
    )


class HeldTime(Base):
    """A user of a hold, whose time it is; ``starts`` and ``ends`` are those of the hold."""

    __tablename__ = "held_times"

    hold_id: Mapped[str] = mapped_column(ForeignKey("holds.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    starts: Mapped[int] = mapped_column(BigInteger)
    ends: Mapped[int] = mapped_column(BigInteger)


class HeldName(Base):
    """A calendar or mailbox that a hold takes through one of its users.

    ``name`` is of ``store.cache.cache_tags:booked_names``. Other users may book the same one through
    connections of their own.
    """

    __tablename__ = "held_names"

    hold_id: Mapped[str] = mapped_column(ForeignKey("holds.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    name: Mapped[str] = mapped_column(String(400), primary_key=True, index=True)


class WebhookEndpoint(Base):
    """A URL that receives webhook events: those of one organization's users, or of all users.

    ``sealed_secret`` is encrypted and bound to ``id``; ``sealed_previous_secret`` is the one before, which
    signs too until ``overlap_until``. ``disabled_at``: when the endpoint answered that it is gone for
    good; nothing is recorded for it since. ``paused_at``: since when its deliveries wait. ``content``: its
    events about single events of calendars have the event.
    """

    __tablename__ = "webhook_endpoints"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    organization_id: Mapped[int | None] = mapped_column(
        ForeignKey("organizations.id", ondelete="CASCADE"), index=True
    )
    url: Mapped[str] = mapped_column(String(2048))
    events: Mapped[list[str]] = mapped_column(JSON)
    sealed_secret: Mapped[bytes] = mapped_column(LargeBinary)
    sealed_previous_secret: Mapped[bytes | None] = mapped_column(LargeBinary)
    overlap_until: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=now)
    disabled_at: Mapped[datetime | None]
    paused_at: Mapped[datetime | None]
    content: Mapped[bool] = mapped_column(default=False, server_default=false())


class WebhookDelivery(Base):
    """The delivery of an event to one endpoint.

    ``id`` is the ``webhook-id`` of every attempt, and sorts by age. The delivery is pending while
    ``next_attempt_at`` is set. ``claimed_until`` is the lease of the worker that sends it. ``topic`` is set
    while it is pending and not being sent: a later event of the same topic is then merged into it. Deliveries
    of one ``subject`` are sent in the order of their ids.
    ``user_id`` is None for a test event, and for an event of a hold: ``user_ids`` are then the users that
    ``payload`` names, in the same order. ``last_body`` is the start of the last answer's body.
    ``attempt_log`` has the latest attempts with a result, the oldest first, as ``deliveries.Attempt``; None
    before the first. Sending a delivery again counts ``attempts`` from zero, and keeps the log.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        UniqueConstraint("endpoint_id", "topic"),
        # The last attempt of an endpoint says whether it fails.
        Index(None, "endpoint_id", "last_attempt_at"),
        Index(None, "endpoint_id", "subject"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    endpoint_id: Mapped[str] = mapped_column(ForeignKey("webhook_endpoints.id", ondelete="CASCADE"))
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    user_ids: Mapped[list[int] | None] = mapped_column(JSON(none_as_null=True))
    topic: Mapped[str | None] = mapped_column(String(64))
    subject: Mapped[str | None] = mapped_column(String(64))
    event: Mapped[str] = mapped_column(String(32))
    payload: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)
    attempts: Mapped[int] = mapped_column(default=0)
    first_attempt_at: Mapped[datetime | None]
    next_attempt_at: Mapped[datetime | None] = mapped_column(default=now, index=True)
    claimed_until: Mapped[datetime | None]
    last_attempt_at: Mapped[datetime | None]
    last_status: Mapped[int | None]
    last_error: Mapped[str | None] = mapped_column(String(200))
    last_body: Mapped[str | None] = mapped_column(String(500))
    attempt_log: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    delivered_at: Mapped[datetime | None]


def new_security_stamp() -> str:
    """A random security stamp."""
    return secrets.token_hex(16)


class Identity(Base):
    """The account at the identity provider of a person who signs in by OpenID Connect.

    ``subject`` is the provider's id of the account. The provider has confirmed the account at ``checked_at``,
    for the time until ``confirmed_until``: after that, sessions and links of the person are not valid.
    ``sealed_refresh_token`` is encrypted and bound to ``administrator_id``; None if the provider sent none,
    or no longer accepts it.
    """

    __tablename__ = "identities"
    __table_args__ = (UniqueConstraint("issuer", "subject"),)

    administrator_id: Mapped[int] = mapped_column(
        ForeignKey("administrators.id", ondelete="CASCADE"), primary_key=True
    )
    issuer: Mapped[str] = mapped_column(String(512))
    subject: Mapped[str] = mapped_column(String(255))
    sealed_refresh_token: Mapped[bytes | None] = mapped_column(LargeBinary)
    checked_at: Mapped[datetime] = mapped_column(default=now, index=True)
    confirmed_until: Mapped[datetime]

    @classmethod
    def ended(cls, administrator_id: ColumnElement[int] | Mapped[int]) -> ColumnElement[bool]:
        """Whether the identity of a person is no longer confirmed. People with a password have none."""
        # The moment of the statement: some expressions are made once for the process.
        moment = bindparam("moment", callable_=lambda: now(), type_=UtcDateTime(), unique=True)
        return exists().where(cls.administrator_id == administrator_id, cls.confirmed_until <= moment)


class Administrator(Base):
    """A person who signs in to the dashboard. ``password_hash`` is Argon2's, with its parameters.

    It is empty for a person who signs in by OpenID Connect, and then matches no password.

    ``sealed_totp_secret`` is that of the authenticator app, encrypted and bound to ``id``; None without a
    second factor. ``last_totp_step`` is the time step of the last code that was accepted.

    ``security_stamp`` is a random value that is replaced when the person loses a right or changes the
    password. A link has the stamp that its maker had, and is valid only while the maker still has it.
    """

    __tablename__ = "administrators"
    __table_args__ = NEVER_REUSE_IDS

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(128), unique=True)
    password_hash: Mapped[str] = mapped_column(String(256))
    role: Mapped[str] = mapped_column(String(16), default=Role.VIEWER, server_default=Role.ADMINISTRATOR)
    sealed_totp_secret: Mapped[bytes | None] = mapped_column(LargeBinary)
    last_totp_step: Mapped[int | None] = mapped_column(BigInteger)
    security_stamp: Mapped[str] = mapped_column(String(32), default=new_security_stamp, server_default="")
    created_at: Mapped[datetime] = mapped_column(default=now)

    @classmethod
    def may_still(
        cls,
        administrator_id: int | Mapped[int | None] | None,
        security_stamp: str | Mapped[str | None] | None,
        role: Role,
    ) -> ColumnElement[bool]:
        """Whether a person still has ``role`` or a higher one, and the security stamp of that moment.

        The identity provider must still confirm a person who signs in by it.
        """
        return exists().where(
            cls.id == administrator_id,
            cls.security_stamp == security_stamp,
            cls.role.in_(role.and_above()),
            ~Identity.ended(cls.id),
        )


class RecoveryCode(Base):
    """A code that replaces one of the authenticator app, once; stored as a hash."""

    __tablename__ = "recovery_codes"

    administrator_id: Mapped[int] = mapped_column(
        ForeignKey("administrators.id", ondelete="CASCADE"), primary_key=True
    )
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)


class DashboardSession(Base):
    """A browser in which an administrator has signed in; its secret is stored as a hash.

    ``id`` identifies it in the list of sessions. ``agent`` is the browser's ``User-Agent``.
    """

    __tablename__ = "dashboard_sessions"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    administrator_id: Mapped[int] = mapped_column(
        ForeignKey("administrators.id", ondelete="CASCADE"), index=True
    )
    created_at: Mapped[datetime] = mapped_column(default=now)
    seen_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime] = mapped_column(index=True)
    address: Mapped[str] = mapped_column(String(64))
    agent: Mapped[str] = mapped_column(String(256))


class Invitation(Base):
    """A link by which a person registers for the dashboard, once; its secret is stored as a hash.

    ``administrator_id`` is the person who made it, ``security_stamp`` the stamp that this person had. Both
    are None for a link of the command line.
    """

    __tablename__ = "invitations"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    role: Mapped[str] = mapped_column(String(16), default=Role.VIEWER, server_default=Role.ADMINISTRATOR)
    administrator_id: Mapped[int | None] = mapped_column(
        ForeignKey("administrators.id", ondelete="CASCADE"), index=True
    )
    security_stamp: Mapped[str | None] = mapped_column(String(32))
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime]


class UserInvitation(Base):
    """A link by which a person connects an account to a user; its secret is stored as a hash.

    ``id`` identifies it in lists. ``scope`` is the level of access to request. ``opened_at`` is when its page
    was first opened, ``connected_at`` when an account was connected by it: it is used up then.
    ``created_by`` is the actor who made it, as in the audit log, ``administrator_id`` that person, and
    ``security_stamp`` the stamp that this person had. ``issuer_in_force``: the person may still invite users.
    No one may for an invitation whose person is not known.
    """

    __tablename__ = "user_invitations"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    scope: Mapped[str] = mapped_column(String(16))
    created_by: Mapped[str] = mapped_column(String(160))
    administrator_id: Mapped[int | None] = mapped_column(
        ForeignKey("administrators.id", ondelete="SET NULL"), index=True
    )
    security_stamp: Mapped[str | None] = mapped_column(String(32))
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)
    expires_at: Mapped[datetime]
    opened_at: Mapped[datetime | None]
    connected_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]

    issuer_in_force: Mapped[bool] = column_property(
        Administrator.may_still(administrator_id, security_stamp, Role.OPERATOR)
    )


class ProviderClient(Base):
    """The OAuth client registered with a provider, for providers without one in the environment.

    ``sealed_secret`` is encrypted and bound to ``provider``. ``tenant`` is Microsoft's.
    """

    __tablename__ = "provider_clients"

    provider: Mapped[str] = mapped_column(String(16), primary_key=True)
    client_id: Mapped[str] = mapped_column(String(512))
    sealed_secret: Mapped[bytes] = mapped_column(LargeBinary)
    tenant: Mapped[str | None] = mapped_column(String(256))
    updated_at: Mapped[datetime] = mapped_column(default=now)

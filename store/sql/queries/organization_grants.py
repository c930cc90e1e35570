"""Grants of whole organizations: a Google service account or a Microsoft application."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, update
from sqlalchemy.orm import Session

from store.security.crypto import Keyring, tried_and_failed
from store.sql.database import UNCACHED, changed_rows, insert_or_update
from store.sql.models import Membership, OAuthConnection, Organization, OrganizationGrant, User, now
from store.sql.queries import connections, webhook_events
from store.sql.queries.connection_rows import BY_PROVIDER
from store.sql.queries.connections import BECAUSE_LENGTH, RemovedConnection
from store.sql.queries.webhook_events import WebhookEvent


class SealedGrant(NamedTuple):
    """The columns that a worker needs; the secret is encrypted."""

    id: str
    organization_id: int
    provider: str
    subject: str | None
    client_email: str | None
    tenant: str | None
    client_id: str | None
    sealed_secret: bytes | None
    scope: list[str]
    alive: bool

    def __repr__(self) -> str:
        return f"<SealedGrant {self.id} of {self.provider}>"


@dataclass(frozen=True, slots=True)
class GrantCredentials:
    """A grant with its decrypted secret: Google's key file as JSON text, or Microsoft's client secret."""

    id: str
    organization_id: int
    provider: str
    subject: str | None
    client_email: str | None
    tenant: str | None
    client_id: str | None
    secret: str | None = field(repr=False)
    scope: frozenset[str]
    alive: bool


@dataclass(frozen=True, slots=True)
class NewGrant:
    """A grant to store; the fields are those of ``GrantCredentials``."""

    provider: str
    subject: str | None
    client_email: str | None
    tenant: str | None
    client_id: str | None
    secret: str | None = field(repr=False)
    scope: Sequence[str]


class ExistingConnection(NamedTuple):
    """A connection that a user has before one is delegated."""

    id: str
    user_id: int
    grant_id: str | None
    email: str | None
    alive: bool
    is_default: bool
    first_id: str | None
    label: str | None

    def has_address(self, email: str) -> bool:
        """Whether it is known to be with this address."""
        return self.email is not None and self.email.lower() == email.lower()

    def delegates(self, grant_id: str, email: str) -> bool:
        """Whether it is alive, and delegated for this address by this grant."""
        return self.alive and self.grant_id == grant_id and self.has_address(email)


class GrantSummary(NamedTuple):
    """A grant as it is shown: without its secret."""

    id: str
    provider: str
    subject: str | None
    client_email: str | None
    tenant: str | None
    client_id: str | None
    scope: list[str]
    alive: bool
    ended_at: datetime | None
    ended_because: str | None
    created_at: datetime


class EndedGrant(NamedTuple):
    """A grant that its provider has refused, and its organization."""

    organization: str
    provider: str
    ended_at: datetime | None
    ended_because: str | None


class GrantCounts(NamedTuple):
    """How many grants a provider accepts, and how many it has refused."""

    alive: int = 0
    dead: int = 0


@dataclass(slots=True)
class Delegations:
    """The users that were given delegated connections, by what that changed, and what was replaced."""

    created: set[int] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)
    unchanged: set[int] = field(default_factory=set)
    replaced: list[RemovedConnection] = field(default_factory=list)


def sealed(session: Session | Connection, ids: Collection[str]) -> dict[str, SealedGrant]:
    """Grants with encrypted secrets, in one statement; deleted ones are absent."""
    query = select(*_columns(SealedGrant)).where(OrganizationGrant.id.in_(ids))
    return {row.id: SealedGrant(*row) for row in session.execute(query)}


def open_credentials(row: SealedGrant, keyring: Keyring) -> GrantCredentials:
    """Decrypt the secret of a grant.

    :raise Undecipherable: when its key is no longer on the ring
    """
    secret = None
    if row.sealed_secret is not None:
        secret = keyring.decrypt(row.sealed_secret, associated_data(row.id))
    return GrantCredentials(
        id=row.id,
        organization_id=row.organization_id,
        provider=row.provider,
        subject=row.subject,
        client_email=row.client_email,
        tenant=row.tenant,
        client_id=row.client_id,
        secret=secret,
        scope=frozenset(row.scope),
        alive=row.alive,
    )


def of_organization(
    session: Session, organization_id: int, provider: str | None = None, *, keep: bool = False
) -> list[GrantSummary]:
    """The grants of an organization, by provider; only that of ``provider``, if it is given.

    ``keep`` locks them against deletion until the commit.
    """
    query = select(*_columns(GrantSummary)).where(OrganizationGrant.organization_id == organization_id)
    if provider is not None:
        query = query.where(OrganizationGrant.provider == provider)
    if keep:
        query = query.with_for_update(read=True, key_share=True)
    return [GrantSummary(*row) for row in session.execute(query.order_by(OrganizationGrant.provider))]


def dead(session: Session, *, limit: int) -> list[EndedGrant]:
    """Ended grants, the latest first."""
    query = (
        select(
            Organization.slug,
            OrganizationGrant.provider,
            OrganizationGrant.ended_at,
            OrganizationGrant.ended_because,
        )
        .join(Organization, Organization.id == OrganizationGrant.organization_id)
        .where(OrganizationGrant.alive.is_(False))
        .order_by(OrganizationGrant.ended_at.desc(), OrganizationGrant.id)
    )
    return [EndedGrant(*row) for row in session.execute(query.limit(limit))]


def counts(session: Session) -> dict[str, GrantCounts]:
    """The grants of each provider that has any."""
    query = select(OrganizationGrant.provider, OrganizationGrant.alive, func.count()).group_by(
        OrganizationGrant.provider, OrganizationGrant.alive
    )
    found: dict[str, GrantCounts] = {}
    for provider, alive, count in session.execute(query):
        so_far = found.get(provider, GrantCounts())
        found[provider] = so_far._replace(**{"alive" if alive else "dead": count})
    return found


def delegated(session: Session, organization_id: int) -> dict[str, int]:
    """The number of delegated connections of each grant of an organization; grants without any are absent."""
    query = (
        select(OAuthConnection.grant_id, func.count())
        .join(OrganizationGrant, OrganizationGrant.id == OAuthConnection.grant_id)
        .where(OrganizationGrant.organization_id == organization_id)
        .group_by(OAuthConnection.grant_id)
    )
    return {grant_id: number for grant_id, number in session.execute(query) if grant_id is not None}


def members_by_address(session: Session, grant_id: str) -> dict[str, str]:
    """The users whom a grant reads, by address in lower case; of several with one, the first by id."""
    query = (
        select(OAuthConnection.email, User.custom_id)
        .join(User, User.id == OAuthConnection.user_id)
        .where(OAuthConnection.grant_id == grant_id, OAuthConnection.email.is_not(None))
        .order_by(User.custom_id.desc())
    )
    return {email.lower(): custom_id for email, custom_id in session.execute(query) if email is not None}


def personal_addresses(session: Session, organization_id: int, provider: str) -> list[tuple[str, str]]:
    """Address, in lower case, and user of each personal connection of the members; default ones first."""
    query = (
        select(OAuthConnection.email, User.custom_id)
        .join(User, User.id == OAuthConnection.user_id)
        .join(Membership, Membership.user_id == User.id)
        .where(
            Membership.organization_id == organization_id,
            OAuthConnection.provider == provider,
            OAuthConnection.grant_id.is_(None),
            OAuthConnection.email.is_not(None),
        )
        .order_by(OAuthConnection.is_default.desc(), User.custom_id)
    )
    return [(email.lower(), custom_id) for email, custom_id in session.execute(query) if email is not None]


def owners(session: Session, ids: Collection[str]) -> dict[str, str]:
    """The slug of the organization of each of these grants."""
    query = (
        select(OrganizationGrant.id, Organization.slug)
        .join(Organization, Organization.id == OrganizationGrant.organization_id)
        .where(OrganizationGrant.id.in_(ids))
    )
    return {row.id: row.slug for row in session.execute(query)}


def save(session: Session, keyring: Keyring, organization_id: int, grant: NewGrant) -> GrantSummary:
    """Store a grant, alive; one with the same provider is replaced and keeps its delegated connections."""
    older = session.execute(
        # A concurrent replacement waits here, then replaces this one. The organization's row exists.
        select(Organization.id, OrganizationGrant.id, OrganizationGrant.alive)
        .join(
            OrganizationGrant,
            (OrganizationGrant.organization_id == Organization.id)
            & (OrganizationGrant.provider == grant.provider),
            isouter=True,
        )
        .where(Organization.id == organization_id)
        # Not FOR UPDATE, which would wait for callers that keep the row from deletion.
        .with_for_update(of=Organization, key_share=True)
    ).one()
    grant_id = older[1] or secrets.token_hex(16)
    secret = grant.secret and keyring.encrypt(grant.secret, associated_data(grant_id))
    values = {
        "subject": grant.subject,
        "client_email": grant.client_email,
        "tenant": grant.tenant,
        "client_id": grant.client_id,
        "sealed_secret": secret,
        "scope": list(grant.scope),
        "alive": True,
        "ended_at": None,
        "ended_because": None,
    }
    upsert = insert_or_update(session, OrganizationGrant).values(
        id=grant_id, organization_id=organization_id, provider=grant.provider, created_at=now(), **values
    )
    unique = [OrganizationGrant.organization_id, OrganizationGrant.provider]
    # Of a grant, processes cache only whether it is alive, with the connections that it reads.
    changes_cached = older[2] is False
    session.execute(
        upsert.on_conflict_do_update(index_elements=unique, set_=values).execution_options(
            **{UNCACHED: not changes_cached}
        )
    )
    if older[2] is False:
        webhook_events.record_grant(session, WebhookEvent.GRANT_RESTORED, organization_id, grant.provider)
    (stored,) = of_organization(session, organization_id, grant.provider)
    theirs = update(OAuthConnection).where(OAuthConnection.grant_id == stored.id)
    alive = {"alive": True, "ended_at": None, "ended_because": None}
    session.execute(theirs.values(scope=list(grant.scope), **alive))
    return stored


def remove(session: Session, organization_id: int, provider: str) -> list[str] | None:
    """Delete a grant with its delegated connections; returns their ids, or None when there is no grant."""
    # Locked first: a concurrent import makes its connections before, or finds no grant.
    query = select(OrganizationGrant.id).where(
        OrganizationGrant.organization_id == organization_id, OrganizationGrant.provider == provider
    )
    grant_id = session.scalars(query.with_for_update()).one_or_none()
    if grant_id is None:
        return None
    ids = _deleted(session, OAuthConnection.grant_id == grant_id)
    session.execute(delete(OrganizationGrant).where(OrganizationGrant.id == grant_id))
    return ids


def _deleted(session: Session, condition: ColumnElement[bool]) -> list[str]:
    """Delete delegated connections; returns their ids."""
    columns = (
        OAuthConnection.id,
        OAuthConnection.user_id,
        OAuthConnection.provider,
        OAuthConnection.is_default,
    )
    removed = session.execute(delete(OAuthConnection).where(condition).returning(*columns)).all()
    connections.promote(session, ((row.user_id, row.provider) for row in removed if row.is_default))
    return [row.id for row in removed]


def existing_connections(
    session: Session, provider: str, user_ids: Collection[int]
) -> dict[int, list[ExistingConnection]]:
    """The connections that these users have with a provider, the default ones first, in one statement."""
    columns = [getattr(OAuthConnection, name) for name in ExistingConnection._fields]
    query = (
        select(*columns)
        .where(OAuthConnection.provider == provider, OAuthConnection.user_id.in_(user_ids))
        .order_by(*BY_PROVIDER)
    )
    found: dict[int, list[ExistingConnection]] = defaultdict(list)
    for row in session.execute(query):
        found[row.user_id].append(ExistingConnection(*row))
    return found


def to_replace(
    existing: Sequence[ExistingConnection], grant_id: str, email: str, *, adds: bool = False
) -> ExistingConnection | None:
    """The connection of a user in whose place a delegated one is put; ``existing`` are all with the provider.

    That is the one by this grant, or a personal one with this address, or the default one. One that is
    added (``adds``) only takes the place of one by this grant with this address.
    """
    by_grant = [each for each in existing if each.grant_id == grant_id]
    if adds:
        return next((each for each in by_grant if each.has_address(email)), None)
    by_grant.sort(key=lambda each: not each.has_address(email))
    personal = [each for each in existing if each.grant_id is None and each.has_address(email)]
    return next(iter([*by_grant, *personal, *existing]), None)


def delegate(
    session: Session, grant: GrantSummary, emails: Mapping[int, str], *, adds: bool = False
) -> Delegations:
    """Give each user a delegated connection, in the place of ``to_replace``; at most eight statements.

    A connection that is alive, and delegated for the same address by the same grant, is unchanged. The caller
    has locked the users.
    """
    existing = existing_connections(session, grant.provider, emails)
    before = {
        user_id: to_replace(existing.get(user_id, ()), grant.id, email, adds=adds)
        for user_id, email in emails.items()
    }
    done = Delegations()
    for user_id, email in emails.items():
        old = before[user_id]
        if old is None:
            done.created.add(user_id)
        elif old.delegates(grant.id, email):
            done.unchanged.add(user_id)
        else:
            done.changed.add(user_id)
    replaced = {user_id: old for user_id, old in before.items() if old and user_id in done.changed}
    done.replaced = connections.remove_replaced(session, [each.id for each in replaced.values()])
    rows = [
        {
            "id": secrets.token_hex(16),
            "user_id": user_id,
            "provider": grant.provider,
            "email": emails[user_id],
            "scope": grant.scope,
            "grant_id": grant.id,
            **_place(replaced.get(user_id), emails[user_id], is_first=not existing.get(user_id)),
        }
        for user_id in sorted(done.created | done.changed)
    ]
    if rows:
        session.execute(insert(OAuthConnection), rows)
    dead = {each.user_id for each in done.replaced if not each.alive}
    restored = [str(row["id"]) for row in rows if row["user_id"] in dead]
    webhook_events.record_all(session, WebhookEvent.CONNECTION_RESTORED, restored)
    return done


def _place(replaced: ExistingConnection | None, email: str, *, is_first: bool) -> dict[str, Any]:
    """The columns that a connection takes over from the replaced one: with the same address, id and label."""
    if replaced is None:
        return {"first_id": None, "label": None, "is_default": is_first}
    same = replaced.has_address(email)
    return {
        "first_id": (replaced.first_id or replaced.id) if same else None,
        "label": replaced.label if same else None,
        "is_default": replaced.is_default,
    }


def find_delegated(session: Session, user_id: int, grant_id: str, email: str) -> OAuthConnection:
    """The connection of a user for this address by a grant."""
    query = select(OAuthConnection).where(
        OAuthConnection.user_id == user_id, OAuthConnection.grant_id == grant_id
    )
    rows = session.scalars(query.order_by(*BY_PROVIDER))
    return next(row for row in rows if row.email and row.email.lower() == email.lower())


def delegated_members(
    session: Session, organization_id: int, custom_ids: Collection[str]
) -> list[tuple[str, str, str]]:
    """Provider, user and address of the connections of these users by an organization's grants."""
    query = (
        select(OAuthConnection.provider, User.custom_id, OAuthConnection.email)
        .join(OrganizationGrant, OrganizationGrant.id == OAuthConnection.grant_id)
        .join(User, User.id == OAuthConnection.user_id)
        .where(OrganizationGrant.organization_id == organization_id, User.custom_id.in_(custom_ids))
        .order_by(User.custom_id)
    )
    return [(provider, user, email) for provider, user, email in session.execute(query) if email]


def connections_of(session: Session, organization_id: int, user_ids: Collection[int]) -> Sequence[str]:
    """The ids of the connections of users by an organization's grants."""
    return session.scalars(select(OAuthConnection.id).where(_by_grant(organization_id, user_ids))).all()


def delete_connections_of(session: Session, organization_id: int, user_ids: Collection[int]) -> Sequence[str]:
    """Delete the connections of users by an organization's grants; returns their ids."""
    return _deleted(session, _by_grant(organization_id, user_ids))


def _by_grant(organization_id: int, user_ids: Collection[int]) -> ColumnElement[bool]:
    own = select(OrganizationGrant.id).where(OrganizationGrant.organization_id == organization_id)
    return and_(OAuthConnection.user_id.in_(user_ids), OAuthConnection.grant_id.in_(own))


def mark_dead(session: Session, grant_id: str, because: str) -> None:
    """Mark a grant that its provider has refused. One event is recorded, until the grant is alive again.

    ``because`` is shown to people: a sentence without tokens or addresses, truncated to 300 characters.
    """
    living = update(OrganizationGrant).where(OrganizationGrant.id == grant_id, OrganizationGrant.alive)
    dead = {"alive": False, "ended_at": now(), "ended_because": because[:BECAUSE_LENGTH]}
    if not changed_rows(session, living.values(dead)):
        return
    row = session.execute(
        select(OrganizationGrant.organization_id, OrganizationGrant.provider).where(
            OrganizationGrant.id == grant_id
        )
    ).one()
    webhook_events.record_grant(session, WebhookEvent.GRANT_EXPIRED, row.organization_id, row.provider)


def check_decryption(session: Session, keyring: Keyring, most: int) -> tuple[int, int]:
    """Try to decrypt the oldest secrets of grants; returns how many were tried and how many failed."""
    query = (
        select(*_columns(SealedGrant))
        .where(OrganizationGrant.sealed_secret.is_not(None))
        .order_by(OrganizationGrant.created_at)
        .limit(most)
    )
    rows = [SealedGrant(*row) for row in session.execute(query)]
    return tried_and_failed(partial(open_credentials, row, keyring) for row in rows)


def associated_data(grant_id: str) -> str:
    """The associated data of an encrypted secret."""
    return f"organization_grants/{grant_id}/secret"


def _columns(of: type[SealedGrant] | type[GrantSummary]) -> list[Any]:
    return [getattr(OrganizationGrant, name) for name in of._fields]

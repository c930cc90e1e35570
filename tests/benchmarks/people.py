"""The people of the benchmarks: in the database once, in organizations of every size that is measured."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable

from joserfc.jwk import RSAKey
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from providers import registry
from providers.scopes import Level
from store.security.crypto import Keyring
from store.sql.models import Membership, OAuthConnection, Organization, User
from store.sql.queries import connection_rows, organization_grants
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.organization_grants import NewGrant
from store.stores import Stores

# Beyond the largest organization: people that no other benchmark requests.
SPARE = 400

DOMAIN = "bench.example"


def name(person: int) -> str:
    """A person's identifier in the API."""
    return f"person-{person:05d}"


def address(person: int) -> str:
    """A person's e-mail address."""
    return f"{name(person)}@{DOMAIN}"


def provider_of(person: int) -> str:
    """Half of them are at Google, half at Microsoft."""
    return "microsoft" if person % 2 else "google"


def create(stores: Stores, count: int) -> None:
    """People from 0, each with one account whose token never ends."""
    with stores.database.writing() as session:
        session.execute(insert(User), [{"custom_id": name(person)} for person in range(count)])
        numbers = dict(session.execute(select(User.custom_id, User.id)).tuples().all())
        rows = [_connection(stores.keyring, person, numbers[name(person)]) for person in range(count)]
        session.execute(insert(OAuthConnection), rows)


def _connection(keyring: Keyring, person: int, user: int) -> dict[str, object]:
    """The row that ``connections.replace`` would make, which takes three statements for each."""
    provider = provider_of(person)
    connection = secrets.token_hex(16)
    return {
        "id": connection,
        "user_id": user,
        "provider": provider,
        "email": address(person),
        "scope": registry.scopes(provider).level_scopes(Level.FREE_BUSY),
        "alive": True,
        # Known since their first read, which is not measured.
        "main_calendar_id": address(person),
        "mailbox": address(person),
        **connection_rows.token_columns(connection, keyring, Tokens(f"person-{person}", None, None)),
    }


def organize(session: Session, slug: str, members: Iterable[int]) -> None:
    """An organization of people who are there."""
    organization = Organization(slug=slug, name=None)
    session.add(organization)
    session.flush()
    numbers = dict(session.execute(select(User.custom_id, User.id)).tuples().all())
    rows = [{"organization_id": organization.id, "user_id": numbers[name(each)]} for each in members]
    session.execute(insert(Membership), rows)


def delegate(stores: Stores, slug: str, count: int) -> None:
    """An organization whose members have no tokens: a grant for each provider reads their calendars.

    Member ``n`` has the mailbox of person ``n``.
    """
    with stores.database.writing() as session:
        organization = Organization(slug=slug, name=None)
        session.add(organization)
        session.execute(insert(User), [{"custom_id": delegated(number)} for number in range(count)])
        session.flush()
        numbers = dict(session.execute(select(User.custom_id, User.id)).tuples().all())
        members = [numbers[delegated(number)] for number in range(count)]
        rows = [{"organization_id": organization.id, "user_id": member} for member in members]
        session.execute(insert(Membership), rows)
        grants = {
            each.provider: organization_grants.save(session, stores.keyring, organization.id, each).id
            for each in (_google_grant(), _microsoft_grant())
        }
        connected = []
        for number in range(count):
            known = dict.fromkeys(("email", "main_calendar_id", "mailbox"), address(number))
            provider = provider_of(number)
            grant = grants[provider]
            scope = registry.scopes(provider).level_scopes(Level.FREE_BUSY)
            row = {"provider": provider, "scope": scope, "grant_id": grant, **known}
            connected.append({"id": secrets.token_hex(16), "user_id": members[number], **row})
        session.execute(insert(OAuthConnection), connected)


def delegated(number: int) -> str:
    """The identifier of a member who is read by a grant."""
    return f"delegated-{number:05d}"


def _google_grant() -> NewGrant:
    service = f"almanac@{DOMAIN}"
    key = {
        "type": "service_account",
        "client_email": service,
        "private_key": RSAKey.generate_key(2048).as_pem(private=True).decode(),
    }
    scope = registry.scopes("google").level_scopes(Level.FREE_BUSY)
    return NewGrant("google", address(0), service, None, None, json.dumps(key), scope)


def _microsoft_grant() -> NewGrant:
    scope = ("Calendars.Read", "MailboxSettings.Read")
    return NewGrant("microsoft", None, None, DOMAIN, "application", "secret", scope)

"""The people of the benchmarks: in the database once, in organizations of every size that is measured."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from providers.names import ProviderName
from providers.scopes import Level, level_scopes
from store.security.crypto import Keyring
from store.sql.models import Membership, OAuthConnection, Organization, User
from store.sql.queries import connections
from store.sql.queries.connections import Tokens
from store.stores import Stores

# Beyond the largest organization: people that no other benchmark requests.
SPARE = 400


def name(person: int) -> str:
    """A person's identifier in the API."""
    return f"person-{person:05d}"


def provider_of(person: int) -> ProviderName:
    """Half of them are at Google, half at Microsoft."""
    return ProviderName.MICROSOFT if person % 2 else ProviderName.GOOGLE


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
        "email": f"{name(person)}@bench.example",
        "scope": level_scopes(provider, Level.FREE_BUSY),
        "alive": True,
        # Known since their first read, which is not measured.
        "main_calendar_id": f"{name(person)}@bench.example",
        "mailbox": f"{name(person)}@bench.example",
        **connections._sealed(connection, keyring, Tokens(f"person-{person}", None, None)),
    }


def organize(session: Session, slug: str, members: Iterable[int]) -> None:
    """An organization of people who are there."""
    organization = Organization(slug=slug, name=None)
    session.add(organization)
    session.flush()
    numbers = dict(session.execute(select(User.custom_id, User.id)).tuples().all())
    rows = [{"organization_id": organization.id, "user_id": numbers[name(each)]} for each in members]
    session.execute(insert(Membership), rows)

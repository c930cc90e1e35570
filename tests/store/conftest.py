"""Databases and Redis servers, each kind that this machine has."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import text

from store.lua import ScriptRedis
from store.security.crypto import Keyring
from store.sql.database import Database
from store.sql.models import Base
from store.stores import Stores
from tests import services
from tests.databases import KINDS, new_database, opened, own_postgresql


@pytest.fixture(params=KINDS)
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables: SQLite always, PostgreSQL where it is."""
    with new_database(request.param, tmp_path) as url, opened(url) as database:
        yield database


@pytest.fixture(params=KINDS)
def own_database(
    request: pytest.FixtureRequest, migrated: Callable[[str], str], tmp_path: Path
) -> Iterator[Database]:
    """A migrated database, for tests that change more than its rows."""
    with (
        new_database(request.param, tmp_path, copied=migrated(request.param)) as url,
        opened(url) as database,
    ):
        yield database


@pytest.fixture(scope="session")
def shared_postgresql(migrated: Callable[[str], str]) -> Iterator[str]:
    """One database for many tests: emptying it takes a fiftieth of the time of a copy and its deletion."""
    with own_postgresql(migrated("postgresql")) as url:
        yield url


@pytest.fixture(params=KINDS)
def fresh_database(
    request: pytest.FixtureRequest, migrated: Callable[[str], str], tmp_path: Path
) -> Iterator[Database]:
    """A migrated database without rows."""
    if request.param == "postgresql":
        with opened(request.getfixturevalue("shared_postgresql")) as database:
            empty(database)
            yield database
        return
    with new_database("sqlite", tmp_path, copied=migrated("sqlite")) as url, opened(url) as database:
        yield database


def empty(database: Database) -> None:
    """Delete all rows of a PostgreSQL database, including rows that the service cannot delete."""
    with database.engine.begin() as connection:
        connection.execute(text("ALTER TABLE audit_records DISABLE TRIGGER USER"))
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(table.delete())
        connection.execute(text("ALTER TABLE audit_records ENABLE TRIGGER USER"))
        connection.execute(text("SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'"))


@pytest.fixture
def keyring() -> Keyring:
    return Keyring([secrets.token_bytes(32)])


@pytest.fixture(params=["embedded", "server"])
def redis(request: pytest.FixtureRequest, stores: Stores) -> Iterator[Redis]:
    """The embedded server from the wheel, and the Redis server of the machine."""
    if request.param == "embedded":
        yield stores.redis
        return
    services.redis_server().require()
    with ScriptRedis.from_url(services.REDIS) as found:
        yield found

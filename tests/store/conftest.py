"""Databases and Redis servers, each kind that this machine has."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from store.crypto import Keyring
from store.database import Database
from store.stores import Stores
from tests import services


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables: SQLite always, PostgreSQL where it is."""
    if request.param == "sqlite":
        database = Database(f"sqlite:///{tmp_path / 'test.db'}")
        yield database
        database.close()
        return
    services.postgresql().require()
    with services.own_database() as url:
        database = Database(url.replace("postgresql://", "postgresql+psycopg://"))
        yield database
        database.close()


@pytest.fixture
def fresh_database(empty_database: Database) -> Database:
    """A migrated database."""
    empty_database.upgrade()
    return empty_database


@pytest.fixture
def keyring() -> Keyring:
    return Keyring([secrets.token_bytes(32)])


@pytest.fixture(params=["embedded", "server"])
def redis(request: pytest.FixtureRequest, stores: Stores) -> Iterator[Redis]:
    """The Redis in the wheel, which is older, and the one of the machine."""
    if request.param == "embedded":
        yield stores.redis
        return
    services.redis_server().require()
    with Redis.from_url(services.REDIS) as found:
        yield found

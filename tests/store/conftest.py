"""Databases and Redis servers, each kind that this machine has."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from store.crypto import Keyring
from store.database import Database
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
    name = f"almanac_{secrets.token_hex(6)}"
    with psycopg.connect(services.POSTGRESQL, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        base = services.POSTGRESQL.replace("postgresql://", "postgresql+psycopg://").rsplit("/", 1)[0]
        database = Database(f"{base}/{name}")
        yield database
        database.close()
        admin.execute(f"DROP DATABASE {name}")


@pytest.fixture
def fresh_database(empty_database: Database) -> Database:
    """A migrated database."""
    empty_database.upgrade()
    return empty_database


@pytest.fixture
def keyring() -> Keyring:
    return Keyring([secrets.token_bytes(32)])

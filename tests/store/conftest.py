"""Databases and Redis servers, each kind that this machine has."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from store.crypto import Keyring
from store.database import Database
from store.stores import Stores
from tests import services
from tests.databases import KINDS, new_database, opened


@pytest.fixture(params=KINDS)
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables: SQLite always, PostgreSQL where it is."""
    with new_database(request.param, tmp_path) as url, opened(url) as database:
        yield database


@pytest.fixture(params=KINDS)
def fresh_database(
    request: pytest.FixtureRequest, migrated: Callable[[str], str], tmp_path: Path
) -> Iterator[Database]:
    """A migrated database."""
    with (
        new_database(request.param, tmp_path, copied=migrated(request.param)) as url,
        opened(url) as database,
    ):
        yield database


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

"""Migrations while requests use the same tables: a request never fails because of them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import text

from store.sql.database import Database, MigrationBlocked, MigrationState, alembic_config
from tests.databases import new_database, opened
from tests.waiting import until

pytestmark = pytest.mark.slow

# The migrations after it change several tables that requests use.
BEFORE_SEVERAL = "0010"

WAITS_FOR_A_LOCK = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
LAST_MIGRATION = text("SELECT version_num FROM alembic_version")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A PostgreSQL database of an earlier version."""
    with new_database("postgresql", tmp_path) as url, opened(url) as made:
        with made.migrating() as connection:
            command.upgrade(alembic_config(connection), BEFORE_SEVERAL)
        yield made


def waits(database: Database) -> bool:
    with database.engine.connect() as connection:
        return bool(connection.execute(WAITS_FOR_A_LOCK).scalar())


def test_a_request_that_would_deadlock_with_a_migration_succeeds(database: Database):
    with ThreadPoolExecutor(1) as pool, database.engine.connect() as request:
        # A migration waits for this table, after it has changed the other one.
        request.execute(text("SELECT count(*) FROM oauth_connections"))
        upgrade = pool.submit(database.upgrade)
        until(lambda: waits(database))

        request.execute(text("UPDATE webhook_deliveries SET attempts = attempts + 1"))
        request.commit()

        upgrade.result(timeout=60)
    assert database.migration_state() is MigrationState.CURRENT


def test_a_request_is_not_queued_behind_a_migration_that_waits_for_another_one(database: Database):
    with ThreadPoolExecutor(1) as pool, database.engine.connect() as slow:
        slow.execute(text("SELECT count(*) FROM oauth_connections"))
        upgrade = pool.submit(database.upgrade)
        until(lambda: waits(database))

        # PostgreSQL queues this behind the migration, which waits for the slow request.
        with database.engine.connect() as request:
            request.execute(text("SET statement_timeout = '5s'"))
            assert request.execute(text("SELECT count(*) FROM oauth_connections")).scalar() == 0

        assert not upgrade.done()
        slow.commit()
        upgrade.result(timeout=60)


def test_an_upgrade_gives_up_on_a_table_that_is_never_free_and_can_be_repeated(database: Database):
    with database.engine.connect() as request:
        request.execute(text("SELECT count(*) FROM oauth_connections"))
        with pytest.raises(MigrationBlocked, match="run the upgrade again"):
            database.upgrade(patience=1.0)

    with database.engine.connect() as connection:
        assert connection.execute(LAST_MIGRATION).scalar() == "0013", "those before it are kept"
    database.upgrade()
    assert database.migration_state() is MigrationState.CURRENT

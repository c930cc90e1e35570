"""Last use of API keys: written at most once a minute, and without an invalidation of caches."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from sqlalchemy import select, text

from store.metrics.key_usage import EACH, KeyUsage
from store.sql.database import Database
from store.sql.models import ApiKey
from store.sql.queries import api_keys
from tests.store.statements import recorded


@pytest.fixture
def changes():
    return []


@pytest.fixture
def database(fresh_database, changes):
    """A database with two keys, and a word for every change that processes remember."""
    database = Database(
        fresh_database.url.render_as_string(hide_password=False), lambda: changes.append("changing")
    )
    with database.writing() as session:
        for name in ("one", "two", "unused"):
            api_keys.create(session, prefix="alm_", name=name)
    yield database
    database.close()


@pytest.fixture
def statements(database):
    """The updates that the database was sent."""
    with recorded(database, "UPDATE") as updates:
        yield updates


def ids(database):
    with database.reading() as session:
        return {row.name: row.id for row in session.scalars(select(ApiKey))}


def last_use(database):
    with database.reading() as session:
        return {row.name: row.last_used_at for row in session.scalars(select(ApiKey))}


def test_key_usage_takes_one_statement_and_bumps_no_version(database, changes, statements):
    keys, use = ids(database), KeyUsage(database)
    before = datetime.now(UTC)
    use.note(keys["one"])
    use.note(keys["two"])

    use.flush()

    written = last_use(database)
    assert before <= written["one"] <= written["two"] <= datetime.now(UTC)
    assert written["unused"] is None
    assert len(statements) == 1
    assert changes == []


def test_a_key_in_constant_use_is_written_once_a_minute(database, statements):
    keys, use, now = ids(database), KeyUsage(database), time.time()
    for seconds in range(0, 125, 5):
        use.note(keys["one"])
        use.flush(now=now + seconds)

    assert len(statements) == 3
    # Another key does not wait for the first.
    use.note(keys["two"])
    use.flush(now=now + 125)
    assert len(statements) == 4


def test_what_was_used_within_the_minute_is_written_after_it(database):
    keys, use, now = ids(database), KeyUsage(database), time.time()
    use.note(keys["one"])
    use.flush(now=now)
    first = last_use(database)["one"]
    use.note(keys["one"])
    use.flush(now=now + EACH - 1)
    assert last_use(database)["one"] == first

    use.flush(now=now + EACH)

    assert last_use(database)["one"] > first


def test_an_earlier_use_never_takes_the_place_of_a_later_one(database):
    keys, early, late = ids(database), KeyUsage(database), KeyUsage(database)
    early.note(keys["one"])
    time.sleep(0.01)
    late.note(keys["one"])
    late.flush()
    latest = last_use(database)["one"]

    early.flush()

    assert last_use(database)["one"] == latest


def test_a_key_that_is_gone_is_nothing_to_write_of(database):
    use = KeyUsage(database)
    use.note(987_654)
    use.flush()

    assert set(last_use(database).values()) == {None}


def test_what_the_database_does_not_take_waits_for_the_next_time(database, caplog):
    keys, use = ids(database), KeyUsage(database)
    use.note(keys["one"])
    rename(database, "api_keys", "elsewhere")
    use.flush()
    rename(database, "elsewhere", "api_keys")
    assert "kept for the next flush" in caplog.text
    assert last_use(database)["one"] is None

    use.flush()

    assert last_use(database)["one"] is not None


def rename(database, old, new):
    with database.engine.begin() as connection:
        connection.execute(text(f"ALTER TABLE {old} RENAME TO {new}"))

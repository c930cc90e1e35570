"""Copies of a database: complete, resumed after a kill, and compared."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import insert, inspect, select, text

from store.sql import copying
from store.sql.database import Database
from store.sql.models import ApiKey, Base, OAuthConnection, Organization, User
from tests.databases import new_database, opened
from tests.store.sql.test_migrations import fill

KINDS = ("sqlite", "postgresql")
PAIRS = [
    # The default run needs no service.
    pytest.param((of, to), id=f"{of} to {to}", marks=[pytest.mark.slow] if "postgresql" in (of, to) else [])
    for of in KINDS
    for to in KINDS
]
# Texts whose order differs between collations.
NAMES = ("b", "B", "a", "A", "ä", "Z", "z-1", "z_1", "z.1", "0", "é", "𝄞", "e\u0301")


@pytest.fixture(params=PAIRS)
def pair(request, migrated, tmp_path) -> Iterator[tuple[Database, Database]]:
    """A migrated source and a target without tables."""
    of, to = request.param
    with (
        new_database(of, tmp_path, copied=migrated(of)) as ours,
        new_database(to, tmp_path) as theirs,
        opened(ours) as source,
        opened(theirs) as target,
    ):
        yield source, target


def connections(source: Database, count: int) -> None:
    """A user with a connection for each number, in an order that collations dispute."""
    made = {"provider": "google", "scope": ["a", "b"], "sealed_access_token": b"\x00\xff"}
    with source.engine.connect().execution_options(writes=True) as writing, writing.begin():
        writing.execute(insert(User), [{"id": each, "custom_id": f"u{each}"} for each in range(1, count + 1)])
        rows = [
            {"id": f"{NAMES[each % len(NAMES)]}{each}", "user_id": each, **made}
            for each in range(1, count + 1)
        ]
        writing.execute(insert(OAuthConnection), rows)


def contents(database: Database) -> dict[str, set[str]]:
    with database.engine.connect() as connection:
        return {
            table.name: {repr(tuple(row)) for row in connection.execute(select(table))}
            for table in Base.metadata.sorted_tables
        }


def copy(source: Database, target: Database, batch: int = 7) -> list[copying.Progress]:
    return list(copying.copy(source, target, batch=batch))


def test_every_column_of_every_table_is_copied(pair):
    source, target = pair
    with source.engine.connect().execution_options(writes=True) as writing, writing.begin():
        fill(writing)

    done = copy(source, target)

    assert contents(target) == contents(source)
    assert all(contents(target).values())
    assert {each.table for each in done if each.checked} == set(Base.metadata.tables)
    assert not inspect(target.engine).has_table(copying.MARKER.name)


def test_ciphertexts_and_json_keep_their_bytes(pair):
    source, target = pair
    with source.engine.connect().execution_options(writes=True) as writing, writing.begin():
        fill(writing)
    as_text = text("SELECT CAST(scope AS TEXT), sealed_access_token FROM oauth_connections")

    copy(source, target)

    with source.engine.connect() as ours, target.engine.connect() as theirs:
        old, new = ours.execute(as_text).one(), theirs.execute(as_text).one()
    assert (old[0], bytes(old[1])) == (new[0], bytes(new[1]))


def test_a_copy_that_is_interrupted_at_any_batch_continues(pair):
    source, target = pair
    connections(source, 60)
    for after in (1, 5, 9, 12):
        steps = copying.copy(source, target, batch=7)
        for _ in range(after):
            next(steps)
        steps.close()

    copy(source, target)

    assert contents(target) == contents(source)


SCRIPT = """
import sys
from store.sql import copying
from store.sql.database import Database
for each in copying.copy(Database(sys.argv[1]), Database(sys.argv[2]), batch=20):
    print(each.table, each.done, each.checked, flush=True)
"""


@pytest.mark.slow
def test_a_copy_that_was_killed_twice_continues(pair):
    source, target = pair
    connections(source, 2000)
    command = [
        sys.executable,
        "-c",
        SCRIPT,
        *(each.url.render_as_string(hide_password=False) for each in pair),
    ]
    counts = []
    for killed in range(3):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            if killed < 2:
                for _ in range(60):
                    assert process.stdout.readline()
                process.kill()
            else:
                lines = process.stdout.read()
        with target.engine.connect() as connection:
            counts.append(connection.scalar(text("SELECT count(*) FROM users")))

    assert 0 < counts[0] < 2000
    assert process.returncode == 0
    # It did not begin again: the users were copied before.
    assert not re.search(r"^users 20 False", lines, re.MULTILINE)
    assert contents(target) == contents(source)


def test_ids_go_on_after_the_last_one_that_was_given(pair):
    """Also after one whose row is deleted: logs and links may still name it."""
    source, target = pair
    with source.writing() as session:
        gone = [User(custom_id="kept"), User(custom_id="gone")]
        session.add_all(gone)
        session.flush()
        last = gone[1].id
        session.delete(gone[1])

    copy(source, target)

    with target.writing() as session:
        new = [User(custom_id="new"), Organization(slug="new"), ApiKey(name="n", visible="v", digest="d")]
        session.add_all(new)
        session.flush()
        assert new[0].id == last + 1


def test_a_database_with_rows_is_left_alone(pair):
    source, target = pair
    target.upgrade()
    with target.writing() as session:
        session.add(User(custom_id="theirs"))

    with pytest.raises(copying.NotCopied, match="rows in users already"):
        copy(source, target)

    with target.reading() as session:
        assert [each.custom_id for each in session.query(User)] == ["theirs"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE users SET custom_id = 'other' WHERE id = 30",
        "DELETE FROM oauth_connections WHERE user_id = 30",
        "INSERT INTO users (id, custom_id, created_at) VALUES (1000, 'more', '2026-11-20 00:00:00')",
    ],
)
def test_a_difference_is_found_and_the_copy_is_not_complete(pair, change: str):
    source, target = pair
    connections(source, 60)
    steps = copying.copy(source, target, batch=7)
    for each in steps:
        if each.table == "oauth_connections" and each.done == each.total:
            break
    with target.engine.connect().execution_options(writes=True) as writing, writing.begin():
        writing.execute(text(change))

    with pytest.raises(copying.NotCopied, match=r"Row \d+ of (users|oauth_connections) differs"):
        list(steps)

    assert inspect(target.engine).has_table(copying.MARKER.name)


def test_a_source_that_is_not_migrated_is_refused(tmp_path, migrated):
    with (
        new_database("sqlite", tmp_path) as ours,
        new_database("sqlite", tmp_path) as theirs,
        opened(ours) as source,
        opened(theirs) as target,
    ):
        with pytest.raises(copying.NotCopied, match="almanac db upgrade"):
            copy(source, target)
        with pytest.raises(copying.NotCopied, match="the same database"):
            copy(source, source)


def test_times_before_1970_and_microseconds_survive(pair):
    source, target = pair
    moments = [datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), datetime(2199, 1, 1, tzinfo=UTC)]
    with source.writing() as session:
        session.add_all(User(custom_id=f"u{number}", created_at=at) for number, at in enumerate(moments))

    copy(source, target)

    with target.reading() as session:
        assert sorted(each.created_at for each in session.query(User)) == moments

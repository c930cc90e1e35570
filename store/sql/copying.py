"""Copies one database to another, of any kind: resumable, and compared row by row at the end.

Both sides are read in the same order, by primary key and byte by byte. A batch is one transaction, so an
interrupted copy has the first rows of that order, and continues after them. Values pass unchanged: no
ciphertext is decrypted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import sqlalchemy
from sqlalchemy import (
    JSON,
    Column,
    Connection,
    CursorResult,
    Integer,
    MetaData,
    Row,
    Select,
    String,
    Table,
    Text,
    cast,
    func,
    inspect,
    select,
    text,
)
from sqlalchemy.types import TypeEngine

from store.sql.database import Database, MigrationState
from store.sql.models import Base

# Rows of one transaction of the target.
BATCH = 5000

# Is in the target while it has only a part of the rows.
MARKER = Table("unfinished_copy", MetaData(), Column("id", Integer, primary_key=True))


class NotCopied(Exception):
    """The copy was refused, or it differs from its source; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Progress:
    """``done`` of all ``total`` rows of a table are copied, or ``checked``: compared."""

    table: str
    done: int
    total: int
    checked: bool = False


def copy(source: Database, target: Database, *, batch: int = BATCH) -> Iterator[Progress]:
    """Copy every row to ``target``, which is migrated first, and compare; yields the progress of each batch.

    Nothing else may write to either of them. A copy that was interrupted continues when it is called again.

    :raise NotCopied: when the source is not migrated, the target has other rows, or a row differs at the end
    """
    if source.url == target.url:
        raise NotCopied("Source and target are the same database")
    if source.migration_state() is not MigrationState.CURRENT:
        raise NotCopied("The source is not migrated by this version: run almanac db upgrade first")
    target.upgrade()
    if target.migration_state() is not MigrationState.CURRENT:
        raise NotCopied("The target is migrated by a later version")
    _begin(target)
    with _snapshot(source) as reading:
        for table in Base.metadata.sorted_tables:
            yield from _copy_table(reading, target, table, batch)
        for table in Base.metadata.sorted_tables:
            _set_next_id(reading, target, table)
    with _snapshot(source) as ours, _snapshot(target) as theirs:
        for table in Base.metadata.sorted_tables:
            yield _compare(ours, theirs, table, batch)
    MARKER.drop(target.engine)


def _begin(target: Database) -> None:
    """Mark the target as incomplete.

    :raise NotCopied: when it has rows of anything but an interrupted copy
    """
    if inspect(target.engine).has_table(MARKER.name):
        return
    with target.engine.connect() as connection:
        for table in Base.metadata.sorted_tables:
            if connection.execute(select(table).limit(1)).first() is not None:
                raise NotCopied(f"The target has rows in {table.name} already: give an empty database")
    MARKER.create(target.engine)


@contextmanager
def _snapshot(database: Database) -> Iterator[Connection]:
    """A connection that sees the database as it is now, until the end of the block."""
    with database.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            yield connection


def _copy_table(reading: Connection, target: Database, table: Table, batch: int) -> Iterator[Progress]:
    total = _count(reading, table)
    with target.engine.connect() as connection:
        done = _count(connection, table)
    if done == total:
        return
    with _rows(reading, table, batch, skipped=done) as rows:
        for part in rows.partitions():
            with target.engine.connect().execution_options(writes=True) as writing, writing.begin():
                _insert(writing, table, part)
            done += len(part)
            yield Progress(table.name, done, total)


def _insert(connection: Connection, table: Table, rows: Sequence[Row[Any]]) -> None:
    types = {each.name: _type(each) for each in table.columns}
    if connection.dialect.name != "postgresql":
        plain = sqlalchemy.table(table.name, *(sqlalchemy.column(name, of) for name, of in types.items()))
        connection.execute(plain.insert(), [dict(row._mapping) for row in rows])
        return
    # COPY takes a quarter of the time of inserts.
    dialect = connection.dialect
    processors = [of.dialect_impl(dialect).bind_processor(dialect) for of in types.values()]
    names = dialect.identifier_preparer
    columns = ", ".join(map(names.format_column, table.columns))
    driver: Any = connection.connection.driver_connection
    with (
        driver.cursor() as cursor,
        cursor.copy(f"COPY {names.format_table(table)} ({columns}) FROM STDIN") as into,
    ):
        for row in rows:
            into.write_row(
                [
                    value if process is None else process(value)
                    for value, process in zip(row, processors, strict=True)
                ]
            )


def _set_next_id(reading: Connection, target: Database, table: Table) -> None:
    """Let the target continue to count where the source does: ids of deleted rows are not given again."""
    column = table.autoincrement_column
    if column is None or not isinstance(column.type, Integer):
        return
    last = _last_id(reading, table, column)
    if not last:
        return
    with target.engine.connect().execution_options(writes=True) as writing, writing.begin():
        if writing.dialect.name == "postgresql":
            sequence = func.pg_get_serial_sequence(table.name, column.name)
            writing.execute(select(func.setval(sequence, last)))
        elif table.dialect_options["sqlite"]["autoincrement"]:
            values = {"name": table.name, "last": last}
            writing.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), values)
            writing.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"), values)


def _last_id(reading: Connection, table: Table, column: Column[Any]) -> int:
    """The last id that was given to a row of a table, which may be deleted; 0 if none was."""
    given: int | None = None
    if reading.dialect.name == "postgresql":
        # NULL for a sequence that was never used: https://www.postgresql.org/docs/current/view-pg-sequences.html
        used = text("SELECT pg_sequence_last_value(pg_get_serial_sequence(:table, :column)::regclass)")
        given = reading.scalar(used, {"table": table.name, "column": column.name})
    elif table.dialect_options["sqlite"]["autoincrement"]:
        given = reading.scalar(
            text("SELECT seq FROM sqlite_sequence WHERE name = :name"), {"name": table.name}
        )
    highest: int = reading.scalar(select(func.coalesce(func.max(column), 0))) or 0
    return max(highest, given or 0)


def _compare(ours: Connection, theirs: Connection, table: Table, batch: int) -> Progress:
    """Compare all rows of a table.

    :raise NotCopied: when a row differs
    """
    number = 0
    with _rows(ours, table, batch) as mine, _rows(theirs, table, batch) as others:
        for number, (own, other) in enumerate(zip_longest(mine, others), start=1):
            if own is None or other is None or tuple(own) != tuple(other):
                raise NotCopied(
                    f"Row {number} of {table.name} differs. "
                    "Stop the service, empty the target, and copy again"
                )
    return Progress(table.name, number, number, checked=True)


def _count(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _rows(connection: Connection, table: Table, batch: int, *, skipped: int = 0) -> CursorResult[Any]:
    """The rows after the first ``skipped``, fetched in batches; close it before another one is opened."""
    query = _in_order(connection, table).offset(skipped)
    return connection.execution_options(yield_per=batch).execute(query)


def _type(column: Column[Any]) -> TypeEngine[Any]:
    """The type that a column is copied as: JSON as the text that is stored."""
    return Text() if isinstance(column.type, JSON) else column.type


def _in_order(connection: Connection, table: Table) -> Select[Any]:
    """The rows by primary key; texts byte by byte, as SQLite orders them (PostgreSQL's collation "C")."""
    own = connection.dialect.name == "postgresql"
    shown = (
        cast(each, Text).label(each.name) if isinstance(each.type, JSON) else each for each in table.columns
    )
    return select(*shown).order_by(
        *(each.collate("C") if own and isinstance(each.type, String) else each for each in table.primary_key)
    )

"""The SQL statements that a database receives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event
from sqlalchemy.orm import Session

from store.sql.database import Database


@contextmanager
def recorded(database: Database, *beginnings: str) -> Iterator[list[str]]:
    """The statements of the block; with ``beginnings`` such as ``"SELECT"``, no others."""
    received: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith(beginnings or ("",)):
            received.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield received
    finally:
        event.remove(database.engine, "before_cursor_execute", note)


@contextmanager
def statements(database: Database) -> Iterator[tuple[Session, list[str]]]:
    """A session that reads, and the queries that it sends."""
    with recorded(database, "SELECT") as queries, database.reading() as session:
        yield session, queries

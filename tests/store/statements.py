"""How many statements a query takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event
from sqlalchemy.orm import Session

from store.sql.database import Database


@contextmanager
def statements(database: Database) -> Iterator[tuple[Session, list[str]]]:
    """A session that reads, and the queries that it sends."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("SELECT"):
            sent.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        with database.reading() as session:
            yield session, sent
    finally:
        event.remove(database.engine, "before_cursor_execute", note)

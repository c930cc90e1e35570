"""Turns violations of a unique constraint into 409."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import InstrumentedAttribute

from app.http.errors import Conflict
from app.schemas.error_codes import Code


@contextmanager
def conflict_on(column: InstrumentedAttribute[str], message: str, code: Code) -> Iterator[None]:
    """Answer 409 with ``message`` and ``code`` when the value of a unique ``column`` is taken."""
    try:
        yield
    except IntegrityError as error:
        table = column.class_.__tablename__
        message_of_database = str(error.orig)
        # PostgreSQL names the constraint, SQLite the column.
        names = (f"uq_{table}_{column.key}", f"{table}.{column.key}")
        if any(name in message_of_database for name in names):
            raise Conflict(message, code) from error
        raise

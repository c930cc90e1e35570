"""Uniqueness is the database's to decide: its refusal, told apart by column and turned into a 409."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import InstrumentedAttribute

from app.http.errors import Conflict


@contextmanager
def conflict_on(column: InstrumentedAttribute[str], message: str) -> Iterator[None]:
    """Answer 409 with ``message`` when the value of a unique ``column`` is taken."""
    try:
        yield
    except IntegrityError as error:
        table = column.class_.__tablename__
        told = str(error.orig)
        # PostgreSQL names the constraint, SQLite the column.
        if f"uq_{table}_{column.key}" in told or f"{table}.{column.key}" in told:
            raise Conflict(message) from error
        raise

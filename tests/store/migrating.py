"""The contents of a database, and the data lost between two revisions."""

from __future__ import annotations

from typing import Any

from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, select

from store.sql.database import MIGRATIONS, Database


def every_revision() -> list[str]:
    """The newest first."""
    return [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()]


def rows(database: Database) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table of the database, in the database's own types."""
    tables = MetaData()
    with database.engine.connect() as connection:
        tables.reflect(connection)
        return {
            name: [
                dict(row) for row in connection.execute(select(table).order_by(*table.primary_key)).mappings()
            ]
            for name, table in tables.tables.items()
            if name != "alembic_version"
        }


def lost(before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What both sides of a step have room for, and is not the same on both."""
    found = []
    for table in before.keys() & after.keys():
        if len(before[table]) != len(after[table]):
            found.append(f"{len(before[table])} rows of {table} became {len(after[table])}")
        for old, new in zip(before[table], after[table], strict=False):
            found += [f"{table}.{name}" for name in old.keys() & new.keys() if old[name] != new[name]]
    return found

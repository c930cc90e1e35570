"""Alembic's entry point: migrations run on the connection that ``Database.upgrade`` passes."""

from __future__ import annotations

from alembic import context

from store.sql.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    # SQLite alters a table by copying it.
    render_as_batch=True,
)
context.run_migrations()

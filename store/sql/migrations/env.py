"""Alembic's entry: migrations run on the connection that ``Database.upgrade`` hands over."""

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

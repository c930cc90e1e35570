"""Migrations, on every database that we support."""

from __future__ import annotations

from alembic import command
from sqlalchemy import inspect

from store.database import Database, alembic_config
from store.models import Base, User


def test_migrations_make_the_tables_of_the_models(empty_database: Database):
    assert not empty_database.is_current()

    empty_database.upgrade()

    assert empty_database.is_current()
    with empty_database.engine.begin() as connection:
        # Raises when the models have anything that the migrations lack, or the other way round.
        command.check(alembic_config(connection))


def test_upgrading_twice_changes_nothing(fresh_database: Database):
    with fresh_database.writing() as session:
        session.add(User(custom_id="ada"))

    fresh_database.upgrade()

    with fresh_database.reading() as session:
        assert session.query(User).count() == 1


def test_the_way_down_leaves_nothing(fresh_database: Database):
    with fresh_database.engine.begin() as connection:
        command.downgrade(alembic_config(connection), "base")

    left = set(inspect(fresh_database.engine).get_table_names()) & set(Base.metadata.tables)
    assert not left

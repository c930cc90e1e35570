"""Migrations, on every database that we support."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Integer,
    LargeBinary,
    String,
    insert,
    inspect,
    select,
    update,
)

from store.sql.database import Database, MigrationState, alembic_config
from store.sql.models import (
    Administrator,
    ApiKey,
    Base,
    Membership,
    Organization,
    Role,
    User,
    UserInvitation,
    UtcDateTime,
    now,
)
from store.sql.queries import administrators, audit, user_invitations
from store.sql.queries.issuers import Issuer
from store.sql.queries.user_invitations import InvitationState
from tests.databases import new_database, opened
from tests.store.migrating import every_revision, lost, rows

# The revision before invitations named the person who made them.
BEFORE_ISSUERS = "0014"


def test_migrations_make_the_tables_of_the_models(empty_database: Database):
    assert empty_database.migration_state() is MigrationState.OLDER

    empty_database.upgrade()

    assert empty_database.migration_state() is MigrationState.CURRENT
    with empty_database.engine.begin() as connection:
        # Raises when the models have anything that the migrations lack, or the other way round.
        command.check(alembic_config(connection))


def test_upgrading_twice_changes_nothing(own_database: Database):
    with own_database.writing() as session:
        session.add(User(custom_id="ada"))

    own_database.upgrade()

    with own_database.reading() as session:
        assert session.query(User).count() == 1


def test_the_way_down_leaves_nothing(own_database: Database):
    with own_database.migrating() as connection:
        command.downgrade(alembic_config(connection), "base")

    left = set(inspect(own_database.engine).get_table_names()) & set(Base.metadata.tables)
    assert not left


def test_an_open_invitation_stays_with_the_person_who_made_it(own_database: Database):
    """One of a person whose rights have changed since, or of another one of that name, is withdrawn."""
    with own_database.writing() as session:
        user = User(custom_id="ada")
        session.add(user)
        session.flush()
        issuers = {
            name: administrators.create(session, name=name, password_hash="-", role=Role.OPERATOR)
            for name in ("olga", "changed", "later", "viewer")
        }
        for name, row in issuers.items():
            by = Issuer(administrator_id=row.id, security_stamp=row.security_stamp)
            made_by = f"operator {name}"
            user_invitations.make(session, {name: user.id}, scope="write", created_by=made_by, issuer=by)
            session.execute(update(UserInvitation).values(revoked_at=None))
        audit.record(session, actor="operator changed", action="changePassword", subject="changed")
        issuers["later"].created_at = now() + timedelta(hours=1)
        issuers["viewer"].role = Role.VIEWER
    with own_database.migrating() as connection:
        command.downgrade(alembic_config(connection), BEFORE_ISSUERS)

    own_database.upgrade()

    with own_database.reading() as session:
        found = session.scalars(select(UserInvitation)).all()
        states = {row.created_by.partition(" ")[2]: user_invitations.state(row) for row in found}
    assert states == {
        "olga": InvitationState.PENDING,
        "changed": InvitationState.REVOKED,
        "later": InvitationState.REVOKED,
        "viewer": InvitationState.REVOKED,
    }


@pytest.mark.slow
def test_each_step_down_and_up_again_keeps_what_both_sides_can_hold(own_database: Database):
    with own_database.engine.begin() as connection:
        fill(connection)
    revisions = every_revision()
    assert len(revisions) > 5

    for here, below in pairwise([*revisions, "base"]):
        before = rows(own_database)
        for step, target in (
            (command.downgrade, below),
            (command.upgrade, here),
            (command.downgrade, below),
        ):
            with own_database.migrating() as connection:
                step(alembic_config(connection), target)
            kept = rows(own_database)
            assert lost(before, kept) == [], f"{step.__name__} to {target}"
            before = kept
    assert not before


@pytest.mark.parametrize("model", [User, Organization, ApiKey, Administrator])
def test_the_id_of_a_deleted_row_is_never_used_again(own_database: Database, model: type[Any]):
    values = {
        User: {"custom_id": "ada"},
        Organization: {"slug": "acme"},
        ApiKey: {"name": "one", "visible": "alm_1", "digest": "1"},
        Administrator: {"name": "root", "password_hash": "-"},
    }[model]

    def insert_and_delete() -> int:
        with own_database.writing() as session:
            row = model(**values)
            session.add(row)
            session.flush()
            number = row.id
            session.delete(row)
        return number

    assert insert_and_delete() < insert_and_delete()


def test_sqlite_migration_that_breaks_foreign_keys_is_rolled_back(tmp_path: Path):
    with new_database("sqlite", tmp_path) as url, opened(url) as database:
        database.upgrade()

        with pytest.raises(RuntimeError, match="breaks 2 foreign keys"), database.migrating() as connection:
            connection.execute(insert(Membership).values(organization_id=1, user_id=1))

        with database.reading() as session:
            assert session.query(Membership).count() == 0


def fill(connection: Connection) -> None:
    """Insert a row into every table, with equal values in equal columns, so that foreign keys match."""
    for table in Base.metadata.sorted_tables:
        connection.execute(insert(table).values({column: value(column) for column in table.columns}))


def value(column: Column[Any]) -> Any:
    """What its type can hold, as little like its default as possible."""
    for key in column.foreign_keys:
        return value(key.column)
    match column.type:
        case UtcDateTime():
            return datetime(2026, 11, 20, 9, 30, 59, 123456, tzinfo=UTC)
        case JSON():
            return {"ä": [1, None]}
        case LargeBinary():
            return b"\x00\xff\x01"
        case Boolean():
            return True
        case Integer():
            return 7
        case String():
            return f"ä{column.name}"[: column.type.length]
    raise TypeError(f"{column} is of a new type: say here what it holds")

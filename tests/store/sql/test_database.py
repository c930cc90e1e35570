"""Database sessions: commit, rollback and concurrent writers."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError, InvalidRequestError, StatementError

from store.sql.database import Database
from store.sql.models import Membership, Organization, User


def test_a_block_that_fails_leaves_nothing(fresh_database: Database):
    def fail() -> None:
        with fresh_database.writing() as session:
            session.add(User(custom_id="ada"))
            session.flush()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    with fresh_database.reading() as session:
        assert session.scalars(select(User)).all() == []


def test_of_two_simultaneous_writers_both_finish(fresh_database: Database):
    both_have_read = threading.Barrier(2, timeout=60)
    failures = []

    def write(name: str) -> None:
        try:
            with fresh_database.reading() as session:
                session.scalars(select(User)).all()
            both_have_read.wait()
            with fresh_database.writing() as session:
                session.scalars(select(User)).all()
                session.add(User(custom_id=name))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in ("ada", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    with fresh_database.reading() as session:
        assert set(session.scalars(select(User.custom_id))) == {"ada", "bob"}


def test_a_value_taken_twice_is_refused_by_the_database(fresh_database: Database):
    with fresh_database.writing() as session:
        session.add(User(custom_id="ada"))

    with pytest.raises(IntegrityError), fresh_database.writing() as session:
        session.add(User(custom_id="ada"))


def test_deleted_user_loses_memberships_and_organization_stays(fresh_database: Database):
    with fresh_database.writing() as session:
        user, organization = User(custom_id="ada"), Organization(slug="acme", name=None)
        session.add_all([user, organization])
        session.flush()
        session.add(Membership(user_id=user.id, organization_id=organization.id))

    with fresh_database.writing() as session:
        session.delete(session.get_one(User, user.id))

    with fresh_database.reading() as session:
        assert session.scalars(select(Membership)).all() == []
        assert session.scalars(select(Organization.slug)).all() == ["acme"]


def test_instants_come_back_as_they_went_in(fresh_database: Database):
    written = datetime(2026, 3, 29, 2, 30, 0, 123000, timezone(timedelta(hours=5, minutes=45)))
    with fresh_database.writing() as session:
        session.add(User(custom_id="ada", created_at=written))

    with fresh_database.reading() as session:
        read = session.scalars(select(User.created_at)).one()
    assert read == written
    assert read.tzinfo is UTC


def test_a_time_without_offset_is_refused(fresh_database: Database):
    with pytest.raises(StatementError, match="offset"), fresh_database.writing() as session:
        session.add(User(custom_id="ada", created_at=datetime(2026, 1, 1)))  # noqa: DTZ001


def test_lazy_load_of_a_relation_is_refused(fresh_database: Database):
    with fresh_database.writing() as session:
        session.add(User(custom_id="ada"))

    with fresh_database.reading() as session, pytest.raises(InvalidRequestError, match="lazy"):
        _ = session.scalars(select(User)).one().connections

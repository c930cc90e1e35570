"""Sessions of the dashboard and their lifetimes."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

from store.sql.database import Database
from store.sql.models import now
from store.sql.queries import administrators, dashboard_sessions


@pytest.fixture
def ada(fresh_database: Database) -> int:
    with fresh_database.writing() as session:
        return administrators.create(session, name="ada", password_hash="a").id


def begin(database: Database, administrator_id: int, agent: str = "test") -> str:
    with database.writing() as session:
        return dashboard_sessions.begin(session, administrator_id, address="10.0.0.1", agent=agent)


def known(database: Database, secret: str) -> str | None:
    """The id of the living session with this secret."""
    with database.reading() as session:
        found = dashboard_sessions.load(session, secret)
        return None if found is None else found.id


@pytest.fixture
def later(monkeypatch):
    """Set the clock: ``later(days=2)`` from now."""

    def set_clock(**passed: float) -> datetime:
        moment = now() + timedelta(**passed)
        monkeypatch.setattr(dashboard_sessions, "now", lambda: moment)
        return moment

    return set_clock


def test_a_session_is_kept_as_a_hash_and_known_by_its_secret_alone(fresh_database, ada):
    secret = begin(fresh_database, ada)

    with fresh_database.engine.connect() as connection:
        (row,) = connection.execute(text("SELECT * FROM dashboard_sessions"))
    assert secret not in str(row)
    assert known(fresh_database, secret) == row.id
    # The values that the page lists are not usable as the secret.
    assert known(fresh_database, row.id) is None
    assert known(fresh_database, row.digest) is None


def test_a_session_ends_two_days_after_it_was_last_seen(fresh_database, ada, later):
    secret = begin(fresh_database, ada)

    later(hours=47)
    session_id = known(fresh_database, secret)
    assert session_id is not None
    with fresh_database.writing() as session:
        dashboard_sessions.seen(session, session_id)
    later(hours=47 + 47)
    assert known(fresh_database, secret) is not None
    later(hours=47 + 48)
    assert known(fresh_database, secret) is None


def test_a_session_ends_after_two_weeks_however_often_it_is_seen(fresh_database, ada, later):
    secret = begin(fresh_database, ada)

    for day in range(1, 14):
        later(days=day)
        session_id = known(fresh_database, secret)
        assert session_id is not None, day
        with fresh_database.writing() as session:
            dashboard_sessions.seen(session, session_id)
    later(days=14)
    assert known(fresh_database, secret) is None


def test_expired_sessions_are_hidden_and_removed_by_next_one(fresh_database, ada, later):
    begin(fresh_database, ada, agent="old")

    later(days=3)
    with fresh_database.reading() as session:
        assert dashboard_sessions.of_administrator(session, ada) == []
    begin(fresh_database, ada, agent="new")

    with fresh_database.engine.connect() as connection:
        assert connection.scalars(text("SELECT agent FROM dashboard_sessions")).all() == ["new"]


def test_an_administrator_ends_no_session_but_their_own(fresh_database, ada):
    with fresh_database.writing() as session:
        bob = administrators.create(session, name="bob", password_hash="b").id
    secret = begin(fresh_database, bob)
    session_id = known(fresh_database, secret)

    with fresh_database.writing() as session:
        assert not dashboard_sessions.end(session, ada, session_id)
        assert dashboard_sessions.end_others(session, ada, but=None) == 0
    assert known(fresh_database, secret) == session_id
    with fresh_database.writing() as session:
        assert dashboard_sessions.end(session, bob, session_id)
        assert not dashboard_sessions.end(session, bob, session_id)
    assert known(fresh_database, secret) is None


def test_all_sessions_but_one_are_ended(fresh_database, ada):
    kept, *others = [begin(fresh_database, ada) for _ in range(3)]

    with fresh_database.writing() as session:
        assert dashboard_sessions.end_others(session, ada, but=known(fresh_database, kept)) == 2

    assert known(fresh_database, kept) is not None
    assert [known(fresh_database, each) for each in others] == [None, None]


def test_address_and_user_agent_are_truncated(fresh_database, ada):
    with fresh_database.writing() as session:
        dashboard_sessions.begin(session, ada, address="1" * 99, agent="שלום " * 99)

    with fresh_database.reading() as session:
        (row,) = dashboard_sessions.of_administrator(session, ada)
    assert (len(row.address), len(row.agent)) == (64, 256)

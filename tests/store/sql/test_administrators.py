"""Administrators and their invitations."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from store.sql.database import Database
from store.sql.models import Role, now
from store.sql.queries import administrators, dashboard_sessions


def invite(database: Database) -> str:
    with database.writing() as session:
        return administrators.invite(session)


def accept(database: Database, secret: str) -> bool:
    with database.writing() as session:
        return administrators.accept(session, secret) is not None


def test_concurrent_uses_of_an_invitation_succeed_once(fresh_database):
    secret = invite(fresh_database)
    gate = threading.Barrier(8)

    def use(_: int) -> bool:
        gate.wait(timeout=10)
        return accept(fresh_database, secret)

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(use, range(8))) == [False] * 7 + [True]


def test_a_link_is_kept_as_a_hash_alone(fresh_database):
    secret = invite(fresh_database)

    with fresh_database.engine.connect() as connection:
        (row,) = connection.execute(text("SELECT * FROM invitations"))
    assert len(secret) == 43
    assert secret not in str(row)


def test_a_link_ends_after_a_day_and_is_cleared_away_by_the_next(fresh_database, monkeypatch):
    secret = invite(fresh_database)

    monkeypatch.setattr(administrators, "now", lambda: now() + timedelta(hours=23, minutes=59))
    with fresh_database.reading() as session:
        assert administrators.invited(session, secret)
    monkeypatch.setattr(administrators, "now", lambda: now() + timedelta(days=1))
    with fresh_database.reading() as session:
        assert not administrators.invited(session, secret)
    assert not accept(fresh_database, secret)
    invite(fresh_database)
    with fresh_database.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM invitations")) == 1


def test_several_links_are_good_beside_each_other(fresh_database):
    first, second = invite(fresh_database), invite(fresh_database)

    assert first != second
    assert accept(fresh_database, second)
    assert accept(fresh_database, first)


def test_no_two_administrators_have_one_name(fresh_database):
    with fresh_database.writing() as session:
        administrators.create(session, name="ada", password_hash="a")

    with pytest.raises(IntegrityError), fresh_database.writing() as session:
        administrators.create(session, name="ada", password_hash="b")

    with fresh_database.reading() as session:
        assert administrators.count(session) == 1
        assert administrators.find(session, "ada").password_hash == "a"
        assert administrators.find(session, "Ada") is None


def test_an_administrator_goes_with_every_session(fresh_database):
    with fresh_database.writing() as session:
        ada = administrators.create(session, name="ada", password_hash="a")
        bob = administrators.create(session, name="bob", password_hash="b")
        gone = dashboard_sessions.begin(session, ada.id, address="", agent="")
        kept = dashboard_sessions.begin(session, bob.id, address="", agent="")

    with fresh_database.writing() as session:
        administrators.remove(session, ada.id)

    with fresh_database.reading() as session:
        assert [each.name for each in administrators.every(session)] == ["bob"]
        assert dashboard_sessions.load(session, gone) is None
        assert dashboard_sessions.load(session, kept).name == "bob"


def test_last_administrator_cannot_be_removed_or_demoted(fresh_database):
    with fresh_database.writing() as session:
        ada = administrators.create(session, name="ada", password_hash="a").id
        administrators.create(session, name="bob", password_hash="b", role=Role.OPERATOR)

    for change in (
        lambda session: administrators.remove(session, ada),
        lambda session: administrators.change_role(session, ada, Role.OPERATOR),
    ):
        with pytest.raises(administrators.LastAdministrator), fresh_database.writing() as session:
            change(session)
    with fresh_database.reading() as session:
        assert administrators.count(session) == 1
    with fresh_database.writing() as session:
        administrators.change_role(session, ada, Role.ADMINISTRATOR)


@pytest.mark.parametrize("change", ["remove", "change_role"])
def test_concurrent_removals_leave_one_administrator(fresh_database, change):
    with fresh_database.writing() as session:
        both = [administrators.create(session, name=name, password_hash="-").id for name in "ab"]
    gate = threading.Barrier(2)

    def end(number: int) -> bool:
        gate.wait(timeout=10)
        try:
            with fresh_database.writing() as session:
                if change == "remove":
                    administrators.remove(session, number)
                else:
                    administrators.change_role(session, number, Role.VIEWER)
        except administrators.LastAdministrator:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(end, both)) == [False, True]
    with fresh_database.reading() as session:
        assert administrators.count(session) == 1


def test_an_invitation_carries_its_role(fresh_database):
    with fresh_database.writing() as session:
        secret = administrators.invite(session, Role.OPERATOR)
    with fresh_database.writing() as session:
        assert administrators.invited(session, secret) is Role.OPERATOR
        assert administrators.accept(session, secret) is Role.OPERATOR

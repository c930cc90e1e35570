"""Counts of live and ended connections, and the list of ended ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from store.sql.models import OAuthConnection
from store.sql.queries import connections
from store.sql.queries.connections import ConnectionCounts
from tests import people

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def connected(fresh_database, keyring):
    """Connect an account of a new user; returns the connection's id."""

    def make(name, provider="google"):
        with fresh_database.writing() as session:
            user, email = people.add_user(session, name), f"{name}@example.com"
            return people.add_connection(session, keyring, user, provider=provider, email=email).id

    return make


@pytest.fixture
def end(fresh_database):
    """Let connections end at a moment."""

    def at(moment, *ids):
        with fresh_database.writing() as session:
            for each in ids:
                connections.mark_dead(session, each, "the grant has ended")
            ended = update(OAuthConnection).where(OAuthConnection.id.in_(ids))
            session.execute(ended.values(ended_at=moment))

    return at


def test_connections_are_counted_by_provider_and_whether_they_live(fresh_database, connected, end):
    with fresh_database.reading() as session:
        assert connections.counts(session) == {}
    one, _, _ = connected("ada"), connected("bob"), connected("eve", "microsoft")
    end(NOON, one)

    with fresh_database.reading() as session:
        assert connections.counts(session) == {
            "google": ConnectionCounts(1, 1),
            "microsoft": ConnectionCounts(1, 0),
        }


def test_those_that_have_ended_are_listed_the_latest_first(fresh_database, connected, end):
    early, late, alive = connected("early"), connected("late", "microsoft"), connected("alive")
    end(NOON, early)
    end(NOON + timedelta(seconds=1), late)

    with fresh_database.reading() as session:
        found = connections.dead(session)

    assert [(each.id, each.user, each.provider, each.ended_at) for each in found] == [
        (late, "late", "microsoft", NOON + timedelta(seconds=1)),
        (early, "early", "google", NOON),
    ]
    assert found[0].email == "late@example.com"
    assert found[0].ended_because == "the grant has ended"
    assert alive not in {each.id for each in found}


def test_pages_are_complete_with_equal_or_unknown_times(fresh_database, connected, end):
    for n, moment in enumerate([NOON, NOON, NOON, NOON + timedelta(microseconds=1), None, None]):
        end(moment, connected(f"user-{n}"))

    with fresh_database.reading() as session:
        everything = connections.dead(session)
        pages, after = [], None
        while page := connections.dead(session, after=after, limit=2):
            pages += page
            after = page[-1].ended_at, page[-1].id

    assert pages == everything
    assert len(pages) == 6
    assert [each.ended_at for each in pages[-2:]] == [None, None]

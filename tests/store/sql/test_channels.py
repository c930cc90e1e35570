"""Channels in the database: secrets, renewal and expiry."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, update

from store.cache.busy_cache import CalendarKey
from store.sql.models import Channel, OAuthConnection, now
from store.sql.queries import channels
from tests import people

DAY = timedelta(days=1)


@pytest.fixture
def connection(fresh_database, keyring) -> str:
    with fresh_database.writing() as session:
        return people.add_connection(session, keyring, people.add_user(session, "ada")).id


@pytest.fixture
def write(fresh_database):
    """Run a query in a transaction of its own."""

    def run(query, *args, **more):
        with fresh_database.writing() as session:
            return query(session, *args, **more)

    return run


@pytest.fixture
def read(fresh_database):
    def run(query, *args, **more):
        with fresh_database.reading() as session:
            return query(session, *args, **more)

    return run


@pytest.fixture
def new(write, connection):
    """A channel that is known to be wanted."""

    def make(name: str = "a" * 32, calendar: str = "primary") -> str:
        assert write(channels.add, name, CalendarKey(connection, calendar), "secret")
        return name

    return make


@pytest.fixture
def opened(new, write):
    """A channel that watches."""

    def make(name: str = "a" * 32, *, life: timedelta = DAY, calendar: str = "primary") -> Channel:
        new(name, calendar)
        write(channels.confirmed, name)
        return write(channels.opened, name, provider_id="p", resource="r", expires_at=now() + life)

    return make


def ids(rows) -> list[str]:
    return [row.id for row in rows]


def test_a_channel_speaks_for_its_calendar_by_its_secret(new, read, connection, fresh_database):
    name = new()
    (channel,) = read(channels.with_accounts, [name, "b" * 32]).values()

    assert (channel.provider, channel.key) == ("google", CalendarKey(connection, "primary"))
    assert channel.has_secret("secret")
    assert not channel.has_secret("")
    assert not channel.has_secret("Secret")
    # Neither the database nor a log has the secret.
    with fresh_database.reading() as session:
        row = session.scalars(select(Channel)).one()
    assert "secret" not in [getattr(row, column.key) for column in Channel.__table__.columns]
    assert channel.secret_digest not in repr(channel)


def test_none_is_noted_for_a_connection_that_is_gone(write):
    assert not write(channels.add, "a" * 32, CalendarKey("gone", "primary"), "secret")


@pytest.mark.parametrize("first", ["opened", "confirmed"])
def test_a_channel_watches_once_it_is_open_and_confirmed(new, write, first):
    name = new()

    def opened():
        ends = now() + DAY
        return write(channels.opened, name, provider_id="p", resource="r", expires_at=ends)

    steps = {"opened": opened, "confirmed": lambda: write(channels.confirmed, name)}
    half = steps.pop(first)()
    assert channels.watches_for(half) == 0
    whole = steps.popitem()[1]()
    assert DAY - channels.MARGIN - timedelta(seconds=5) < timedelta(seconds=channels.watches_for(whole)) < DAY


def test_a_confirmation_counts_once(new, write):
    name = new()
    assert write(channels.confirmed, name) is not None
    assert write(channels.confirmed, name) is None
    assert write(channels.confirmed, "b" * 32) is None


def test_a_short_life_leaves_a_short_margin(opened):
    row = opened(life=timedelta(seconds=80))
    assert 65 < channels.watches_for(row) <= 70


def test_a_channel_is_due_in_the_last_quarter_of_its_life(opened, read, write, fresh_database):
    name = opened().id
    assert read(channels.due, limit=5) == []
    with fresh_database.reading() as session:
        row = session.get_one(Channel, name)
    assert DAY * 0.74 < row.renew_at - now() < DAY * 0.76

    write(channels.make_due, name)
    assert ids(read(channels.due, limit=5)) == [name]
    write(channels.postpone, name, 60)
    assert read(channels.due, limit=5) == []
    write(channels.make_due, name)
    assert channels.watches_for(write(channels.extended, name, now() + 2 * DAY)) > DAY.total_seconds()
    assert read(channels.due, limit=5) == []


def test_what_is_not_open_cannot_be_hurried(new, write, read):
    write(channels.make_due, new())
    assert read(channels.due, limit=5) == []


def test_the_last_of_a_calendar_is_the_heir(opened, read):
    first, second = opened("a" * 32), opened("b" * 32)
    opened("c" * 32, calendar="team")
    assert read(channels.successor, first).id == second.id
    assert read(channels.successor, second) is None


def test_those_that_watch_come_in_pages(opened, new, read):
    for letter in "abc":
        opened(letter * 32, calendar=letter)
    opened("d" * 32, life=-DAY)
    new("e" * 32)
    assert ids(read(channels.watching_channels, after="", limit=2)) == ["a" * 32, "b" * 32]
    assert ids(read(channels.watching_channels, after="b" * 32, limit=2)) == ["c" * 32]


def test_of_two_that_watch_a_calendar_the_newer_counts(opened, new, read, write):
    opened("b" * 32)
    new("c" * 32)
    assert ids(read(channels.watching_channels, after="", limit=2)) == ["b" * 32]
    opened("a" * 32)
    assert ids(read(channels.watching_channels, after="", limit=2)) == ["a" * 32]


def test_over_is_what_has_ended_and_what_came_to_nothing(opened, new, read, write, fresh_database):
    opened("a" * 32)
    opened("b" * 32, life=-DAY)
    new("c" * 32)
    new("d" * 32)
    with fresh_database.writing() as session:
        long_ago = now() - channels.UNCONFIRMED_LIFETIME - timedelta(seconds=1)
        session.execute(
            update(Channel).where(Channel.id.in_(["a" * 32, "d" * 32])).values(created_at=long_ago)
        )

    assert sorted(ids(read(channels.expired_or_unconfirmed, limit=5))) == ["b" * 32, "d" * 32]
    write(channels.remove, ["b" * 32])
    assert read(channels.existing_ids, ["a" * 32, "b" * 32]) == {"a" * 32}


def test_channels_go_with_their_connection(opened, write, read, connection, fresh_database):
    opened()
    assert len(read(channels.of_connections, [connection])) == 1
    with fresh_database.writing() as session:
        session.delete(session.get_one(OAuthConnection, connection))
    assert read(channels.of_connections, [connection]) == []
    assert write(channels.extended, "a" * 32, now() + DAY) is None

"""Held time is cached by name: what changes under one name is loaded again, and nothing else."""

from __future__ import annotations

import fakeredis
import pytest
from redis import Redis

from store.cache.cache_tags import user_name
from store.cache.fast_redis import FastRedis
from store.cache.held_times import VERSION_SECONDS, HeldTimes, version_key
from store.cache.versioned_cache import CachedRows
from store.sql.queries import holds
from store.sql.queries.holds import NewHold, TakenHold
from tests import people

MINUTE = 60_000
NOW = 1_800_000_000_000
ROOM = "google:calendar:room@example.com"


@pytest.fixture
def redis() -> Redis:
    return fakeredis.FakeRedis()


@pytest.fixture
def held_times(fresh_database, redis) -> HeldTimes:
    return HeldTimes(fresh_database, redis, FastRedis(redis))


@pytest.fixture
def ada(fresh_database) -> int:
    with fresh_database.writing() as session:
        return people.add_user(session, "ada").id


@pytest.fixture
def hold(fresh_database, ada):
    """Hold the user and the room, for five minutes."""

    def hold(starts=NOW + 60 * MINUTE):
        new = NewHold(starts, starts + MINUTE, NOW + 5 * MINUTE, f"{starts}")
        with fresh_database.writing() as session:
            taken = holds.take(session, {ada: [ROOM]}, new, now=NOW)
            assert isinstance(taken, TakenHold)
            holds.promise(session, taken.id, expires_at=NOW + 5 * MINUTE, now=NOW)
        return taken.id

    return hold


@pytest.fixture
def read(held_times, redis):
    """The versions of some names, as a request reads them with its busy periods."""
    return lambda names: redis.mget(map(version_key, names))


def ids(held):
    return {name: [each.hold for each in times] for name, times in held.items()}


def test_what_is_loaded_is_cached_by_name(held_times, hold, read, ada):
    rows, names = CachedRows(b"1"), [user_name(ada), ROOM, "user:999"]
    held = hold()
    assert held_times.cached(rows, names, read(names)) is None

    found, is_current = held_times.load(rows, names, read(names), NOW)

    assert (ids(found), is_current) == ({user_name(ada): [held], ROOM: [held]}, True)
    for some in (names, [ROOM], ["user:999"]):
        assert held_times.cached(rows, some, read(some)) == {n: found[n] for n in some if n in found}
    # They go with the database rows.
    assert held_times.cached(CachedRows(b"2"), names, read(names)) is None


def test_a_change_of_one_name_leaves_the_others_cached(held_times, hold, read, ada, redis):
    rows, names = CachedRows(b"1"), [user_name(ada), ROOM]
    held_times.load(rows, names, read(names), NOW)
    held = hold()

    held_times.invalidate([ROOM])

    assert held_times.cached(rows, [user_name(ada)], read([user_name(ada)])) == {}
    assert held_times.cached(rows, [ROOM], read([ROOM])) is None
    found, _ = held_times.load(rows, names, read(names), NOW)
    assert ids(found) == {ROOM: [held]}
    # Longer than any hold.
    assert 3600 < redis.ttl(version_key(ROOM)) <= VERSION_SECONDS


def test_a_version_that_is_replaced_during_the_load_is_noticed(held_times, hold, read, monkeypatch):
    rows, versions, load = CachedRows(b"1"), read([ROOM]), holds.active

    def slow(*args, **named):
        found = load(*args, **named)
        held_times.invalidate([ROOM])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(holds, "active", slow)
        _, is_current = held_times.load(rows, [ROOM], versions, NOW)

    assert not is_current
    assert held_times.cached(rows, [ROOM], read([ROOM])) is None


def test_a_change_is_announced_before_and_after_its_commit(held_times, read):
    before = read([ROOM])

    with held_times.changing([ROOM]):
        during = read([ROOM])

    assert before != during
    assert read([ROOM]) not in (before, during)


def test_a_change_that_fails_is_announced_too(held_times, read):
    """The commit may have reached the database."""

    def fail():
        with held_times.changing([ROOM]):
            seen.append(read([ROOM]))
            raise OSError("closed")

    seen: list[object] = []
    with pytest.raises(OSError, match="closed"):
        fail()
    assert read([ROOM]) not in seen

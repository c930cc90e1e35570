"""Held time is cached by name: what changes under one name is loaded again, and nothing else."""

from __future__ import annotations

import fakeredis
import pytest
from redis import Redis

from store.cache.cache_tags import UserNames, user_name
from store.cache.fast_redis import FastRedis
from store.cache.versioned_cache import VERSION_SECONDS, CachedRows, HeldNames, HeldTimes, version_key
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
    def load_active(names, now):
        with fresh_database.reading() as session:
            return holds.active(session, names, now=now)

    return HeldTimes(load_active, redis, FastRedis(redis))


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
def versions(redis):
    """The versions of some names, as a request reads them with its busy periods."""
    return lambda names: redis.mget(names.version_keys())


@pytest.fixture
def of_ada(ada) -> UserNames:
    """A user whose main calendar is the room."""
    return UserNames((user_name(ada), ROOM), (ROOM,))


def ids(held):
    return {names: [each.hold for each in times] for names, times in held.items()}


def test_what_is_loaded_is_cached_by_user(held_times, hold, versions, of_ada):
    rows, other = CachedRows(b"1"), UserNames(("user:999",), ("user:999",))
    names = HeldNames([of_ada, other])
    held = hold()
    assert held_times.cached(rows, names, versions(names)) is None

    found, is_current = held_times.load(rows, names, versions(names), NOW)

    # The hold takes the user and the room, and counts once.
    assert (ids(found), is_current) == ({of_ada: [held]}, True)
    for some in ([of_ada, other], [of_ada], [other]):
        again = HeldNames(some)
        assert held_times.cached(rows, again, versions(again)) == {n: found[n] for n in some if n in found}
    # They go with the database rows.
    assert held_times.cached(CachedRows(b"2"), names, versions(names)) is None


def test_a_change_of_one_name_leaves_other_users_cached(held_times, hold, versions, of_ada, redis):
    other = UserNames(("user:999",), ("user:999",))
    rows, names, of_other = CachedRows(b"1"), HeldNames([of_ada, other]), HeldNames([other])
    held_times.load(rows, names, versions(names), NOW)
    held = hold()

    held_times.invalidate([ROOM])

    assert held_times.cached(rows, of_other, versions(of_other)) == {}
    assert held_times.cached(rows, names, versions(names)) is None
    found, _ = held_times.load(rows, names, versions(names), NOW)
    assert ids(found) == {of_ada: [held]}
    # Longer than any hold.
    assert 3600 < redis.ttl(version_key(ROOM)) <= VERSION_SECONDS


def test_a_version_that_is_replaced_during_the_load_is_noticed(held_times, versions, of_ada, monkeypatch):
    rows, names, load = CachedRows(b"1"), HeldNames([of_ada]), holds.active

    def slow(*args, **named):
        found = load(*args, **named)
        held_times.invalidate([ROOM])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(holds, "active", slow)
        _, is_current = held_times.load(rows, names, versions(names), NOW)

    assert not is_current
    assert held_times.cached(rows, names, versions(names)) is None


def test_a_change_is_announced_before_and_after_its_commit(held_times, redis):
    before = redis.get(version_key(ROOM))

    with held_times.changing([ROOM]):
        during = redis.get(version_key(ROOM))

    assert before != during
    assert redis.get(version_key(ROOM)) not in (before, during)


def test_a_change_that_fails_is_announced_too(held_times, redis):
    """The commit may have reached the database."""

    def fail():
        with held_times.changing([ROOM]):
            seen.append(redis.get(version_key(ROOM)))
            raise OSError("closed")

    seen: list[object] = []
    with pytest.raises(OSError, match="closed"):
        fail()
    assert redis.get(version_key(ROOM)) not in seen

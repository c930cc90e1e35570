"""The versioned cache: rows that have changed are loaded again, others are not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import fakeredis
import pytest
from redis import Redis
from redis.exceptions import ConnectionError
from sqlalchemy import delete, update

from store.cache.fast_redis import FastRedis
from store.cache.versioned_cache import VERSION_KEY, VersionedCache
from store.sql.database import Database
from store.sql.models import ApiKey, AuditRecord, Membership, OAuthConnection, Organization, User, now
from store.sql.queries import api_keys, connection_rows, connections, idempotency, organizations
from store.sql.queries.connection_rows import Tokens


@pytest.fixture
def redis() -> Redis:
    return fakeredis.FakeRedis()


@pytest.fixture
def versioned_cache(redis: Redis) -> VersionedCache:
    return VersionedCache(redis, FastRedis(redis))


def counting() -> tuple[list[int], Callable[[], str]]:
    loads: list[int] = []

    def load() -> str:
        loads.append(1)
        return f"loaded {len(loads)}"

    return loads, load


def test_loaded_value_is_cached_until_version_changes(versioned_cache):
    _, load = counting()

    assert versioned_cache.current().get_or_load("ada", load) == "loaded 1"
    assert versioned_cache.current().get_or_load("ada", load) == "loaded 1"
    versioned_cache.bump_version()
    assert versioned_cache.current().get_or_load("ada", load) == "loaded 2"


def test_a_change_in_one_process_is_seen_by_every_other(versioned_cache, redis):
    other = VersionedCache(redis, FastRedis(redis))
    _, load = counting()
    other.current().get_or_load("ada", load)

    versioned_cache.bump_version()

    assert other.current().get_or_load("ada", load) == "loaded 2"


def test_recent_rows_have_old_version(versioned_cache, redis):
    VersionedCache(redis, FastRedis(redis)).bump_version()
    before = versioned_cache.current()
    VersionedCache(redis, FastRedis(redis)).bump_version()

    assert versioned_cache.recent() is before
    assert versioned_cache.switch_to(redis.get(VERSION_KEY)) is not before


def test_emptied_redis_restores_no_old_rows(versioned_cache, redis):
    _, load = counting()
    versioned_cache.current().get_or_load("ada", load)

    redis.flushall()

    assert versioned_cache.current().get_or_load("ada", load) == "loaded 2"


def test_rows_that_were_loaded_without_a_version_are_not_used_again(versioned_cache):
    """Whether they have changed since is unknown: Redis was down, and was emptied before it came back."""
    _, load = counting()
    versioned_cache.switch_to(None).get_or_load("ada", load)

    assert versioned_cache.switch_to(None).get_or_load("ada", load) == "loaded 2"


def test_none_is_not_cached(versioned_cache):
    answers = iter([None, "there now"])

    assert versioned_cache.current().get_or_load("ada", lambda: next(answers)) is None
    assert versioned_cache.current().get_or_load("ada", lambda: next(answers)) == "there now"


def test_rows_loaded_during_a_change_are_dropped_after_it(versioned_cache):
    """A reader that loads between the first replacement of the version and the commit has old rows."""
    versioned_cache.bump_version()
    cached = versioned_cache.current()
    assert cached.get_or_load("ada", lambda: "old") == "old"
    versioned_cache.bump_version()

    assert versioned_cache.current().get_or_load("ada", lambda: "new") == "new"


def test_nothing_is_cached_without_redis_nor_restored_later(redis):
    class Down(FastRedis):
        down = False

        def mget(self, names):
            if self.down:
                raise ConnectionError("down")
            return super().mget(names)

    fast_redis = Down(redis)
    versioned_cache = VersionedCache(redis, fast_redis)
    _, load = counting()
    versioned_cache.current().get_or_load("ada", load)

    fast_redis.down = True
    assert versioned_cache.current().get_or_load("ada", load) == "loaded 2"
    assert versioned_cache.current().get_or_load("ada", load) == "loaded 3"
    fast_redis.down = False
    assert versioned_cache.current().get_or_load("ada", load) == "loaded 4"


def test_too_large_value_is_returned_but_not_cached(versioned_cache):
    _, load = counting()

    assert versioned_cache.current().get_or_load("everybody", load, weight=lambda _: 10**9) == "loaded 1"
    assert versioned_cache.current().get_or_load("everybody", load, weight=lambda _: 10**9) == "loaded 2"


def test_many_threads_share_cached_rows(versioned_cache):
    cached = versioned_cache.current()
    threads = [
        threading.Thread(target=lambda: [cached.get_or_load(n % 50, lambda n=n: n % 50) for n in range(2000)])
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert [cached.get_or_load(n, lambda: None) for n in range(50)] == list(range(50))


@pytest.fixture
def changes() -> list[str]:
    return []


@pytest.fixture
def watched(fresh_database: Database, changes: list[str]) -> Iterator[Database]:
    """The same database; each change of the version is recorded in ``changes``."""
    database = Database(
        fresh_database.url.render_as_string(hide_password=False), lambda: changes.append("changing")
    )
    with database.writing() as session:
        session.add_all([Organization(slug="acme", name=None), User(custom_id="ada")])
    changes.clear()
    yield database
    database.close()


def connect(session, keyring):
    user = connections.replace(
        session,
        keyring,
        user_id=session.query(User).one().id,
        provider="google",
        email="ada@example.com",
        scope=["calendar"],
        tokens=Tokens("access", "refresh", None),
    )
    return user[0]


CHANGES = {
    "a new user": lambda session, _: session.add(User(custom_id="bruno")),
    "a user renamed": lambda session, _: setattr(session.query(User).one(), "custom_id", "eve"),
    "a user renamed by a statement": lambda session, _: session.execute(update(User).values(custom_id="eve")),
    "a user deleted": lambda session, _: session.delete(session.query(User).one()),
    "a user deleted by a statement": lambda session, _: session.execute(delete(User)),
    "an organization deleted": lambda session, _: organizations.remove(
        session, organizations.ids(session, ["acme"], organization_id=None)["acme"]
    ),
    "a member": lambda session, _: organizations.add_members(
        session,
        organizations.ids(session, ["acme"], organization_id=None)["acme"],
        [session.query(User).one().id],
    ),
    "a connection": connect,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_version_is_bumped_before_and_after_commit(watched, changes, keyring, change):
    with watched.writing() as session:
        change(session, keyring)
        assert changes == []

    assert changes == ["changing", "changing"]


def test_rolled_back_change_does_not_bump_version(watched, changes):
    def change_and_fail():
        with watched.writing() as session:
            session.add(User(custom_id="bruno"))
            session.flush()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        change_and_fail()

    assert changes == []


def test_savepoint_bumps_version_with_transaction(watched, changes):
    with watched.writing() as session:
        with session.begin_nested():
            session.add(User(custom_id="bruno"))
        assert changes == []

    assert changes == ["changing", "changing"]


def test_migration_bumps_version(watched, changes):
    watched.upgrade()

    assert changes == ["changing"]


def test_reading_does_not_bump_version(watched, changes):
    with watched.writing() as session:
        assert session.query(User).count() == 1

    assert changes == []


def test_ended_memberships_and_connections_bump_version(watched, changes, keyring):
    with watched.writing() as session:
        row = connect(session, keyring)
        session.add(Membership(organization_id=1, user_id=1))
    changes.clear()

    with watched.writing() as session:
        connections.mark_dead(session, row.id, "the grant has ended")
    assert len(changes) == 2
    with watched.writing() as session:
        organizations.remove_members(session, 1, [1])
    assert len(changes) == 4
    with watched.writing() as session:
        connections.remove(session, [row.id])
    assert len(changes) == 6


def test_renewed_tokens_bump_version_only_if_they_revive(watched, changes, keyring):
    with watched.writing() as session:
        row = connect(session, keyring)
    changes.clear()
    fresh = Tokens("another", "refresh", None)

    with watched.writing() as session:
        connections.renew(session, keyring, row.id, fresh)
    assert changes == []

    with watched.writing() as session:
        session.execute(update(OAuthConnection).values(alive=False))
    changes.clear()
    with watched.writing() as session:
        connections.renew(session, keyring, row.id, fresh)
    assert changes == ["changing", "changing"]
    with watched.reading() as session:
        stored = connection_rows.sealed(session, [row.id])[row.id]
        assert stored.alive
        assert connection_rows.open_credentials(stored, keyring).tokens == fresh


def test_revoked_key_bumps_version_and_new_key_does_not(watched, changes):
    with watched.writing() as session:
        api_keys.create(session, prefix="alm_", name="ops")
    assert changes == []

    with watched.writing() as session:
        assert len(api_keys.revoke(session, "ops", prefix="alm_")) == 1
    assert changes == ["changing", "changing"]


def test_idempotency_and_audit_rows_do_not_bump_version(watched, changes):
    with watched.writing() as session:
        session.add(ApiKey(name="ops", visible="v", digest="d"))
        session.add(AuditRecord(actor="ops", action="read", subject="ada"))
        session.flush()
        session.execute(update(idempotency.IdempotencyKey).values(expires_at=now()))

    assert changes == []

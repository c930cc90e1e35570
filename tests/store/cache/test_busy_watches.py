"""Watched calendars: their longer lifetime in the cache, and the end of a watch."""

from __future__ import annotations

import time

import pytest
from redis import Redis

from scheduling.intervals import Intervals
from store.cache.busy_cache import CLOCK_MARGIN, GAP_KEY, BusyCache, BusyRead, CalendarKey, watch_key
from store.cache.calendar_usage import ROUND, AskedCalendars
from store.cache.fast_redis import FastRedis
from store.stores import Stores

BUCKET = 1000
KEY, TEAM, OTHER = CalendarKey("c1", "primary"), CalendarKey("c1", "team"), CalendarKey("c2", "primary")
TTL, WATCHED = 60_000, 3_600_000


@pytest.fixture
def redis(stores: Stores) -> Redis:
    stores.redis.flushdb()
    return stores.redis


@pytest.fixture
def cache(redis: Redis) -> BusyCache:
    return BusyCache(redis, FastRedis(redis), ttl_seconds=60, bucket=BUCKET, watched_seconds=3600)


@pytest.fixture
def read(redis, cache):
    """Read a calendar: note the generation now, store when called."""

    def begin(key: CalendarKey = KEY):
        noted = cache.begin_reads([key.connection], {})[key.connection]

        def end(read_at: int = 7) -> None:
            with redis.pipeline(transaction=False) as pipe:
                busy = Intervals.of([(100, 200)])
                cache.store(pipe, [BusyRead(key, busy, 0, BUCKET, read_at=read_at, generation=noted)])
                pipe.execute()

        return end

    return begin


@pytest.fixture
def lives(redis):
    """Milliseconds for which a calendar's bucket is kept; -2 when it is not."""
    return lambda key=KEY: redis.pttl(f"busy:{key.connection}:{key.calendar}:0")


def test_what_is_read_under_a_watch_lives_for_longer(cache, read, lives):
    cache.watch(KEY, "channel", 86_400)
    read()()
    read(TEAM)()

    assert TTL < lives() <= WATCHED
    assert lives(TEAM) <= TTL


def test_what_was_read_before_the_watch_is_not_kept_by_it(cache, read, lives):
    read()()
    late = read()
    cache.watch(KEY, "channel", 86_400)
    late(read_at=8)

    assert 0 < lives() <= TTL


def test_nothing_outlives_the_watch(cache, read, lives):
    cache.watch(KEY, "channel", 300)
    read()()

    assert TTL < lives() <= 300_000


def test_a_watch_about_to_end_takes_nothing_from_the_usual_time(cache, read, lives):
    cache.watch(KEY, "channel", 5)
    read()()

    assert 5000 < lives() <= TTL


def test_a_watch_that_has_ended_already_is_none(cache, read, lives):
    cache.watch(KEY, "channel", -5)
    read()()

    assert cache.watched([KEY]) == [None]
    assert lives() <= TTL


def test_without_a_longer_time_a_watch_changes_nothing(redis, read, lives, cache):
    BusyCache(redis, FastRedis(redis), ttl_seconds=60, bucket=BUCKET).watch(KEY, "channel", 86_400)
    cache._watched = 0
    read()()

    assert 0 < lives() <= TTL


def test_a_change_empties_that_calendar_alone_and_the_watch_goes_on(cache, read, lives):
    cache.watch(KEY, "channel", 86_400)
    for key in (KEY, TEAM, OTHER):
        read(key)()
    cache.invalidate_calendar(KEY)

    assert lives() == -2
    assert lives(TEAM) > 0 < lives(OTHER)
    assert cache.watched([KEY, TEAM]) == ["channel", None]
    read()()
    assert lives() > TTL


def test_a_read_that_began_before_the_change_is_not_kept(cache, read, lives):
    cache.watch(KEY, "channel", 86_400)
    late = read()
    cache.invalidate_calendar(KEY)
    late()

    assert lives() == -2


def test_long_lived_entries_are_found_after_short_lived_reads(cache, read, lives, redis):
    cache.watch(KEY, "channel", 86_400)
    read()()
    # Stored last, and living a minute: the list of what is kept must not end with it.
    read(TEAM)()

    assert redis.pttl("busy-of:c1") > TTL
    cache.invalidate_connections(["c1"])
    assert lives() == lives(TEAM) == -2


def test_only_the_channel_that_watches_ends_the_watch(cache):
    cache.watch(KEY, "old", 600)
    cache.watch(KEY, "new", 86_400)
    cache.invalidate_calendar(KEY, unwatch="old")
    assert cache.watched([KEY]) == ["new"]
    cache.invalidate_calendar(KEY, unwatch="new")
    assert cache.watched([KEY]) == [None]
    # There is no watch: an empty channel name matches none.
    cache.invalidate_calendar(KEY)


def test_a_storm_leaves_one_read_to_be_kept(cache, read, lives):
    cache.watch(KEY, "channel", 86_400)
    read()()
    for _ in range(100):
        cache.invalidate_calendar(KEY)
    read()()

    assert lives() > TTL


def test_what_was_read_before_a_gap_of_notifications_is_not_used_for_longer(redis, cache, read):
    """The clock of a worker, which stamps reads, may be ahead of Redis's, which times the gap."""
    cache.watch(KEY, "channel", 86_400)
    gap = time.time_ns() // 1_000_000 - 10 * TTL
    redis.set(GAP_KEY, gap)

    def is_used(read_at: int) -> bool:
        read()(read_at=read_at)
        return not cache.load([KEY], 0, BUCKET).missing

    assert not is_used(gap + CLOCK_MARGIN - 1)
    assert is_used(gap + CLOCK_MARGIN)


def test_calendars_are_claimed_once_until_released(stores, redis):
    watching = stores.channel_usage
    assert watching.claim([KEY, TEAM], 60) == [KEY, TEAM]
    assert watching.claim([KEY, TEAM, OTHER], 60) == [OTHER]
    watching.release(KEY)
    assert watching.claim([KEY, TEAM], 60) == [KEY]
    watching.block_claims(OTHER, 0.001)
    while redis.exists("watch-claim:c2:primary"):
        pass
    assert watching.claim([OTHER], 60) == [OTHER]


def test_use_is_noted(stores, redis):
    stores.channel_usage.use([KEY])

    assert stores.channel_usage.used([KEY, TEAM]) == [True, False]
    assert stores.channel_usage.used([]) == []


def test_watched_calendars_of_answers_are_noted_once_in_a_while(redis, cache, read):
    asked = AskedCalendars(redis, ttl_seconds=60, max_age_seconds=600)
    now = time.time_ns() // 1_000_000
    for key, age in ((KEY, 61_000), (TEAM, 1_000)):
        cache.watch(key, "channel", 86_400)
        read(key)(read_at=now - age)
    keys = [KEY, TEAM, OTHER]
    used = cache.load(keys, 0, BUCKET)
    asked.note(keys, used)
    assert asked.asked_for(keys) == [False, False, False]
    asked.flush()
    assert asked.asked_for(keys) == [True, False, False]
    assert 0 < redis.pttl("watch-asked:c1:primary") <= 600_000

    asked.forget(KEY)
    asked.note(keys, used)
    asked.flush()
    assert asked.asked_for(keys) == [False, False, False]
    assert asked.asked_for([]) == []


def test_a_round_is_called_for_once(stores, redis):
    assert [stores.channel_usage.claim_round(60) for _ in range(3)] == [True, False, False]
    assert 0 < redis.pttl(ROUND) <= 60_000


def test_nothing_is_left_of_a_connection_that_is_gone(stores, redis, cache):
    stores.channel_usage.use([KEY, TEAM, OTHER])
    stores.channel_usage.claim([KEY], 60)
    cache.watch(KEY, "channel", 600)
    stores.channel_usage.forget(["c1", "c3"])

    left = {name.decode() for name in redis.scan_iter(count=1000)} - {"busy-generation:c1"}
    assert left == {"watch-used:c2:primary", "watch-of:c2"}
    assert watch_key(KEY) not in left

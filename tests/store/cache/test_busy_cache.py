"""The busy cache: cached and missing buckets, generations, and separation of calendars."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import fakeredis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import OutOfMemoryError

from scheduling.intervals import Intervals, clip, merge
from store.cache.busy_cache import INDEX_MARGIN, NEVER, BusyCache, BusyRead, CalendarKey
from store.cache.fast_redis import FastRedis
from store.config import embedded_redis
from store.lua import ScriptRedis
from store.stores import Stores

BUCKET = 1000
KEY = CalendarKey("c1", "primary")
OTHER = CalendarKey("c1", "team")
HUNDRED = Intervals(np.array([100]), np.array([200]))


@pytest.fixture
def redis() -> Redis:
    return fakeredis.FakeRedis()


@pytest.fixture
def cache(redis: Redis) -> BusyCache:
    return BusyCache(redis, FastRedis(redis), ttl_seconds=60, bucket=BUCKET)


def put(
    redis: Redis, cache: BusyCache, busy: Intervals, start: int, end: int, *, read_at=7, key=KEY, noted=b""
) -> None:
    with redis.pipeline(transaction=False) as pipe:
        cache.store(pipe, [BusyRead(key, busy, start, end, read_at=read_at, generation=noted)])
        pipe.execute()


class Cached(NamedTuple):
    """The cached data of one calendar."""

    busy: Intervals
    missing: tuple[int, int] | None
    oldest_read: int


def load(cache: BusyCache, keys: list[CalendarKey], start: int, end: int, **more: int) -> list[Cached]:
    known = cache.load(keys, start, end, **more)
    return [
        Cached(known.busy.group(place), known.missing.get(place), int(known.read_at[place]))
        for place in range(len(keys))
    ]


def test_a_read_for_another_bucket_length_is_not_cached(redis: Redis, cache: BusyCache) -> None:
    """Processes have different lengths while the setting is changed."""
    for start, end in ((0, 700), (1300, 2000), (700, 1400)):
        put(redis, cache, HUNDRED, start, end)
    put(redis, cache, Intervals(np.array([2100]), np.array([2200])), 2000, 3000)

    (known,) = load(cache, [KEY], 0, 3000)

    assert known.missing == (0, 2000)
    assert known.busy.pairs() == [(2100, 2200)]


def test_a_full_redis_still_invalidates(tmp_path: Path) -> None:
    server = embedded_redis.start(tmp_path, tmp_path / "redis.sock")
    try:
        with ScriptRedis(unix_socket_path=str(tmp_path / "redis.sock")) as redis:
            cache = BusyCache(redis, FastRedis(redis), ttl_seconds=60, bucket=BUCKET)
            invalidations = (
                lambda: cache.invalidate_calendar(KEY),
                lambda: cache.invalidate_connections([KEY.connection]),
            )
            for invalidate in invalidations:
                noted = cache.begin_reads([KEY.connection], {})[KEY.connection]
                put(redis, cache, HUNDRED, 0, BUCKET, noted=noted)
                redis.config_set("maxmemory", 1)
                with pytest.raises(OutOfMemoryError):
                    redis.set("anything", 1)

                invalidate()

                redis.config_set("maxmemory", 0)
                assert load(cache, [KEY], 0, BUCKET)[0].missing == (0, BUCKET)
    finally:
        server.kill()
        server.wait()


def merged(intervals: Intervals) -> list[tuple[int, int]]:
    return merge(intervals.starts, intervals.ends).pairs()


@given(
    pairs=st.lists(st.tuples(st.integers(-500, 4500), st.integers(1, 1500)), max_size=12),
    start=st.integers(0, 3900),
    length=st.integers(1, 4000),
)
def test_any_range_inside_what_was_read_comes_back_whole(pairs, start, length):
    redis = fakeredis.FakeRedis()
    cache = BusyCache(redis, FastRedis(redis), ttl_seconds=60, bucket=BUCKET)
    busy = Intervals.of((at, at + minutes) for at, minutes in pairs)
    busy = merge(busy.starts, busy.ends)
    put(redis, cache, clip(busy, 0, 4000), 0, 4000)
    end = min(start + length, 4000)

    (cached,) = load(cache, [KEY], start, end)

    assert cached.missing is None
    known = merge(cached.busy.starts, cached.busy.ends)
    assert clip(known, start, end).pairs() == clip(busy, start, end).pairs()


def test_read_and_nothing_there_is_not_the_same_as_not_read(redis, cache):
    put(redis, cache, Intervals.of([]), 0, 1000)

    (read,), (unread,) = load(cache, [KEY], 0, 1000), load(cache, [OTHER], 0, 1000)

    assert (read.missing, len(read.busy)) == (None, 0)
    assert unread.missing == (0, 1000)


def test_what_is_missing_is_the_hull_and_the_rest_is_kept(redis, cache):
    put(redis, cache, Intervals.of([(100, 200)]), 0, 1000)
    put(redis, cache, Intervals.of([(2100, 2200)]), 2000, 3000)
    put(redis, cache, Intervals.of([(4100, 4200)]), 4000, 5000)

    (cached,) = load(cache, [KEY], 500, 4500)

    assert cached.missing == (1000, 4000)
    # The bucket in the middle will be read again: its old periods must not be returned with the new ones.
    assert cached.busy.pairs() == [(100, 200), (4100, 4200)]


def test_a_period_that_ends_at_a_border_is_in_one_bucket_alone(redis, cache):
    put(redis, cache, Intervals.of([(900, 1000), (2000, 2100)]), 0, 3000)

    assert [load(cache, [KEY], start, start + 1000)[0].busy.pairs() for start in (0, 1000, 2000)] == [
        [(900, 1000)],
        [],
        [(2000, 2100)],
    ]


def test_a_read_at_the_very_moment_that_is_demanded_is_new_enough(redis, cache):
    put(redis, cache, Intervals.of([(100, 200)]), 0, 1000, read_at=40)

    assert load(cache, [KEY], 0, 1000, newer_than=40)[0].missing is None
    assert load(cache, [KEY], 0, 1000, newer_than=41)[0].missing == (0, 1000)


def test_the_age_is_that_of_the_oldest_part(redis, cache):
    put(redis, cache, Intervals.of([]), 0, 1000, read_at=50)
    put(redis, cache, Intervals.of([]), 1000, 2000, read_at=30)

    assert load(cache, [KEY], 0, 2000)[0].oldest_read == 30
    assert load(cache, [KEY], 0, 500)[0].oldest_read == 50


def test_what_is_older_than_wanted_counts_as_missing(redis, cache):
    put(redis, cache, Intervals.of([]), 0, 1000, read_at=50)
    put(redis, cache, Intervals.of([]), 1000, 2000, read_at=30)

    assert load(cache, [KEY], 0, 2000, newer_than=40)[0].missing == (1000, 2000)
    assert load(cache, [KEY], 0, 2000, newer_than=51)[0].missing == (0, 2000)


def test_what_is_not_known_at_all_was_read_never(redis, cache):
    put(redis, cache, Intervals.of([(1, 2)]), 0, 1000)

    known, unknown = load(cache, [KEY, OTHER], 0, 1000)

    assert (known.oldest_read, unknown.oldest_read) == (7, NEVER)
    assert len(unknown.busy) == 0


def test_another_value_comes_in_the_same_round_trip(redis, cache):
    redis.set("version", "seen")

    assert cache.load([KEY], 0, 1000, extra_keys=["version"]).extra_values == [b"seen"]
    assert not cache.load([KEY], 0, 1000).extra_values


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 5),
            st.integers(1, 4),
            st.integers(1, 100),
            st.sampled_from([b"", b"x" * 16, b"odd", None]),
        ),
        max_size=12,
    ),
    st.integers(0, 5500),
    st.integers(1, 4000),
    st.integers(0, 100),
)
def test_many_calendars_at_once_are_as_each_by_itself(puts, start, length, newer_than):
    redis = fakeredis.FakeRedis()
    cache = BusyCache(redis, FastRedis(redis), ttl_seconds=60, bucket=BUCKET)
    keys = [CalendarKey(f"c{n}", "primary") for n in range(4)]
    for n, first, buckets, read_at, garbage in puts:
        at = first * BUCKET
        put(redis, cache, Intervals.of([(at + 10, at + 500)]), at, at + buckets * BUCKET,
            read_at=read_at, key=keys[n])  # fmt: skip
        if garbage is not None:
            redis.set(f"busy:c{n}:primary:{first}", garbage)

    together = load(cache, keys, start, start + length, newer_than=newer_than)
    alone = [load(cache, [key], start, start + length, newer_than=newer_than)[0] for key in keys]

    assert [(each.busy.pairs(), *each[1:]) for each in together] == [
        (each.busy.pairs(), *each[1:]) for each in alone
    ]


def test_everything_wanted_comes_in_one_round_trip(stores: Stores):
    keys = [CalendarKey(f"one-round-trip-{n}", "primary") for n in range(50)]
    before = stores.redis.info("commandstats").get("cmdstat_mget", {"calls": 0})["calls"]

    stores.busy.load(keys, 0, 10 * stores.settings.busy_bucket)

    assert stores.redis.info("commandstats")["cmdstat_mget"]["calls"] == before + 1


def test_calendars_of_the_same_name_in_two_connections_are_two(redis, cache):
    put(redis, cache, Intervals.of([(1, 2)]), 0, 1000)

    assert load(cache, [CalendarKey("c2", "primary")], 0, 1000)[0].missing == (0, 1000)


@pytest.mark.parametrize("garbage", [b"", b"short", b"x" * 16, np.array([9, 9], "<i8").tobytes()])
def test_bytes_that_are_not_ours_count_as_missing(redis, cache, garbage):
    put(redis, cache, Intervals.of([(1, 2)]), 0, 1000)
    (name,) = [name for name in redis.scan_iter() if name.startswith(b"busy:")]
    redis.set(name, garbage)

    assert load(cache, [KEY], 0, 1000)[0].missing == (0, 1000)


def test_everything_is_forgotten_after_its_time(redis, cache):
    put(redis, cache, Intervals.of([(1, 2)]), 0, 3000)

    assert all(0 < redis.pttl(name) <= 60_000 for name in redis.scan_iter(match="busy:*"))
    assert all(0 < redis.pttl(name) <= 60_000 + INDEX_MARGIN for name in redis.scan_iter())


def test_forgetting_a_connection_leaves_the_others(redis, cache):
    theirs = CalendarKey("c2", "primary")
    for key in (KEY, OTHER, theirs):
        put(redis, cache, Intervals.of([(1, 2)]), 0, 2000, key=key)

    cache.invalidate_connections(["c1"])

    assert [each.missing for each in load(cache, [KEY, OTHER, theirs], 0, 2000)] == [
        (0, 2000),
        (0, 2000),
        None,
    ]
    assert {name for name in redis.scan_iter() if b"c1" in name} == {b"busy-generation:c1"}


def test_without_a_time_to_live_nothing_is_kept(redis):
    cache = BusyCache(redis, FastRedis(redis), ttl_seconds=0, bucket=BUCKET)
    put(redis, cache, Intervals.of([(1, 2)]), 0, 1000)

    assert list(redis.scan_iter()) == []
    assert load(cache, [KEY], 0, 1000)[0].missing == (0, 1000)


def test_buckets_reach_before_1970(redis, cache):
    put(redis, cache, Intervals.of([(-1500, -500)]), -2000, 0)

    (cached,) = load(cache, [KEY], -1800, -1)

    assert cached.missing is None
    assert merged(cached.busy) == [(-1500, -500)]


def test_a_write_moves_on_its_own_connection_only(redis, cache):
    noted = cache.begin_reads(["c1", "c2"], {})
    cache.invalidate_connections(["c2"])

    assert cache.begin_reads(["c1", "c2"], {})["c1"] == noted["c1"]
    assert cache.begin_reads(["c2"], {})["c2"] != noted["c2"]


@pytest.mark.parametrize(
    ("first", "second", "kept"), [(2000, 1000, 2000), (1000, 2000, 2000), (255, 256, 256)]
)
def test_of_two_reads_the_one_that_began_later_is_kept(redis, cache, first, second, kept):
    for read_at in (first, second):
        put(redis, cache, Intervals.of([(read_at % 900, 950)]), 0, 1000, read_at=read_at)

    (known,) = load(cache, [KEY], 0, 1000)

    assert (known.oldest_read, known.busy.pairs()) == (kept, [(kept % 900, 950)])


def test_of_two_reads_each_bucket_is_kept_by_itself(redis, cache):
    put(redis, cache, Intervals.of([(100, 200)]), 0, 1000, read_at=20)
    put(redis, cache, Intervals.of([(300, 400), (1300, 1400)]), 0, 2000, read_at=10)

    assert load(cache, [KEY], 0, 2000)[0].busy.pairs() == [(100, 200), (1300, 1400)]

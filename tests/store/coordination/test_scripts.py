"""Each Lua script on the embedded Redis: keys, arguments and reply."""

from __future__ import annotations

import secrets
import struct
import time

import orjson
import pytest
from redis import Redis
from redis.exceptions import ResponseError

from store.lua import STORE, Script, json_argument
from store.stores import Stores

CACHE, COORDINATION = "cache/scripts", "coordination/scripts"
FRAGMENTS = {"clock.lua", "breaker.lua", "readers.lua"}
BEGIN_READS = f"{CACHE}/begin_reads.lua"
NOW = 1_800_000_000_000


@pytest.fixture
def redis(stores: Stores) -> Redis:
    return stores.redis


@pytest.fixture
def key() -> str:
    """A prefix of keys that no other test uses."""
    return secrets.token_hex(6)


def beginning(generation: str, readers: list[list[str]] | None = None, connections: int = 1) -> bytes:
    seconds = {"generation_seconds": 60, "readers_seconds": 90}
    return json_argument(generation=generation, connections=connections, readers=readers or [], **seconds)


def run(redis: Redis, path: str, keys: list[str], *arguments):
    return Script(path).run(redis, keys, *arguments)


def test_every_script_has_a_header_and_no_include_is_left():
    files = [*STORE.glob("*/scripts/*.lua")]

    assert len(files) > len(FRAGMENTS)
    for file in files:
        header = file.read_text().split("\n\n")[0]
        assert header.startswith("-- "), file
        assert "--" not in Script(str(file.relative_to(STORE))).text, file
        if file.name not in FRAGMENTS:
            assert "KEYS" in header, file
            assert "ARGV" in header, file
            assert "Reply" in header, file


def test_a_script_that_redis_has_not_cached_is_sent_with_its_text(redis):
    redis.script_flush()

    for _ in range(2):
        assert run(redis, BEGIN_READS, ["a"], beginning("new")) == [b"new"]


def test_a_pipeline_sends_scripts_that_redis_has_lost_with_their_text(redis, key):
    script = Script(BEGIN_READS)
    flushes = iter((True, False, True))

    for number, flush in enumerate(flushes):
        if flush:
            redis.script_flush()
        with redis.pipeline(transaction=False) as pipe:
            script.queue(pipe, [f"{key}:{number}"], beginning("first"))
            pipe.set(f"{key}:set:{number}", number)
            script.queue(pipe, [f"{key}:{number}"], beginning("second"))
            results = pipe.execute()

        assert results == [[b"first"], True, [b"first"]]
        assert redis.get(f"{key}:set:{number}") == b"%d" % number


def test_a_script_that_fails_in_a_pipeline_is_not_repeated(redis, key):
    script = Script(BEGIN_READS)
    redis.set(f"{key}:number", 0)
    redis.script_flush()
    redis.rpush(f"{key}:list", "no set")

    for raises in (True, False):
        with redis.pipeline(transaction=False) as pipe:
            pipe.incr(f"{key}:number")
            script.queue(
                pipe, [f"{key}:generation", f"{key}:list", f"{key}:writes"], beginning("new", [["reader"]])
            )
            if raises:
                with pytest.raises(ResponseError, match="WRONGTYPE"):
                    pipe.execute()
            else:
                assert isinstance(pipe.execute(raise_on_error=False)[1], ResponseError)
    assert redis.get(f"{key}:number") == b"2"


def test_arguments_that_are_none_are_left_out():
    assert json_argument(now=None, left=0) == b'{"left":0}'


def test_generations_are_looked_up_and_made_and_readers_registered(redis, key):
    redis.set(f"{key}:old", "old")
    redis.sadd(f"{key}:mailbox", "earlier")
    keys = [f"{key}:{name}" for name in ("old", "none", "mailbox", "calendar", "write-1", "write-2")]

    assert run(redis, BEGIN_READS, keys, beginning("new", [["a"], ["a:1", "a:2"]], 2)) == [b"old", b"new"]
    assert 0 < redis.ttl(f"{key}:none") <= 60
    assert redis.smembers(f"{key}:mailbox") == {b"earlier", b"a"}
    assert redis.smembers(f"{key}:calendar") == {b"a:1", b"a:2"}
    assert all(60 < redis.ttl(each) <= 90 for each in keys[2:4])


def test_reads_under_a_marked_tag_get_no_generation_of_their_own(redis, key):
    one, other = (f"busy-generation:{key}{name}" for name in ("one", "other"))
    redis.mset({one: "1", other: "2"})
    redis.zadd(f"{key}:write", {"write": NOW})
    keys = [one, other, f"{key}:set", f"{key}:quiet", f"{key}:write", f"{key}:none"]
    readers = [[f"{key}one:primary"], [f"{key}other"]]

    assert run(redis, BEGIN_READS, keys, beginning("new", readers, 2)) == [b"uncached", b"2"]
    assert redis.get(one) == b"1"


def test_a_mark_shortens_what_is_cached_and_ends_by_itself(redis, key):
    for connection, calendar in (("whole", "a"), ("part", "a"), ("part", "b"), ("named", "a")):
        name = f"busy:{key}{connection}:{calendar}:1"
        redis.set(name, b"", px=60_000)
        redis.sadd(f"busy-of:{key}{connection}", name)
    redis.sadd(f"{key}:mailbox", f"{key}whole")
    redis.sadd(f"{key}:calendar", f"{key}part:a")
    sets = [f"{key}:{name}" for name in ("mailbox", "calendar", "writes-1", "writes-2")]

    def mark(write: str, milliseconds: int) -> None:
        arguments = json_argument(
            generation=write, generation_seconds=60, mailboxes=1, connections=[f"{key}named"],
            write=write, milliseconds=milliseconds,
        )  # fmt: skip
        run(redis, f"{CACHE}/mark_write.lua", sets, arguments)

    mark("one", 20_000)
    lives = {name: redis.pttl(f"busy:{key}{name}:1") for name in ("whole:a", "part:a", "part:b", "named:a")}
    assert {name for name, left in lives.items() if left > 20_000} == {"part:b"}
    assert redis.smembers(sets[0]) == {f"{key}whole".encode()}
    for connection in ("whole", "part", "named"):
        assert redis.get(f"busy-generation:{key}{connection}") == b"one"

    mark("two", 9_000)
    assert 9_000 < redis.pttl(sets[2]) <= 20_000
    run(redis, f"{CACHE}/unmark_write.lua", sets[2:], json_argument(write="one"))
    assert 0 < redis.pttl(sets[2]) <= 9_000
    run(redis, f"{CACHE}/unmark_write.lua", sets[2:], json_argument(write="two"))
    assert not redis.exists(*sets[2:])


def bucket(read_at: int) -> bytes:
    return struct.pack("<qq", 2, read_at)


def test_buckets_are_stored_under_an_unchanged_generation_only(redis, key):
    redis.set(f"{key}:generation", "one")
    keys = [f"{key}:{name}" for name in ("generation", "index", "watch", "1", "2")]
    arguments = json_argument(ttl=5_000, watched_ttl=0, max_age=9_000, margin=0, reads=[("one", 2, 0)])

    assert run(redis, f"{CACHE}/store.lua", keys, arguments, bucket(NOW), bucket(NOW)) == 1
    assert run(redis, f"{CACHE}/store.lua", keys, arguments, bucket(NOW - 1), bucket(NOW + 1)) == 1
    assert redis.mget(keys[3:]) == [bucket(NOW), bucket(NOW + 1)]
    assert redis.smembers(keys[1]) == {each.encode() for each in keys[3:]}
    assert 0 < redis.pttl(keys[3]) <= 5_000

    other = json_argument(ttl=5_000, watched_ttl=0, max_age=9_000, margin=0, reads=[("two", 2, 0)])
    assert run(redis, f"{CACHE}/store.lua", keys, other, bucket(NOW + 9), bucket(NOW + 9)) == 0
    assert redis.get(keys[3]) == bucket(NOW)


def test_batched_reads_are_stored_by_generation_and_age(redis, key):
    redis.mset({f"{key}:a": "one", f"{key}:b": "two"})
    redis.set(f"{key}:watch-b", "channel", px=9_000)
    reads = [("a", "1"), ("a", "1"), ("a", "1"), ("b", "2"), ("c", "3")]
    keys = [f"{key}:{name}" for a, n in reads for name in (a, f"index-{a}", f"watch-{a}", n)]
    arguments = json_argument(
        ttl=5_000,
        watched_ttl=8_000,
        max_age=9_000,
        margin=1_000,
        reads=[("one", 1, 0)] * 3 + [("two", 1, 0), ("gone", 1, 0)],
    )
    values = [bucket(NOW + each) for each in (1, 2, 0, 0, 0)]

    assert run(redis, f"{CACHE}/store.lua", keys, arguments, *values) == 4
    assert redis.mget(f"{key}:1", f"{key}:2", f"{key}:3") == [bucket(NOW + 2), bucket(NOW), None]
    assert redis.pttl(f"{key}:1") <= 5_000 < redis.pttl(f"{key}:2") <= 8_000
    assert 8_000 < redis.pttl(f"{key}:index-b") <= 9_000


def test_no_bucket_is_kept_beyond_the_highest_age_of_its_read(redis, key):
    redis.mset({f"{key}:generation": "one", f"{key}:watch": "channel"})
    redis.pexpire(f"{key}:watch", 60_000)
    for n, (age, most) in enumerate([(0, 9_000), (6_000, 3_000), (9_000, -2)]):
        keys = [f"{key}:{name}" for name in ("generation", "index", "watch", str(n))]
        reads = [("one", 1, age)]
        arguments = json_argument(ttl=5_000, watched_ttl=30_000, max_age=9_000, margin=0, reads=reads)
        assert run(redis, f"{CACHE}/store.lua", keys, arguments, bucket(NOW)) == 1
        assert most - 1_000 < redis.pttl(keys[3]) <= most


def test_a_web_heartbeat_after_a_pause_or_a_loss_ends_a_gap(redis, key):
    last, gap = f"{key}:last", f"{key}:gap"

    def beat(milliseconds: int) -> None:
        run(redis, f"{COORDINATION}/web_beat.lua", [last, gap], json_argument(gap=milliseconds))

    beat(60_000)
    first = redis.get(gap)
    assert abs(int(first) - time.time() * 1000) < 10_000
    time.sleep(0.01)
    beat(60_000)
    assert redis.get(gap) == first
    beat(-1)
    assert int(redis.get(gap)) > int(first)


def test_invalidation_covers_mailboxes_and_single_calendars(redis, key):
    for connection in ("whole", "part", "named"):
        for calendar in ("a", "b"):
            name = f"busy:{key}{connection}:{calendar}:1"
            redis.set(name, b"")
            redis.sadd(f"busy-of:{key}{connection}", name)
    redis.sadd(f"{key}:mailbox", f"{key}whole")
    redis.sadd(f"{key}:calendar", f"{key}part:a")
    arguments = json_argument(
        generation="new", generation_seconds=60, mailboxes=1, connections=[f"{key}named"]
    )

    run(redis, f"{CACHE}/invalidate.lua", [f"{key}:mailbox", f"{key}:calendar"], arguments)

    assert redis.keys(f"busy:{key}*") == [f"busy:{key}part:b:1".encode()]
    for connection in ("whole", "part", "named"):
        assert redis.get(f"busy-generation:{key}{connection}") == b"new"
    assert not redis.exists(f"{key}:mailbox", f"{key}:calendar")


def test_watch_starts_a_generation_and_emptying_ends_it(redis, key):
    generation, index, watch = (f"{key}:{name}" for name in ("generation", "index", "watch"))
    begin = json_argument(generation="one", generation_seconds=60, channel="c", milliseconds=9_000)
    run(redis, f"{CACHE}/watch.lua", [generation, watch], begin)
    assert redis.mget(generation, watch) == [b"one", b"c"]
    assert 0 < redis.pttl(watch) <= 9_000

    redis.mset({f"{key}:a:1": "", f"{key}:b:1": ""})
    redis.sadd(index, f"{key}:a:1", f"{key}:b:1")
    for unwatch, left in (("other", b"c"), ("c", None)):
        empty = json_argument(generation="two", generation_seconds=60, prefix=f"{key}:a:", unwatch=unwatch)
        run(redis, f"{CACHE}/empty.lua", [generation, index, watch], empty)
        assert redis.get(watch) == left
    assert redis.get(generation) == b"two"
    assert redis.smembers(index) == {f"{key}:b:1".encode()}
    assert not redis.exists(f"{key}:a:1")


def take(redis: Redis, key: str, holder: str, *, unique: str = "one", **more: int):
    arguments = json_argument(
        **{"sent": NOW, "newer_than": 0, "began": NOW, "failure_lifetime": 2_000, "lease": 9_000} | more,
        left=0,
        unique=unique,
        generation_seconds=60,
        reads=[{"holder": holder, "following": ""}],
    )
    names = [f"{key}:generation", f"{key}:lock", f"{key}:result"]
    (found,) = run(redis, f"{COORDINATION}/read_take.lua", names, arguments)
    return found


def end(redis: Redis, key: str, holder: str, *, lifetime: int = 4_000, sent: int = NOW, body: bytes = b""):
    read = {"holder": holder, "generation": "one", "sent": sent, "failed": False, "lifetime": lifetime}
    read["permit_in"] = 0
    names = [f"{key}:lock", f"{key}:result"]
    run(redis, f"{COORDINATION}/read_end.lua", names, json_argument(reads=[read]), body)


def test_a_read_is_locked_by_one_and_its_result_is_for_all(redis, key):
    assert take(redis, key, "f:1") == [1, b"one"]
    assert 0 < redis.pttl(f"{key}:lock") <= 9_000
    assert redis.get(f"{key}:lock") == f"{NOW} one f:1".encode()
    assert take(redis, key, "g:1", unique="two") == [0, b"f:1"]
    assert take(redis, key, "f:1") == [1, b"one"]

    end(redis, key, "f:1", body=b"\x00body\xff")
    assert not redis.exists(f"{key}:lock")
    assert 3_000 < redis.pttl(f"{key}:result") <= 4_000
    seconds, _ = redis.time()
    assert take(redis, key, "g:1", began=(seconds - 60) * 1000) == [2, b"\x00body\xff"]


def test_a_lock_is_released_by_its_holder_only(redis, key):
    take(redis, key, "f:1")
    end(redis, key, "g:1", lifetime=0)
    assert redis.exists(f"{key}:lock")
    end(redis, key, "f:1", lifetime=0)
    assert not redis.exists(f"{key}:lock", f"{key}:result")


def test_an_older_result_does_not_replace_a_newer_one(redis, key):
    end(redis, key, "f:1", sent=NOW + 1, body=b"new")
    end(redis, key, "g:1", body=b"old")
    assert redis.hget(f"{key}:result", "body") == b"new"


def test_breaker_opens_on_failures_and_closes_on_a_good_probe(redis, key):
    keys = [f"{key}:p", f"{key}:p:a", f"{key}:last", f"{key}:open"]
    provider, account, last, open_ = keys

    def failed(**changed):
        arguments = {"given_up": True, "accounts": 1, "failures": 2, "took": 0} | changed
        packed = json_argument(now=NOW, pause=10_000, remembered=60_000, **arguments)
        return run(redis, f"{COORDINATION}/breaker_failed.lua", keys, packed)

    assert failed(given_up=False) == [0, 0, 0, 0]
    assert not redis.exists(*keys)
    # An answer after the call began.
    assert failed(took=100, answered=50, failures=9) == [0, 0, 0, 0]
    assert orjson.loads(redis.get(account)) == {"failures": 1}
    assert failed(failures=9) == [1, 0, 1, 0]
    assert failed() == [1, 1, 0, 1]
    opened = {"since": NOW, "retry_at": NOW + 10_000}
    assert orjson.loads(redis.get(account)) == opened | {"failures": 3}
    assert orjson.loads(redis.get(provider)).items() >= opened.items()
    assert redis.zrange(open_, 0, -1) == [account.encode()]

    probing = {"probe": "job", "account": account, "probe_until": NOW + 20_000}
    for by, left in (("another job", probing), ("job", {})):
        redis.set(provider, orjson.dumps(opened | probing), ex=60)
        run(redis, f"{COORDINATION}/breaker_end_probe.lua", [provider, f"{key}:none"], by)
        assert orjson.loads(redis.get(provider)) == opened | left
        assert 0 < redis.ttl(provider) <= 60

    answered = json_argument(now=NOW + 7, remembered=60_000)
    for until, gone in ((NOW + 7, 0), (NOW + 8, 1)):
        redis.set(provider, orjson.dumps(opened | probing | {"probe_until": until}))
        run(redis, f"{COORDINATION}/breaker_answered.lua", keys, answered)
        assert redis.exists(provider) == 1 - gone
    assert not redis.exists(account, open_)
    assert int(redis.get(last)) == NOW + 7


def acquire(redis: Redis, key: str, *, now: int, cost: int = 1, mailbox: int = 0, lease: str = "job"):
    keys = [f"{key}:p", f"{key}:a", f"{key}:bp", f"{key}:ba", f"{key}:m"][: 5 if mailbox else 4]
    call = {"scopes": [1, 2], "breakers": [1, 2], "cost": cost, "mailbox": mailbox, "lease": lease}
    arguments = json_argument(
        now=now,
        left=60_000,
        lease=5_000,
        leases_kept=9_000,
        horizon=500,
        retry=250,
        lease_retry=50,
        probe_retry=1_000,
        concurrent=1,
        scopes=[{"interval": 2_000, "tolerance": 2_000}] * 2,
        breakers=2,
        calls=[call],
    )
    return run(redis, f"{COORDINATION}/rate_limit_acquire.lua", keys, arguments)


def test_permits_are_paced_leased_and_refused_by_open_breakers(redis, key):
    assert acquire(redis, key, now=NOW) == [0, 1, b"pace", 0]
    assert redis.get(f"{key}:a") == f"{NOW + 2_000}.000000 0.000000 0.000000".encode()
    assert acquire(redis, key, now=NOW) == [250, 0, b"pace", 0]
    assert acquire(redis, key, now=NOW, cost=0, mailbox=1, lease="one") == [0, 0, b"pace", 0]
    assert acquire(redis, key, now=NOW, cost=0, mailbox=1, lease="one") == [0, 0, b"pace", 0]
    assert acquire(redis, key, now=NOW, cost=0, mailbox=1, lease="two") == [50, 0, b"mailbox", 0]
    assert acquire(redis, key, now=NOW + 5_000, cost=0, mailbox=1, lease="two") == [0, 0, b"pace", 0]
    assert 5_000 < redis.pttl(f"{key}:m") <= 9_000

    redis.set(f"{key}:ba", orjson.dumps({"failures": 1}))
    assert acquire(redis, key, now=NOW, cost=0) == [0, 0, b"pace", 1]
    redis.set(f"{key}:bp", orjson.dumps({"since": NOW, "retry_at": NOW + 700}))
    assert acquire(redis, key, now=NOW, cost=0) == [700, 0, b"open", 1]
    assert acquire(redis, key, now=NOW + 700, cost=0) == [0, 0, b"probe", 1]
    assert acquire(redis, key, now=NOW + 700, cost=0, lease="another") == [1_000, 0, b"open", 1]
    assert orjson.loads(redis.get(f"{key}:bp"))["account"] == f"{key}:ba"


def test_a_time_that_the_provider_named_holds_the_calls_of_a_scope(redis, key):
    scopes = [f"{key}:p", f"{key}:a"]
    hold = f"{COORDINATION}/rate_limit_pause.lua"
    assert run(redis, hold, scopes, 0, 0, 5_000) <= 0
    assert 8_000 < run(redis, hold, scopes, 1, 0, 9_000) <= 9_000
    assert 8_000 < run(redis, hold, scopes, 1, 0, 0) <= 9_000
    assert not redis.exists(scopes[0])
    seconds, _ = redis.time()
    assert acquire(redis, key, now=seconds * 1000)[2] == b"named"


def test_admission_needs_free_capacity_and_live_workers(redis, key):
    queue, workers = f"{key}:queue", f"{key}:workers"

    def enter(name: str, lease: int = 5_000) -> int:
        arguments = json_argument(tenant="t", name=name, lease=lease, limit=1, share=1, away=30)
        return run(redis, f"{COORDINATION}/admission.lua", [queue, workers], arguments)

    assert enter("look", lease=0) == 1
    assert [enter("one"), enter("two")] == [1, 0]
    redis.hset(workers, "worker", "1000.5:0:8")
    assert enter("three") == -1
    seconds, _ = redis.time()
    redis.hset(workers, "worker", f"{seconds}:0:8")
    redis.delete(queue)
    assert enter("three") == 1

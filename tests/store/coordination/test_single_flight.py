"""Single flight: one job reads, the others wait, and the result answers the jobs that may use it."""

from __future__ import annotations

import secrets
import time

import pytest

from store.cache.busy_cache import BusyCache
from store.cache.fast_redis import FastRedis
from store.coordination import single_flight
from store.coordination.single_flight import (
    FAILURE_KEPT,
    LEASE,
    Ended,
    Locked,
    ReadLock,
    ReadTerms,
    Recorded,
    SharedRead,
    SingleFlight,
    Waiting,
    Wanted,
    lock_key,
    result_key,
)
from store.lua import ScriptRedis
from store.stores import Stores
from tests import services

# Tests run beside each other on one server.
CONNECTION = secrets.token_hex(6)
READ, OTHER = SharedRead(CONNECTION, f"read {CONNECTION}"), SharedRead(CONNECTION, f"other {CONNECTION}")
RESULT = b"\x00result\xff"
FAILURE_SECONDS = 2.0


@pytest.fixture(params=["embedded", "server"])
def redis(request, stores: Stores):
    """The embedded server from the wheel, and the Redis server of the machine."""
    if request.param == "server":
        services.redis_server().require()
    with stores.redis if request.param == "embedded" else ScriptRedis.from_url(services.REDIS) as found:
        yield found
        found.delete("read", *found.keys(f"*{CONNECTION}*"))


@pytest.fixture
def flights(redis):
    return SingleFlight(redis, failure_seconds=FAILURE_SECONDS, keep_seconds=30.0)


@pytest.fixture
def invalidate(redis):
    busy = BusyCache(redis, FastRedis(redis), ttl_seconds=60, bucket=1_000_000)
    return lambda: busy.invalidate_connections([CONNECTION])


@pytest.fixture
def take(redis, flights):
    """Take the lock of a read, as a job of a request that begins now."""

    def make(holder: str, read: SharedRead = READ, *, waits_for: str = "", newer_than=None, began=None):
        seconds, micros = redis.time()
        now = seconds * 1000 + micros / 1000
        terms = flights.terms(now, now if began is None else began, newer_than)
        (found,) = flights.take([Wanted(read, holder, waits_for)], terms)
        return found

    return make


@pytest.fixture
def end(redis, flights):
    """End a read with this result; None abandons it."""

    def make(
        holder: str,
        locked: Locked,
        body: bytes | None = RESULT,
        *,
        sent: int | None = None,
        failed: bool = False,
        lifetime: int = 20_000,
    ):
        at = int(time.time() * 1000) if sent is None else sent
        lock, kept = ReadLock(READ, holder), lifetime if body else 0
        ended = Ended(lock, locked.generation, at, body or b"", failed, kept)
        with redis.pipeline(transaction=False) as pipe:
            flights.end(pipe, [ended])
            pipe.execute()

    return make


def test_one_reads_and_the_others_wait_until_its_result_is_there(take, end):
    began = time.time() * 1000 - 1
    locked = take("a")
    assert isinstance(locked, Locked)
    assert take("b") == take("c") == Waiting("a")
    assert isinstance(take("b", OTHER), Locked)
    end("a", locked)
    assert take("b", began=began) == Recorded(RESULT)
    assert take("c", waits_for="a") == Recorded(RESULT)


def test_a_job_that_lost_the_reply_of_its_request_has_its_lock(take):
    locked = take("a")
    assert take("a") == locked


def test_a_result_is_left_to_the_cache_by_requests_that_began_after_it(take, end):
    end("a", take("a"))
    time.sleep(0.002)
    assert isinstance(take("b"), Locked)


def test_a_failure_answers_requests_that_begin_soon_after_it(take, end, redis):
    end("a", take("a"), failed=True)
    time.sleep(0.002)
    assert take("b") == Recorded(RESULT)
    redis.hset(result_key(READ), "ended", (time.time() - FAILURE_SECONDS) * 1000)
    assert isinstance(take("b"), Locked)


def test_a_result_is_kept_for_its_lifetime(take, end, redis):
    end("a", take("a"), lifetime=5_000)
    assert 4_000 < redis.pttl(result_key(READ)) <= 5_000


def test_a_failure_is_kept_for_a_shorter_time_than_a_result(flights):
    terms = flights.terms(0, 0, None)
    assert (terms.lifetime(whole=True), terms.lifetime(whole=False)) == (30_000, FAILURE_KEPT)
    long = ReadTerms(0, 0, 0, failure_lifetime=60_000, keep=60_000)
    assert long.lifetime(whole=False) == 60_000


def test_an_abandoned_read_is_taken_by_the_next(take, end):
    end("a", take("a"), None)
    assert isinstance(take("b", waits_for="a"), Locked)


def test_an_abandoned_read_leaves_the_result_of_the_one_before(take, end):
    end("a", take("a"))
    time.sleep(0.002)
    end("b", take("b"), None)
    assert take("c", waits_for="a") == Recorded(RESULT)


def test_the_lock_of_a_worker_that_died_expires(take, redis):
    take("a")
    assert LEASE - 1_000 < redis.pttl(lock_key(READ)) <= LEASE
    redis.delete(lock_key(READ))
    assert isinstance(take("b", waits_for="a"), Locked)


def test_a_worker_renews_its_locks(take, flights, redis):
    take("a")
    redis.pexpire(lock_key(READ), 50)
    flights.renew([ReadLock(READ, "a"), ReadLock(OTHER, "a")])
    assert redis.pttl(lock_key(READ)) > LEASE - 1_000
    assert not redis.exists(lock_key(OTHER))


def test_a_lock_that_another_job_has_taken_over_is_not_renewed(take, flights, redis):
    """Else it would outlive the worker of that job."""
    take("a")
    assert isinstance(take("b", newer_than=time.time() * 1000 + 60_000), Locked)
    redis.pexpire(lock_key(READ), 500)
    flights.renew([ReadLock(READ, "a")])
    assert redis.pttl(lock_key(READ)) <= 500


def test_an_expired_holder_does_not_release_the_lock_of_the_next(take, end, redis):
    first = take("a")
    redis.delete(lock_key(READ))
    take("b")
    end("a", first, None)
    assert take("c") == Waiting("b")


def test_after_a_write_no_older_read_is_joined(take, end, invalidate):
    began = time.time() * 1000 - 1
    before = take("a")
    assert take("b") == Waiting("a")
    invalidate()
    # A job that waits already still waits for the earlier read.
    assert take("b", waits_for="a") == Waiting("a")
    after = take("c")
    assert isinstance(after, Locked)
    assert after != before
    end("a", before)
    # A job that began after the write waits for the later read; one that waited gets the earlier one.
    assert take("d", began=began) == Waiting("c")
    assert take("b", waits_for="a") == Recorded(RESULT)
    end("c", after, b"later")
    assert take("d", waits_for="c") == Recorded(b"later")


def test_a_write_ends_the_use_of_a_result(take, end, invalidate):
    end("a", take("a"), failed=True)
    invalidate()
    assert isinstance(take("b"), Locked)


def test_a_request_for_fresh_data_joins_no_older_read_and_uses_no_older_result(take, end, redis):
    seconds, _ = redis.time()
    later = (seconds + 60) * 1000
    locked = take("a")
    assert isinstance(take("b", newer_than=later), Locked)
    # Others wait for the newer read.
    assert take("c") == Waiting("b")
    end("a", locked)
    assert isinstance(take("d", newer_than=later, began=0), Locked)


def test_the_result_of_a_newer_read_is_not_replaced_by_an_older_one(take, end):
    locked = take("a")
    end("b", locked, b"newer", sent=int(time.time() * 1000) + 5_000)
    end("a", locked, b"older")
    assert take("c", began=0) == Recorded(b"newer")


def test_reads_under_way_are_known(take, flights):
    take("a")
    assert flights.under_way([READ, OTHER]) == [True, False]


def test_a_refresh_is_claimed_once(flights, take):
    take("a", OTHER)
    third = SharedRead(CONNECTION, f"third {CONNECTION}")
    assert flights.claim_refreshes([READ, OTHER, third]) == [True, False, True]
    assert flights.claim_refreshes([READ, OTHER, third]) == [False] * 3


def test_many_reads_take_several_scripts(flights, monkeypatch):
    monkeypatch.setattr(single_flight, "READS_AT_ONCE", 3)
    reads = [SharedRead(CONNECTION, f"{n} {CONNECTION}") for n in range(8)]
    terms = flights.terms(0, 0, None)
    found = flights.take([Wanted(each, f"a:{n}") for n, each in enumerate(reads)], terms)
    assert len(found) == 8
    assert all(isinstance(each, Locked) for each in found)
    assert flights.take([Wanted(reads[7], "b")], terms) == [Waiting("a:7")]

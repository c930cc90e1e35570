"""Single flight: one leader, followers, completion, and flights of dead workers."""

from __future__ import annotations

import secrets
import struct
import time
from contextlib import closing

import msgspec
import pytest

from store.cache.busy_cache import BusyCache, generation_key
from store.cache.fast_redis import FastRedis
from store.coordination import single_flight
from store.coordination.single_flight import (
    FAILURE_KEPT,
    FOLLOWED,
    LEASE,
    ClaimState,
    Completion,
    ReadKey,
    SingleFlight,
    flight_key,
)
from store.lua import ScriptRedis
from store.stores import Stores
from tests import services
from tests.conftest import settings_of
from workers.runtime import Runtime

NOW = 1_800_000_000_000
# Seconds between a request's beginning and its last claim.
CLAIMING = 30.0
# Tests run beside each other on one server.
CONNECTION = secrets.token_hex(6)
FIRST, SECOND = f"first of {CONNECTION}", f"second of {CONNECTION}"
READ = ReadKey(CONNECTION, f"read {CONNECTION}", 7)
OTHER_NUMBER = ReadKey(CONNECTION, READ.name, 300)
RESULT = b"\x00result\xff"
LEADER, FOLLOWER = ClaimState.LEADER, ClaimState.FOLLOWER
BYPASS, COMPLETED = ClaimState.BYPASS, ClaimState.COMPLETED


@pytest.fixture(params=["embedded", "server"])
def redis(request, stores: Stores):
    """The embedded server from the wheel, and the Redis server of the machine."""
    if request.param == "server":
        services.redis_server().require()
    with stores.redis if request.param == "embedded" else ScriptRedis.from_url(services.REDIS) as found:
        yield found
        found.delete(*found.keys(f"*{CONNECTION}*"))


@pytest.fixture
def flights(redis):
    return SingleFlight(redis, failure_seconds=2.0, claim_seconds=CLAIMING)


@pytest.fixture
def claim(flights):
    """Claim one read; returns the state, and the flight or the result."""

    def one(
        waiter=FIRST,
        *,
        read=READ,
        claimed_at=NOW,
        began=None,
        newer_than=None,
        lease_seconds=60.0,
        current_flights=None,
    ):
        began = milliseconds() if began is None else began
        ((state, value),) = flights.claim(
            [read],
            waiter,
            claimed_at=claimed_at,
            began=began,
            newer_than=newer_than,
            lease_seconds=lease_seconds,
            current_flights=current_flights,
        )
        return state, value if state is COMPLETED else value.decode()

    return one


LEADER_LIST = "replies:leader"


@pytest.fixture
def complete(redis, flights):
    """Complete a flight; returns when, if it was still there."""

    def one(flight, body=RESULT, *, failed=False, whole=True):
        with redis.pipeline(transaction=False) as pipe:
            flights.complete(
                pipe, [Completion(flight, body, failed, whole)], replies=LEADER_LIST, leftover=60
            )
            pipe.execute()
        return kept(redis, flight).get("completed")

    return one


@pytest.fixture
def renew(redis, flights):
    def some(*names):
        with redis.pipeline(transaction=False) as pipe:
            flights.renew(pipe, names)
            pipe.execute()

    return some


def milliseconds():
    return time.time() * 1000


def kept(redis, flight):
    """What Redis has of a flight; its body is not text."""
    value = redis.get(flight_key(flight))
    return {} if value is None else msgspec.msgpack.decode(value.replace(RESULT, b"." * len(RESULT)))


def lifetime(redis, flight):
    return redis.pttl(flight_key(flight))


def passes(redis, flight, seconds):
    """As if so long had passed since the flight completed."""
    value = kept(redis, flight)
    value["completed"] -= seconds * 1000
    remaining = lifetime(redis, flight) - int(seconds * 1000)
    redis.set(flight_key(flight), msgspec.msgpack.encode(value), px=max(1, remaining))
    time.sleep(0.01 if remaining <= 1 else 0)


def replies(redis, waiter):
    """The replies on a list, by number."""
    found = redis.lrange(waiter, 0, -1)
    return [(struct.unpack_from("<I", each)[0], each[4:]) for each in found]


def write(redis):
    """A write to the connection is answered."""
    redis.set(generation_key(CONNECTION), secrets.token_hex(8))


def test_the_first_leads_and_others_follow(claim):
    _, flight = claim(FIRST)
    assert claim(SECOND) == (FOLLOWER, flight)
    assert claim(SECOND, read=ReadKey(CONNECTION, f"another {CONNECTION}", 7))[0] is LEADER


def test_reads_of_one_request_are_claimed_in_parts(flights, monkeypatch):
    monkeypatch.setattr(single_flight, "FLIGHTS_AT_ONCE", 3)
    reads = [ReadKey(CONNECTION, f"{n} of {CONNECTION}", n) for n in range(7)]

    def states(waiter):
        arguments = {"claimed_at": NOW, "began": milliseconds(), "newer_than": None, "lease_seconds": 60.0}
        return flights.claim([*reads, reads[0]], waiter, **arguments)

    leading, following = states(FIRST), states(SECOND)
    assert [state for state, _ in leading] == [LEADER] * 7 + [FOLLOWER]
    assert [state for state, _ in following] == [FOLLOWER] * 8
    assert [flight for _, flight in leading] == [flight for _, flight in following]


def test_each_follower_gets_one_reply_under_its_own_number(redis, claim, complete):
    _, flight = claim(FIRST)
    claim(FIRST, read=OTHER_NUMBER)
    claim(SECOND, read=OTHER_NUMBER)
    # The Redis client repeats a request whose reply was lost; later the request checks the leader.
    claim(SECOND, read=OTHER_NUMBER)
    claim(SECOND, read=OTHER_NUMBER, current_flights={300: flight})
    # A background refresh waits for nothing.
    assert claim("") == (FOLLOWER, flight)
    for _ in range(2):
        complete(flight)
    # The worker itself replies to the leader.
    assert replies(redis, FIRST) == replies(redis, SECOND) == [(300, RESULT)]
    assert 0 < redis.ttl(SECOND) <= 60
    assert not redis.exists("", f"flight-followers:{flight}")


@pytest.mark.parametrize("gone", [False, True])
def test_the_leader_gets_its_replies_even_when_the_flight_has_expired(redis, flights, claim, gone):
    _, flight = claim()
    if gone:
        redis.delete(flight_key(flight))
    completions = [
        Completion(flight, RESULT, failed=False, whole=True, number=5),
        Completion(flight, b"late", failed=False, whole=True),
    ]
    with redis.pipeline(transaction=False) as pipe:
        flights.complete(pipe, completions, replies=LEADER_LIST, leftover=60)
        pipe.execute()
    # The second read was answered before it ended: it has no number.
    assert redis.lrange(LEADER_LIST, 0, -1) == [struct.pack("<I", 5) + RESULT]
    assert 0 < redis.ttl(LEADER_LIST) <= 60
    redis.delete(LEADER_LIST)


def test_a_follower_that_has_left_gets_no_reply(redis, flights, claim, complete):
    _, flight = claim(FIRST)
    claim(SECOND)
    claim(SECOND, read=OTHER_NUMBER)
    flights.leave(SECOND, {7: flight})
    complete(flight)
    assert replies(redis, SECOND) == [(300, RESULT)]


@pytest.mark.parametrize(
    ("completion", "after", "began", "newer_than", "expected"),
    [
        # Requests that began before the completion get the result, however late they claim.
        ({}, 0, -1, None, COMPLETED),
        ({}, 0, 0, None, COMPLETED),
        ({}, 0, 1, None, LEADER),
        ({}, CLAIMING - 5, -CLAIMING, None, COMPLETED),
        ({}, CLAIMING, -CLAIMING, None, LEADER),
        # A failure is kept for a shorter time, in which it answers later requests too.
        ({"failed": True, "whole": False}, 1, 10, None, COMPLETED),
        ({"failed": True, "whole": False}, 2, 10, None, LEADER),
        ({"failed": False, "whole": False}, 1, 10, None, LEADER),
        ({"failed": True, "whole": False}, FAILURE_KEPT / 1000, -1, None, LEADER),
        # A request for fresh data uses neither.
        ({}, 0, -1, NOW, COMPLETED),
        ({}, 0, -1, NOW + 1, LEADER),
        ({"failed": True, "whole": False}, 0, -1, NOW + 1, LEADER),
    ],
)
def test_requests_that_get_the_result_of_a_completed_flight(
    redis, claim, complete, completion, after, began, newer_than, expected
):
    """``after`` seconds; the request began ``began`` seconds after the completion."""
    _, flight = claim()
    completed = complete(flight, b"body", **completion)
    assert completed
    passes(redis, flight, after)
    state, value = claim(SECOND, began=completed + (began - after) * 1000, newer_than=newer_than)
    assert state is expected
    assert (value == b"body") == (expected is COMPLETED)


def test_request_that_missed_the_cache_gets_a_late_result(redis, flights, claim):
    _, flight = claim()
    with redis.pipeline(transaction=False) as pipe:
        flights.complete(pipe, [Completion(flight, RESULT, False, True)], replies=LEADER_LIST, leftover=60)
        # The worker is delayed on a busy machine.
        began = milliseconds()
        pipe.execute()
    assert claim(SECOND, began=began) == (COMPLETED, RESULT)


def test_result_lifetime_follows_settings_of_the_claiming_process(environment):
    settings = settings_of(environment | {"ALMANAC_FANOUT_DEADLINE": "60"})
    with closing(Stores(settings)) as stores:
        ((_, flight),) = stores.single_flight.claim(
            [READ], FIRST, claimed_at=NOW, began=milliseconds(), newer_than=None, lease_seconds=60.0
        )
        worker = SingleFlight(stores.redis, failure_seconds=0, claim_seconds=3)
        with stores.redis.pipeline(transaction=False) as pipe:
            worker.complete(
                pipe, [Completion(flight.decode(), b"", False, True)], replies=LEADER_LIST, leftover=60
            )
            pipe.execute()
        assert 50_000 < lifetime(stores.redis, flight.decode()) <= 60_000
        stores.redis.delete(flight_key(flight.decode()), generation_key(CONNECTION))


@pytest.mark.parametrize(
    ("now", "newer_than", "expected"),
    [(NOW + 1, NOW, FOLLOWER), (NOW + 1, NOW + 1, BYPASS)],
)
def test_request_for_fresh_data_does_not_follow_an_older_read(claim, now, newer_than, expected):
    assert claim(FIRST, claimed_at=NOW, newer_than=NOW)[0] is LEADER
    assert claim(SECOND, claimed_at=now, newer_than=newer_than)[0] is expected


@pytest.mark.parametrize("done", [False, True])
def test_after_a_write_no_request_uses_a_read_from_before_it(redis, claim, complete, done):
    _, before = claim(FIRST)
    if done:
        complete(before, b"refused", failed=True)
    write(redis)
    state, after = claim(SECOND, began=0)
    assert (state, after == before) == (LEADER, False)
    complete(before)
    assert replies(redis, SECOND) == []
    assert claim("third", began=0) == (FOLLOWER, after)


def test_invalidated_read_still_answers_its_followers(redis, claim, complete):
    _, flight = claim(FIRST)
    claim(SECOND)
    BusyCache(redis, FastRedis(redis), ttl_seconds=60, bucket=1).invalidate_connections([CONNECTION])
    # Both keep waiting; others do not join them.
    assert claim(FIRST, current_flights={7: flight}) == (FOLLOWER, flight)
    assert claim(SECOND, current_flights={7: flight}) == (FOLLOWER, flight)
    assert claim("third", current_flights={7: flight + "0"})[0] is LEADER
    complete(flight)
    assert replies(redis, SECOND) == [(7, RESULT)]


def test_a_flight_ends_with_its_lease_which_a_worker_renews(redis, claim, renew):
    _, flight = claim(lease_seconds=60.0)
    assert 59_000 < lifetime(redis, flight) <= 60_000
    renew(flight, "of nothing:here")
    assert 0 < lifetime(redis, flight) <= LEASE
    # Redis deletes it then.
    redis.delete(flight_key(flight))
    assert claim(SECOND, current_flights={7: flight})[0] is LEADER


def test_a_renewal_does_not_shorten_the_life_of_a_result(redis, claim, complete, renew):
    _, flight = claim()
    complete(flight)
    renew(flight)
    assert lifetime(redis, flight) > LEASE


def test_worker_with_expired_lease_does_not_change_next_flight(redis, flights, claim, complete, renew):
    _, before = claim(FIRST, lease_seconds=0.001)
    time.sleep(0.01)
    state, after = claim(SECOND, claimed_at=NOW + 1, newer_than=NOW + 1)
    assert state is LEADER
    assert claim(FIRST, claimed_at=NOW + 2, current_flights={7: before}) == (FOLLOWER, after)
    renew(before)
    flights.abandon([before])
    assert lifetime(redis, after) > LEASE
    assert not complete(before, b"too old")
    assert replies(redis, FIRST) == []
    complete(after)
    assert replies(redis, FIRST) == [(7, RESULT)]


@pytest.mark.parametrize("queued", [False, True])
def test_an_abandoned_flight_is_claimed_by_the_next_request(flights, redis, claim, queued):
    _, flight = claim(FIRST)
    flights.abandon([])
    with redis.pipeline(transaction=False) as pipe:
        flights.abandon([flight], pipe if queued else None)
        pipe.execute()
    assert claim(SECOND)[0] is LEADER


@pytest.mark.parametrize("queued", [False, True])
def test_more_flights_are_abandoned_than_lua_unpacks_keys(flights, redis, queued):
    """A request for an organization abandons all flights that no worker has taken."""
    reads = [ReadKey(CONNECTION, f"{n} of {CONNECTION}", n) for n in range(8_500)]
    arguments = {"claimed_at": NOW, "began": milliseconds(), "newer_than": None, "lease_seconds": 60.0}
    led = [flight.decode() for _, flight in flights.claim(reads, FIRST, **arguments)]
    with redis.pipeline(transaction=False) as pipe:
        flights.renew(pipe, led)
        flights.abandon(led, pipe if queued else None)
        pipe.execute()
    assert {state for state, _ in flights.claim(reads, SECOND, **arguments)} == {LEADER}


def test_followers_are_kept_longer_than_the_longest_flight(redis, claim):
    settings = settings_of({"ALMANAC_FANOUT_DEADLINE": "120"})
    longest = settings.fanout_deadline_seconds + Runtime(settings).grace
    _, flight = claim(FIRST)
    claim(SECOND)
    assert longest * 1000 + LEASE < redis.pttl(f"flight-followers:{flight}") <= FOLLOWED

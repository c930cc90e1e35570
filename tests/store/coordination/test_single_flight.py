"""Single flight: one leader, followers, completion, and flights of dead workers."""

from __future__ import annotations

import secrets
import struct
import time
from contextlib import closing

import pytest

from store.cache.busy_cache import BusyCache, generation_key
from store.cache.fast_redis import FastRedis
from store.coordination.single_flight import LEASE, RETOLD, ClaimState, Completion, ReadKey, SingleFlight
from store.lua import ScriptRedis
from store.stores import Stores
from tests import services
from tests.conftest import settings_of
from workers.runtime import Runtime

NOW = 1_800_000_000_000
# Seconds that a request has.
ASKING = 30.0
# Tests run beside each other on one server.
CONNECTION = secrets.token_hex(6)
FIRST, SECOND = f"first of {CONNECTION}", f"second of {CONNECTION}"
WISH = ReadKey(CONNECTION, "read", 7)


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
    return SingleFlight(redis, failure_seconds=2.0, asking_seconds=ASKING)


@pytest.fixture
def claim(flights):
    """Claim one read; returns the state, and the flight or the result."""

    def one(waiter=FIRST, *, wish=WISH, now=NOW, began=None, newer_than=None, lease=60.0, waiting=None):
        began = moment() if began is None else began
        (claimed,) = flights.claim(
            [wish], waiter, now=now, began=began, newer_than=newer_than, lease=lease, waiting=waiting
        )
        return claimed

    return one


@pytest.fixture
def land(redis, flights):
    """Land a flight; returns when it landed."""

    def one(flight, body=b"what was read", *, failed=False, whole=True, told=""):
        with redis.pipeline(transaction=False) as pipe:
            flights.complete(
                pipe, [Completion(flight.decode(), body, failed, whole)], except_for=told, leftover=60
            )
            pipe.execute()
        landed = redis.hget(key(flight), "landed")
        return landed and float(landed)

    return one


def moment():
    """This one, in milliseconds."""
    return time.time() * 1000


def key(flight):
    return b"flight:" + flight


def later(redis, flight, seconds):
    """As after so long."""
    redis.hincrbyfloat(key(flight), "landed", -seconds * 1000)
    redis.pexpire(key(flight), redis.pttl(key(flight)) - int(seconds * 1000))


def told(redis, waiter):
    """The replies on a list, by number."""
    replies = redis.lrange(waiter, 0, -1)
    return [(struct.unpack_from("<I", each)[0], each[4:]) for each in replies]


def test_the_first_leads_and_the_others_wait(claim):
    assert claim(FIRST)[0] is ClaimState.LEADER
    assert claim(SECOND)[0] is ClaimState.FOLLOWER
    assert claim(SECOND, wish=ReadKey(CONNECTION, "another read", 7))[0] is ClaimState.LEADER
    assert claim(SECOND, wish=ReadKey(f"another {CONNECTION}", "read", 7))[0] is ClaimState.LEADER


def test_everybody_who_waits_is_told_once_under_a_number_of_its_own(redis, claim, land):
    _, flight = claim(FIRST)
    claim(SECOND, wish=ReadKey(CONNECTION, "read", 300))
    claim(SECOND, wish=ReadKey(CONNECTION, "read", 300))
    land(flight, told=FIRST)
    assert told(redis, FIRST) == []
    assert told(redis, SECOND) == [(300, b"what was read")]
    assert 0 < redis.ttl(SECOND) <= 60


def test_who_leads_is_told_too_when_another_reader_took_over(redis, claim, land):
    _, flight = claim(FIRST)
    land(flight, told=SECOND)
    assert told(redis, FIRST) == [(7, b"what was read")]


def test_who_claims_for_nobody_is_told_nothing(redis, claim, land):
    _, flight = claim("")
    land(flight)
    assert told(redis, "") == []


def test_who_began_before_it_landed_takes_what_was_read_and_who_came_later_reads(claim, land):
    _, flight = claim()
    landed = land(flight)
    assert claim(began=landed - 1) == (ClaimState.COMPLETED, b"what was read")
    assert claim(began=landed) == (ClaimState.COMPLETED, b"what was read")
    assert claim(began=landed + 0.01)[0] is ClaimState.LEADER


def test_who_began_before_it_landed_takes_what_was_read_however_late_it_asks(redis, claim, land):
    began = moment()
    _, flight = claim()
    land(flight)
    later(redis, flight, ASKING - 5)
    assert claim(began=began - ASKING * 1000)[0] is ClaimState.COMPLETED
    later(redis, flight, 5)
    assert claim(began=began - ASKING * 1000)[0] is ClaimState.LEADER


def test_who_looked_into_the_cache_before_the_landing_reached_redis_takes_what_was_read(
    redis, flights, claim
):
    _, flight = claim()
    with redis.pipeline(transaction=False) as pipe:
        flights.complete(
            pipe, [Completion(flight.decode(), b"what was read", False, True)], except_for="", leftover=60
        )
        # The worker has to wait for its turn on a busy machine.
        began = moment()
        pipe.execute()
    assert claim(SECOND, began=began) == (ClaimState.COMPLETED, b"what was read")


def test_what_was_read_is_kept_as_long_as_a_request_has_whatever_is_set_for_the_worker(environment):
    settings = settings_of(environment | {"ALMANAC_FANOUT_DEADLINE": "60"})
    with closing(Stores(settings)) as stores:
        ((_, flight),) = stores.single_flight.claim(
            [WISH], FIRST, now=NOW, began=moment(), newer_than=None, lease=60.0
        )
        worker = SingleFlight(stores.redis, failure_seconds=0, asking_seconds=3)
        with stores.redis.pipeline(transaction=False) as pipe:
            worker.complete(pipe, [Completion(flight.decode(), b"", False, True)], except_for="", leftover=60)
            pipe.execute()
        assert 50_000 < stores.redis.pttl(key(flight)) <= 60_000
        stores.redis.delete(key(flight), generation_key(CONNECTION))


def test_what_has_failed_is_not_told_for_as_long_as_what_was_read(redis, claim, land):
    _, flight = claim()
    land(flight, whole=False)
    assert RETOLD - 1_000 < redis.pttl(key(flight)) <= RETOLD < ASKING * 1000


def test_a_failure_answers_those_who_ask_again_for_a_while(redis, claim, land):
    _, flight = claim()
    land(flight, b"refused", failed=True)
    later(redis, flight, 1.0)
    assert claim() == (ClaimState.COMPLETED, b"refused")
    later(redis, flight, 1.0)
    assert claim()[0] is ClaimState.LEADER


def test_who_wants_it_newer_takes_neither_a_failure_nor_what_has_landed(claim, land):
    _, flight = claim()
    land(flight, b"refused", failed=True)
    assert claim(now=NOW + 300, newer_than=NOW + 1)[0] is ClaimState.LEADER


def test_who_wants_it_newer_than_a_read_under_way_reads_alone(claim):
    assert claim(now=NOW, newer_than=NOW)[0] is ClaimState.LEADER
    assert claim(now=NOW + 1, newer_than=NOW)[0] is ClaimState.FOLLOWER
    assert claim(now=NOW + 1, newer_than=NOW + 1) == (ClaimState.BYPASS, b"")


def test_nobody_joins_a_read_from_before_a_write(redis, stores, claim, land):
    _, before = claim(FIRST)
    redis.set(generation_key(CONNECTION), secrets.token_hex(8))
    turn, after = claim(SECOND)
    assert (turn, after == before) == (ClaimState.LEADER, False)
    land(before, told=FIRST)
    assert told(redis, SECOND) == []
    assert claim(SECOND)[0] is ClaimState.FOLLOWER


def test_what_landed_before_a_write_answers_nobody_after_it(redis, claim, land):
    _, flight = claim()
    land(flight, b"refused", failed=True)
    redis.set(generation_key(CONNECTION), secrets.token_hex(8))
    assert claim(began=0)[0] is ClaimState.LEADER


def test_a_flight_ends_with_its_lease_and_a_reader_renews_it(redis, flights, claim):
    _, flight = claim(lease=60.0)
    assert 59_000 < redis.pttl(key(flight)) <= 60_000
    with redis.pipeline(transaction=False) as pipe:
        flights.hold(pipe, [flight.decode(), "that is over"])
        pipe.execute()
    assert 0 < redis.pttl(key(flight)) <= LEASE
    # What Redis does at its end.
    redis.delete(key(flight))
    assert claim(SECOND)[0] is ClaimState.LEADER


def test_a_reader_that_was_thought_dead_lands_for_nobody_but_its_own(redis, claim, land):
    _, flight = claim(FIRST)
    redis.delete(key(flight))
    land(flight, told=FIRST)
    assert not redis.exists(key(flight))


def test_what_was_overtaken_is_told_to_who_waited_and_to_nobody_else(redis, claim, land):
    _, flight = claim(FIRST)
    BusyCache(redis, FastRedis(redis), ttl_seconds=60, bucket=1).forget([CONNECTION])
    land(flight)
    assert told(redis, FIRST) == [(7, b"what was read")]
    assert claim(SECOND, began=0)[0] is ClaimState.LEADER


def test_a_reader_that_was_thought_dead_says_nothing_to_those_of_the_next(redis, flights, claim, land):
    _, before = claim(FIRST, lease=0.001)
    time.sleep(0.01)
    turn, after = claim(SECOND, now=NOW + 1, newer_than=NOW + 1)
    assert turn is ClaimState.LEADER
    with redis.pipeline(transaction=False) as pipe:
        flights.hold(pipe, [before.decode()])
        pipe.execute()
    assert redis.pttl(key(after)) > LEASE
    land(before, b"too old")
    assert told(redis, SECOND) == []
    assert claim(FIRST, now=NOW + 2)[0] is ClaimState.FOLLOWER
    flights.abandon(redis, [before.decode()])
    land(after)
    assert told(redis, SECOND) == told(redis, FIRST) == [(7, b"what was read")]


def test_who_waits_goes_on_waiting_whatever_is_written_meanwhile(redis, claim):
    _, flight = claim(FIRST)
    claim(SECOND)
    redis.set(generation_key(CONNECTION), secrets.token_hex(8))
    assert claim(FIRST, waiting={7: flight.decode()}) == (ClaimState.FOLLOWER, flight)
    assert claim(SECOND, waiting={7: flight.decode()}) == (ClaimState.FOLLOWER, flight)
    # A request that did not follow it before.
    assert claim("another", waiting={7: flight.decode()})[0] is ClaimState.LEADER


def test_who_has_left_is_told_nothing(redis, flights, claim, land):
    _, flight = claim(FIRST)
    claim(SECOND)
    flights.leave(SECOND, {7: flight.decode()})
    land(flight)
    assert told(redis, FIRST) == [(7, b"what was read")]
    assert told(redis, SECOND) == []


@pytest.fixture
def probe(redis):
    """Let a flight be a probe for ``FIRST``, which others wait for so long."""

    def one(flight, young):
        with redis.pipeline(transaction=False) as pipe:
            SingleFlight(redis, failure_seconds=2.0, asking_seconds=ASKING, young=young).probe(
                pipe, [flight.decode()], FIRST
            )
            pipe.execute()

    return one


def test_a_young_probe_is_waited_for(claim, probe):
    _, flight = claim(FIRST)
    probe(flight, 60.0)
    assert claim(SECOND) == (ClaimState.FOLLOWER, flight)
    assert claim(SECOND, waiting={7: flight.decode()}) == (ClaimState.FOLLOWER, flight)


def test_a_probe_that_takes_long_is_left_to_who_has_it_made(redis, claim, land, probe):
    _, flight = claim(FIRST)
    claim(SECOND, wish=ReadKey(CONNECTION, "read", 8))
    probe(flight, 0.0)
    assert claim(FIRST, waiting={7: flight.decode()}) == (ClaimState.FOLLOWER, flight)
    turn, another = claim(SECOND, wish=ReadKey(CONNECTION, "read", 8), waiting={8: flight.decode()})
    assert turn is ClaimState.LEADER
    assert another != flight
    assert claim(SECOND, wish=ReadKey(CONNECTION, "read", 9)) == (ClaimState.FOLLOWER, another)
    land(flight, told=SECOND)
    assert told(redis, FIRST) == [(7, b"what was read")]


def test_a_request_that_has_left_an_old_probe_gets_no_reply_of_it(redis, claim, land, probe):
    _, old = claim(FIRST)
    assert claim(SECOND) == (ClaimState.FOLLOWER, old)
    probe(old, 0.0)
    turn, new = claim(SECOND, waiting={7: old.decode()})
    assert turn is ClaimState.LEADER
    assert new != old

    land(old, b"of the old probe")

    assert told(redis, SECOND) == []


def test_a_probe_whose_flight_is_gone_is_no_flight(redis, claim, probe):
    _, flight = claim(FIRST)
    redis.delete(key(flight))
    probe(flight, 0.0)
    assert not redis.exists(key(flight))


def test_an_abandoned_flight_is_there_for_the_next(flights, redis, claim):
    _, flight = claim(FIRST)
    flights.abandon(redis, [flight.decode()])
    flights.abandon(redis, [])
    assert claim(SECOND)[0] is ClaimState.LEADER


def test_a_flight_can_be_found_for_as_long_as_the_longest_lasts_and_not_for_much_longer(redis, claim):
    settings = settings_of({"ALMANAC_FANOUT_DEADLINE": "120"})
    kept = settings.fanout_deadline_seconds
    longest = settings.fanout_deadline_seconds + Runtime(settings).grace + kept
    claim()
    generation = redis.get(generation_key(CONNECTION)).decode()
    findable = redis.pttl(f"flight-of:{WISH.name}:{generation}") / 1000
    assert longest < findable < longest + 60

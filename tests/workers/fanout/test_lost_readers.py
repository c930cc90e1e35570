"""Leaders that die, are late, or seem dead: the waiting requests have the read repeated."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from kombu.exceptions import OperationalError

from providers.errors import Reason
from store.coordination.single_flight import ClaimState, ReadKey, SingleFlight, flight_key
from tests.conftest import settings_of
from tests.flights import flight as stored
from tests.waiting import until
from tests.workers.coalesced_reads import PATIENCE, REFUSED, Reading, now, waiting
from tests.workers.conftest import busy_jobs, run_drain
from workers.celery_app import create_celery
from workers.fanout.client import TIMED_OUT, Fanout
from workers.fanout.codec import pack_job, pack_reply, read_digest, reply_list, unpack_reply, work_list
from workers.fanout.request import CoalescingPolicy
from workers.jobs import Reply
from workers.queues import Queue

pytestmark = pytest.mark.slow


def test_a_reader_that_is_gone_is_replaced(ask, serve, runtime, connected, flights):
    jobs = busy_jobs(connected(), 3)
    wishes = [ReadKey(job.connection, read_digest(job), n) for n, job in enumerate(jobs)]
    claimed = flights.claim(
        wishes, "", claimed_at=now(), began=time.time() * 1000, newer_than=None, lease_seconds=0.5
    )
    assert [turn for turn, _ in claimed] == [ClaimState.LEADER] * 3
    reading = Reading(at_once=True)
    serve(reading)
    assert all(reply.whole() for reply in ask(jobs))
    assert set(reading.reads.values()) == {1}


def test_a_request_outlives_its_own_worker(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 2)
    redis = runtime.stores.redis
    reading = Reading(at_once=True)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, jobs)
        waiting(runtime, 1)
        # A worker takes the jobs and is killed; its leases expire. The jobs are claimed before they are on
        # the list.
        (work,) = until(lambda: redis.keys("fanout:*:work"))
        redis.delete(work, *redis.keys("flight:*"))
        serve(reading)
        # The first task finds nothing to do.
        serve(reading)
        assert all(reply.whole() for reply in asked.result())


def test_a_slow_read_renews_its_lease(runtime, connected, flights):
    (job,) = busy_jobs(connected(), 1)
    wish = ReadKey(job.connection, read_digest(job), 0)
    ((_, flight),) = flights.claim(
        [wish], "", claimed_at=now(), began=time.time() * 1000, newer_than=None, lease_seconds=60.0
    )
    reading = Reading()
    runtime.stores.redis.rpush(work_list("f"), pack_job(0, job, flight.decode()))
    drain = threading.Thread(target=run_drain, args=(runtime, "f", reading), kwargs={"seconds": 30.0})
    drain.start()
    assert reading.begun.acquire(timeout=PATIENCE)
    leases = []
    for _ in range(3):
        time.sleep(0.7)
        leases.append(runtime.stores.redis.pttl(flight_key(flight.decode())))
    # The lease is much shorter than the claim's, and was renewed after the first hold.
    assert all(0 < each <= 3_000 for each in leases)
    assert leases[2] > 1_000
    reading.release.set()
    drain.join(timeout=PATIENCE)
    assert stored(runtime.stores.redis, flight.decode()).completed


def test_timed_out_read_is_repeated_by_a_later_request(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 1)
    reading = Reading(at_once=True)

    begun = threading.Event()

    def hang(runtime, job, credentials, deadline):
        begun.set()
        time.sleep(max(0.0, deadline - time.monotonic()) + 0.05)
        return Reply(read_at=now(), failed=REFUSED)

    with ThreadPoolExecutor(2) as threads:
        serve(hang)
        hasty = threads.submit(ask, jobs, seconds=3.0)
        assert begun.wait(PATIENCE)
        patient = threads.submit(ask, jobs)
        waiting(runtime, 2)
        serve(reading)
        assert hasty.result()[0].failed is not None
        assert patient.result()[0].whole()


def test_flights_of_jobs_not_begun_in_time_are_abandoned(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 1)
    with ThreadPoolExecutor(2) as threads:
        hasty = threads.submit(ask, jobs, seconds=3.0)
        waiting(runtime, 1)
        patient = threads.submit(ask, jobs)
        waiting(runtime, 2)
        assert hasty.result()[0].failed == TIMED_OUT
        reading = Reading(at_once=True)
        # The first task starts after its deadline.
        serve(reading)
        serve(reading)
        assert patient.result()[0].whole()


def test_a_broker_that_is_down_leaves_no_flight_behind(runtime, connected, environment, flights):
    celery = create_celery(settings_of(environment | {"ALMANAC_BROKER_URL": "redis://127.0.0.1:1/0"}))
    fanout = Fanout(celery, runtime.stores.redis, flights, tasks=2)
    policy = CoalescingPolicy(began=now())
    with pytest.raises(OperationalError):
        fanout.gather(
            busy_jobs(connected(), 2), queue=Queue.READS, deadline=time.monotonic() + 30, coalescing=policy
        )
    assert not runtime.stores.redis.keys("flight:*")
    celery.close()


def test_a_job_that_is_sent_again_is_another_read(runtime, connected, flights):
    """This happens after a write, when a request that sends the job again takes the first worker for dead."""
    connection = connected()
    jobs = busy_jobs(connection, 8)
    redis = runtime.stores.redis

    def claim(waiter):
        wish = ReadKey(connection, read_digest(jobs[0]), 0)
        moment = now()
        ((turn, flight),) = flights.claim(
            [wish], waiter, claimed_at=moment, began=moment, newer_than=None, lease_seconds=60.0
        )
        return turn, flight.decode()

    _, before = claim(reply_list("f"))
    runtime.stores.busy.invalidate_connections([connection])
    _, after = claim(reply_list("f"))
    assert claim("later") == (ClaimState.FOLLOWER, after)
    # More jobs than places, so that one worker takes both.
    others = [pack_job(n, job) for n, job in enumerate(jobs[1:], 1)]
    redis.rpush(work_list("f"), pack_job(0, jobs[0], before), *others, pack_job(0, jobs[0], after))
    old, new, quick = Reading(), Reading(), Reading(at_once=True)

    def read(runtime, job, credentials, deadline):
        if job != jobs[0]:
            return quick(runtime, job, credentials, deadline)
        if not old.reads:
            return old(runtime, job, credentials, deadline)
        new(runtime, job, credentials, deadline)
        return Reply(read_at=2, outcomes={})

    drain = threading.Thread(target=run_drain, args=(runtime, "f", read), kwargs={"seconds": 30.0})
    drain.start()
    assert old.begun.acquire(timeout=PATIENCE)
    assert new.begun.acquire(timeout=PATIENCE)
    # The result from before the write arrives while the other read runs. Later requests must not get it.
    old.release.set()
    give_up = time.monotonic() + PATIENCE
    while not stored(redis, before).completed:
        assert time.monotonic() < give_up
        time.sleep(0.01)
    assert claim("later")[0] is ClaimState.FOLLOWER
    assert not redis.exists("later")
    new.release.set()
    drain.join(timeout=PATIENCE)
    assert not drain.is_alive()
    assert [unpack_reply(each)[1].read_at for each in redis.lrange("later", 0, -1)] == [2]
    assert sum(quick.reads.values()) == 7


def test_a_write_does_not_repeat_reads_in_flight(ask, serve, runtime, connected, flights, monkeypatch):
    connection = connected()
    claims = []

    def claim(*args, **more):
        found = SingleFlight.claim(flights, *args, **more)
        claims.append(found)
        return found

    monkeypatch.setattr(flights, "claim", claim)
    jobs = busy_jobs(connection, 2)
    reading = Reading()
    serve(reading)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, jobs)
        for _ in jobs:
            assert reading.begun.acquire(timeout=PATIENCE)
        runtime.stores.busy.invalidate_connections([connection])
        # The request checks its leaders about once a second, and would send missing reads again.
        looks = len(claims)
        until(lambda: len(claims) >= looks + 2)
        assert not runtime.stores.redis.keys("fanout:*:work")
        reading.release.set()
        assert len(asked.result()) == 2
    assert set(reading.reads.values()) == {1}


def test_a_dead_leader_is_noticed_while_other_replies_arrive(ask, serve, runtime, connected, flights):
    jobs = busy_jobs(connected(), 3)
    wish = ReadKey(jobs[0].connection, read_digest(jobs[0]), 0)
    flights.claim([wish], "", claimed_at=now(), began=time.time() * 1000, newer_than=None, lease_seconds=0.3)
    reading, done = Reading(at_once=True), threading.Event()
    redis = runtime.stores.redis
    with ThreadPoolExecutor(2) as threads:
        asked = threads.submit(ask, jobs)
        waiting(runtime, 1)
        while not (lists := redis.keys("fanout:*:work")):
            time.sleep(0.01)
        replies = lists[0].replace(b":work", b":replies")

        def trickle():
            # A reply that the request has already, again and again.
            while not done.wait(0.3):
                redis.rpush(replies, pack_reply(1, Reply(read_at=1)))

        trickling = threads.submit(trickle)
        serve(reading)
        serve(reading)
        assert asked.result()[0].whole()
        done.set()
        trickling.result()
    redis.delete(replies)


def test_flights_of_jobs_left_on_the_list_are_abandoned(ask, runtime, connected):
    jobs = busy_jobs(connected(), 2)
    redis = runtime.stores.redis
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, jobs)
        waiting(runtime, 1)
        while not (lists := redis.keys("fanout:*:work")):
            time.sleep(0.01)
        # Both get replies, as from workers that seemed dead, but no worker has taken them from the list.
        redis.rpush(
            lists[0].replace(b":work", b":replies"), *(pack_reply(n, Reply(read_at=1)) for n in (0, 1))
        )
        assert len(asked.result()) == 2
    assert not redis.keys("flight:*")


def test_a_rate_limit_is_the_answer_for_all_followers(ask, serve, runtime, connected):
    connection = connected()
    (job,) = busy_jobs(connection, 1)
    # Longer than every deadline here. The requests are too many to be refused one after the other.
    runtime.stores.provider_rate_limiter.pause_calls("google", connection, 60.0, named=True, project=False)
    with ThreadPoolExecutor(12) as threads:
        asked = [threads.submit(ask, [job], seconds=6.0) for _ in range(12)]
        waiting(runtime, 12)
        serve(Reading(at_once=True))
        reasons = [each.result()[0].failed.reason for each in asked]
    assert reasons == [Reason.RATE_LIMITED] * 12

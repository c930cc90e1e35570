"""Workers that die, are late, or seem dead: the waiting requests have the read repeated."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from kombu.exceptions import OperationalError

from store.coordination.single_flight import SharedRead, lock_key
from tests.conftest import settings_of
from tests.waiting import until
from tests.workers.coalesced_reads import PATIENCE, Reading, now
from tests.workers.conftest import busy_jobs
from workers.celery_app import create_celery
from workers.fanout.client import CoalescingPolicy, Fanout
from workers.fanout.codec import pack_reply, read_digest
from workers.jobs import Reply
from workers.queues import Queue

pytestmark = pytest.mark.slow


def lock_of(job):
    return lock_key(SharedRead(job.connection, read_digest(job)))


def work_of(redis):
    """The list of the request under way."""
    return until(lambda: redis.keys("fanout:*:work"))[0]


def test_a_request_outlives_its_own_worker(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 2)
    reading = Reading(at_once=True)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, jobs)
        # A worker takes the jobs and is killed.
        runtime.stores.redis.delete(work_of(runtime.stores.redis))
        # The first task finds nothing to do.
        serve(reading)
        time.sleep(0.5)
        serve(reading)
        assert all(reply.whole() for reply in asked.result())
    assert set(reading.reads.values()) == {1}


def test_jobs_whose_task_died_are_sent_another(ask, serve, runtime, connected, celery):
    jobs = busy_jobs(connected(), 2)
    reading = Reading(at_once=True)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, jobs)
        redis = runtime.stores.redis
        # A worker was given the task and was killed before it took a job.
        until(lambda: redis.llen(Queue.READS))
        redis.delete(Queue.READS)
        serve(reading)
        assert all(reply.whole() for reply in asked.result())
    assert set(reading.reads.values()) == {1}


def test_a_read_under_way_is_not_repeated(ask, serve, runtime, connected, flights, monkeypatch):
    jobs = busy_jobs(connected(), 2)
    looks, under_way = [], flights.under_way

    def look(reads):
        looks.append(reads)
        return under_way(reads)

    monkeypatch.setattr(flights, "under_way", look)
    reading = Reading()
    serve(reading)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, jobs)
        for _ in jobs:
            assert reading.begun.acquire(timeout=PATIENCE)
        until(lambda: len(looks) >= 3)
        assert not runtime.stores.redis.keys("fanout:*:work")
        reading.release.set()
        assert len(asked.result()) == 2
    assert set(reading.reads.values()) == {1}


def test_a_read_that_one_check_misses_is_not_repeated(ask, serve, runtime, connected, flights, monkeypatch):
    """At that moment it had ended and its reply was on the way, or its lock was not taken yet."""
    (job,) = busy_jobs(connected(), 1)
    looks, under_way = [], flights.under_way

    def look(reads):
        looks.append(reads)
        return [False] if len(looks) == 1 else under_way(reads)

    monkeypatch.setattr(flights, "under_way", look)
    reading = Reading()
    serve(reading)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, [job])
        assert reading.begun.acquire(timeout=PATIENCE)
        until(lambda: len(looks) >= 3)
        assert not runtime.stores.redis.keys("fanout:*:work")
        reading.release.set()
        assert asked.result()[0].whole()


def test_a_read_that_was_taken_just_before_a_check_is_not_repeated(
    ask, serve, runtime, connected, monkeypatch
):
    """It was on the list at the check before, and has no lock yet."""
    jobs = busy_jobs(connected(), 2)
    checks, check = [], Fanout._send_lost_again

    def counted(self, request):
        check(self, request)
        checks.append(request)

    monkeypatch.setattr(Fanout, "_send_lost_again", counted)
    redis = runtime.stores.redis
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, jobs)
        work = work_of(redis)
        until(lambda: checks)
        # A worker takes the jobs after a check, and is slow to lock their reads.
        already = len(checks)
        taken = redis.lpop(work, 2)
        until(lambda: len(checks) > already)
        assert not redis.exists(work)
        redis.rpush(work, *taken)
        serve(Reading(at_once=True))
        assert all(reply.whole() for reply in asked.result())


def test_a_write_does_not_repeat_reads_under_way(ask, serve, runtime, connected, flights, monkeypatch):
    connection = connected()
    jobs = busy_jobs(connection, 2)
    reading = Reading()
    serve(reading)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, jobs)
        for _ in jobs:
            assert reading.begun.acquire(timeout=PATIENCE)
        runtime.stores.busy.invalidate_connections([connection])
        # Longer than two checks of the request.
        time.sleep(2.5)
        assert not runtime.stores.redis.keys("fanout:*:work")
        reading.release.set()
        assert len(asked.result()) == 2
    assert set(reading.reads.values()) == {1}


def test_a_dead_worker_is_noticed_while_other_replies_arrive(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 3)
    reading, done = Reading(at_once=True), threading.Event()
    redis = runtime.stores.redis
    with ThreadPoolExecutor(2) as threads:
        asked = threads.submit(ask, jobs)
        work = work_of(redis)
        # A worker takes the first job and is killed.
        redis.lpop(work)
        replies = work.replace(b":work", b":replies")

        def trickle():
            # A reply that the request has already, again and again.
            while not done.wait(0.3):
                redis.rpush(replies, pack_reply(1, Reply(read_at=1)))

        trickling = threads.submit(trickle)
        serve(reading)
        time.sleep(0.2)
        serve(reading)
        assert asked.result()[0].whole()
        done.set()
        trickling.result()
    redis.delete(replies)


def test_the_read_of_a_worker_that_stopped_is_made_by_another(ask, serve, runtime, connected):
    """A worker that hangs does not renew its locks. When it continues, its late reply does no harm."""
    (job,) = busy_jobs(connected(), 1)
    stuck, well = Reading(), Reading(at_once=True)
    redis = runtime.stores.redis
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, [job])
        serve(stuck)
        assert stuck.begun.acquire(timeout=PATIENCE)
        runtime.pool.locks._held.clear()
        redis.pexpire(lock_of(job), 100)
        serve(well)
        assert asked.result()[0].whole()
    assert well.reads == stuck.reads
    stuck.release.set()
    until(lambda: not runtime.pool.used)
    assert not redis.exists(lock_of(job))


def test_a_broker_that_is_down_leaves_nothing_behind(runtime, connected, environment, flights):
    celery = create_celery(settings_of(environment | {"ALMANAC_BROKER_URL": "redis://127.0.0.1:1/0"}))
    fanout = Fanout(celery, runtime.stores.redis, flights, tasks=2)
    policy = CoalescingPolicy(began=now())
    with pytest.raises(OperationalError):
        fanout.gather(
            busy_jobs(connected(), 2), queue=Queue.READS, deadline=time.monotonic() + 30, coalescing=policy
        )
    assert not runtime.stores.redis.keys("fanout:*")
    assert not runtime.stores.redis.keys("read-*")
    celery.close()

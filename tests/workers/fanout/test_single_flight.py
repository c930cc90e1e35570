"""Single flight in the fan-out: equal reads of several requests are performed once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from providers.base import Failed, Read
from providers.errors import Reason
from scheduling.intervals import Intervals
from store.coordination.provider_limits import Access, Circuit
from store.coordination.single_flight import (
    Ended,
    Locked,
    ReadLock,
    SharedRead,
    SingleFlight,
    Wanted,
    lock_key,
)
from tests.waiting import until
from tests.workers.coalesced_reads import PATIENCE, REFUSED, Reading, now, waiting
from tests.workers.conftest import busy_jobs, put_work, read_one, run_drain
from workers.failures import BROKEN, DOWN, TIMED_OUT
from workers.fanout import chunks, reports
from workers.fanout.client import CoalescingPolicy
from workers.fanout.codec import pack_job, read_digest, reply_list
from workers.fanout.pool import StepPool
from workers.fanout.work import FanoutRequest
from workers.jobs import Reply
from workers.queues import Queue
from workers.runtime import Runtime


def test_of_many_requests_one_has_the_reads_made_and_all_are_answered(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 4)
    reading = Reading()
    serve(reading, tasks=12)
    with ThreadPoolExecutor(12) as threads:
        # The same reads, with different numbers in each request.
        asked = [threads.submit(ask, jobs[n % 4 :] + jobs[: n % 4]) for n in range(12)]
        waiting(runtime, 11)
        reading.release.set()
        answers = [each.result() for each in asked]
    assert set(reading.reads.values()) == {1}
    for n, replies in enumerate(answers):
        calendars = [name for reply in replies for name in reply.outcomes]
        assert calendars == [f"calendar-{(n + each) % 4}" for each in range(4)]


def test_waiting_for_the_read_of_another_request_holds_no_thread(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 2)
    reading = Reading()
    serve(reading, tasks=8)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(ask, jobs) for _ in range(8)]
        waiting(runtime, 7)
        until(lambda: runtime.pool.used == 2)
        reading.release.set()
        assert all(reply.whole() for each in asked for reply in each.result())


def test_a_request_for_a_part_joins_that_part(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 4)
    reading = Reading()
    serve(reading, tasks=2)
    with ThreadPoolExecutor(2) as threads:
        whole = threads.submit(ask, jobs)
        for _ in jobs:
            assert reading.begun.acquire(timeout=PATIENCE)
        part = threads.submit(ask, jobs[1:3])
        waiting(runtime, 1)
        reading.release.set()
        assert [list(reply.outcomes) for reply in part.result()] == [["calendar-1"], ["calendar-2"]]
        assert len(whole.result()) == 4
    assert set(reading.reads.values()) == {1}


@pytest.fixture
def other(apart):
    """Another worker of the installation."""
    made = Runtime(apart)
    made.__dict__["pool"] = StepPool(4, made.stores)
    yield made
    made.pool.close()
    made.stores.close()


def test_a_job_waits_for_the_read_of_another_worker(runtime, other, connected, flights):
    jobs = busy_jobs(connected(), 3)
    reading, twice = Reading(), Reading(at_once=True)
    terms = flights.terms(now(), now(), None)
    for name in ("one", "two", "three"):
        put_work(runtime, name, jobs)
    with ThreadPoolExecutor(3) as threads:
        more = {"seconds": 30.0, "terms": terms}
        first = threads.submit(run_drain, runtime, "one", reading, **more)
        for _ in jobs:
            assert reading.begun.acquire(timeout=PATIENCE)
        rest = [threads.submit(run_drain, other, name, twice, **more) for name in ("two", "three")]
        waiting(other, 2)
        reading.release.set()
        for each in (first, *rest):
            each.result()
    assert not twice.reads
    assert [runtime.stores.redis.llen(reply_list(each)) for each in ("one", "two", "three")] == [3] * 3


def test_the_lock_of_a_read_that_hangs_expires_and_its_followers_look(runtime, flights):
    read, locks, resumed = SharedRead("c", "hangs"), runtime.pool.locks, threading.Event()
    terms = flights.terms(now(), now(), None)
    assert isinstance(flights.take([Wanted(read, "f:0")], terms)[0], Locked)
    lock = ReadLock(read, "f:0")
    locks.hold([lock], time.monotonic() + 0.5)
    locks.wait(lock, resumed.set)
    assert not resumed.wait(0.2)

    assert resumed.wait(PATIENCE)
    until(lambda: flights.under_way([read]) == [False])
    locks.drop([lock])


def test_jobs_that_wait_for_a_fresh_read_do_not_wait_for_the_older_one(ask, serve, runtime, other, connected):
    """A request for fresh data has taken the lock over in another worker."""
    (job,) = busy_jobs(connected(), 1)
    old, fresh, none = Reading(), Reading(), Reading(at_once=True)
    with ThreadPoolExecutor(3) as threads:
        serve(old)
        first = threads.submit(ask, [job])
        assert old.begun.acquire(timeout=PATIENCE)
        # The clocks of both requests are in milliseconds.
        time.sleep(0.002)
        taking_over = threads.submit(ask, [job], newer_than=now())
        serve(fresh, worker=other)
        assert fresh.begun.acquire(timeout=PATIENCE)
        joining = threads.submit(ask, [job])
        serve(none)
        waiting(runtime, 1)
        fresh.release.set()
        assert taking_over.result()[0].whole()
        assert joining.result()[0].whole()
        old.release.set()
        first.result()
    assert not none.reads


def test_the_read_of_a_worker_that_died_is_taken_by_one_that_waits(ask, serve, runtime, connected):
    (job,) = busy_jobs(connected(), 1)
    lock = lock_key(SharedRead(job.connection, read_digest(job)))
    (generation,) = runtime.stores.busy.begin_reads([job.connection], {}).values()
    # The worker took the lock and was killed. No worker renews it.
    runtime.stores.redis.set(lock, f"{now()} {generation.decode()} dead:0", px=700)
    reading = Reading(at_once=True)
    serve(reading, tasks=3)
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(ask, [job]) for _ in range(3)]
        assert all(each.result()[0].whole() for each in asked)
    assert set(reading.reads.values()) == {1}


def test_a_slow_read_keeps_its_lock(runtime, connected, flights):
    (job,) = busy_jobs(connected(), 1)
    lock = lock_key(SharedRead(job.connection, read_digest(job)))
    reading = Reading()
    put_work(runtime, "f", [job])
    with ThreadPoolExecutor(1) as threads:
        terms = flights.terms(now(), now(), None)
        asked = threads.submit(run_drain, runtime, "f", reading, seconds=30.0, terms=terms)
        assert reading.begun.acquire(timeout=PATIENCE)
        left = []
        for _ in range(5):
            time.sleep(0.8)
            left.append(runtime.stores.redis.pttl(lock))
        reading.release.set()
        asked.result()
    # The lock lasts for three seconds without its renewals.
    assert all(1_000 < each <= 3_000 for each in left), left
    assert not runtime.stores.redis.exists(lock)


def test_a_read_that_continues_past_its_deadline_keeps_its_lock(runtime, connected, flights):
    """A request that repeats the one that has timed out waits for the same read."""
    (job,) = busy_jobs(connected(), 1)
    reading = Reading()
    put_work(runtime, "f", [job])
    with ThreadPoolExecutor(1) as threads:
        terms = flights.terms(now(), now(), None)
        asked = threads.submit(run_drain, runtime, "f", reading, seconds=1.0, terms=terms)
        assert reading.begun.acquire(timeout=PATIENCE)
        until(lambda: runtime.stores.redis.llen(reply_list("f")))
        under_way = flights.under_way([SharedRead(job.connection, read_digest(job))])
        reading.release.set()
        asked.result()
    assert under_way == [True]


def test_a_read_that_begins_after_a_write_is_a_read_of_its_own(ask, serve, runtime, connected):
    connection = connected()
    jobs = busy_jobs(connection, 1)
    reading = Reading()
    with ThreadPoolExecutor(2) as threads:
        serve(reading)
        before = threads.submit(ask, jobs)
        assert reading.begun.acquire(timeout=PATIENCE)
        runtime.stores.busy.invalidate_connections([connection])
        serve(reading)
        after = threads.submit(ask, jobs)
        assert reading.begun.acquire(timeout=PATIENCE)
        reading.release.set()
        assert before.result()
        assert after.result()
    assert set(reading.reads.values()) == {2}


def test_who_waited_before_a_write_is_answered_by_the_read_that_began_before_it(
    ask, serve, runtime, connected
):
    connection = connected()
    jobs = busy_jobs(connection, 1)
    reading = Reading()
    with ThreadPoolExecutor(4) as threads:
        serve(reading, tasks=4)
        asked = [threads.submit(ask, jobs) for _ in range(4)]
        waiting(runtime, 3)
        runtime.stores.busy.invalidate_connections([connection])
        reading.release.set()
        assert all(each.result()[0].whole() for each in asked)
    assert set(reading.reads.values()) == {1}


def test_a_request_for_fresh_data_does_not_wait_for_an_older_read(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 1)
    reading = Reading()
    with ThreadPoolExecutor(2) as threads:
        serve(reading, tasks=2)
        before = threads.submit(ask, jobs)
        assert reading.begun.acquire(timeout=PATIENCE)
        fresh = threads.submit(ask, jobs, newer_than=now() + 1)
        assert reading.begun.acquire(timeout=PATIENCE)
        reading.release.set()
        assert before.result()[0].whole()
        assert fresh.result()[0].whole()
    assert set(reading.reads.values()) == {2}


def test_failure_answers_immediate_repeats(ask, serve, connected):
    jobs = busy_jobs(connected(), 1)
    serve(lambda *_: Reply(read_at=now(), failed=REFUSED))
    assert ask(jobs)[0].failed == REFUSED
    reading = Reading(at_once=True)
    serve(reading)
    assert ask(jobs)[0].failed == REFUSED
    assert not reading.reads
    serve(reading)
    assert ask(jobs, newer_than=now())[0].whole()


def test_a_refresh_does_not_wait_and_is_sent_once(fanout, runtime, connected):
    jobs = busy_jobs(connected(), 3)
    for _ in range(2):
        fanout.refresh(
            jobs, queue=Queue.READS, deadline=time.monotonic() + 30, coalescing=CoalescingPolicy(began=now())
        )
    redis = runtime.stores.redis
    (work,) = redis.keys("fanout:*:work")
    assert redis.llen(work) == 3
    assert redis.llen(Queue.READS) == 1


def test_a_refresh_is_not_sent_while_the_read_is_under_way(fanout, runtime, connected, flights):
    (job,) = busy_jobs(connected(), 1)
    runtime.stores.redis.set(lock_key(SharedRead(job.connection, read_digest(job))), "1 g other:0", ex=60)
    policy = CoalescingPolicy(began=now())
    fanout.refresh([job], queue=Queue.READS, deadline=time.monotonic() + 30, coalescing=policy)
    assert not runtime.stores.redis.keys("fanout:*")


def test_jobs_that_are_not_shared_take_no_lock(runtime, connected):
    seen = []

    def perform(runtime, job, credentials, deadline):
        seen.extend(runtime.stores.redis.keys("read-*"))
        return read_one(runtime, job, credentials, deadline)

    put_work(runtime, "f", busy_jobs(connected(), 2))
    run_drain(runtime, "f", perform)
    assert runtime.stores.redis.llen(reply_list("f")) == 2
    assert not seen
    assert not runtime.stores.redis.keys("read-*")


def test_what_was_read_in_part_is_not_kept_as_a_failure(ask, serve, connected):
    (job,) = busy_jobs(connected(), 1)
    part = Reply(read_at=now(), outcomes={"a": Read(Intervals.of([(0, 1)])), "b": REFUSED})
    serve(lambda *_: part)
    assert list(ask([job])[0].outcomes) == ["a", "b"]
    reading = Reading(at_once=True)
    serve(reading)
    assert list(ask([job])[0].outcomes) == ["calendar-0"]


def test_a_failure_that_names_a_time_is_not_kept(ask, serve, connected):
    (job,) = busy_jobs(connected(), 1)
    serve(lambda *_: Reply(read_at=now(), failed=replace(REFUSED, retry_after=2.0)))
    assert ask([job])[0].failed is not None
    reading = Reading(at_once=True)
    serve(reading)
    assert ask([job])[0].whole()


@pytest.mark.parametrize("failed", [BROKEN, DOWN])
def test_a_failure_of_almanac_itself_is_not_kept(ask, serve, connected, failed):
    (job,) = busy_jobs(connected(), 1)
    serve(lambda *_: Reply(failed=failed))
    assert ask([job])[0].failed == failed
    serve(Reading(at_once=True))
    assert ask([job])[0].whole()


def test_a_job_without_a_permit_leaves_its_read_to_the_one_that_waits(runtime, connected, flights):
    """The one that waits has more time."""
    connection = connected()
    (job,) = busy_jobs(connection, 1)
    runtime.stores.provider_limits.throttled(Circuit("google", Access.READS), connection, 4.0, named=True)
    terms = flights.terms(now(), now(), None)

    def admitted(name, seconds):
        request = FanoutRequest(name, time.monotonic() + seconds, terms)
        ((taken,),), _ = chunks.decode(request, [pack_job(0, job)])
        chunks.load(runtime, [taken])
        return request, taken, chunks.admit(runtime, request, [[taken]])

    hasty, taken, refused = admitted("hasty", 2.0)
    patient, waiting_job, follows = admitted("patient", 20.0)
    assert [each for _, each in follows.following] == [waiting_job]

    ((_, failure),) = refused.failed
    runtime.pool.reporter.report(reports.failed(runtime.stores, hasty, taken, failure))
    until(lambda: runtime.stores.redis.llen(reply_list("hasty")))

    again = chunks.admit(runtime, patient, [[waiting_job]])
    assert [work for _, work in again.waiting] == [[waiting_job]]


@pytest.mark.parametrize("lifetime", [20_000, 0])
def test_all_jobs_that_wait_for_a_read_of_another_worker_are_resumed_together(
    runtime, connected, flights, lifetime
):
    """The one that looks finds the result, or takes the lock; the others do not look one after the other."""
    (job,) = busy_jobs(connected(), 1)
    terms = flights.terms(now(), now(), None)
    request = FanoutRequest("f", time.monotonic() + 20, terms)
    ((taken,),), _ = chunks.decode(request, [pack_job(0, job)])
    chunks.load(runtime, [taken])
    (locked,) = flights.take([Wanted(taken.read, "other:0")], terms)
    lock, resumed = ReadLock(taken.read, "other:0"), []
    assert chunks.admit(runtime, request, [[taken]]).following == [(lock, taken)]
    with runtime.stores.redis.pipeline(transaction=False) as pipe:
        flights.end(pipe, [Ended(lock, locked.generation, terms.sent, b"result", lifetime=lifetime)])
        pipe.execute()

    for number in range(50):
        runtime.pool.locks.wait(lock, partial(resumed.append, number))
    admitted = chunks.admit(runtime, request, [[taken]])
    assert admitted.recorded == ([(taken, b"result")] if lifetime else [])
    assert admitted.ready == ([] if lifetime else [[taken]])
    assert len(resumed) == 50


@pytest.mark.slow
def test_a_rate_limit_is_the_answer_for_all_that_wait(ask, serve, runtime, connected):
    connection = connected()
    (job,) = busy_jobs(connection, 1)
    # Longer than every deadline here. The requests are too many to be refused one after the other.
    runtime.stores.provider_limits.throttled(Circuit("google", Access.READS), connection, 60.0, named=True)
    with ThreadPoolExecutor(12) as threads:
        asked = [threads.submit(ask, [job], seconds=6.0) for _ in range(12)]
        serve(Reading(at_once=True), tasks=12)
        reasons = [each.result()[0].failed.reason for each in asked]
    assert reasons == [Reason.RATE_LIMITED] * 12


@pytest.mark.slow
def test_a_request_that_has_time_for_a_permit_gets_one(ask, serve, runtime, connected):
    connection = connected()
    (job,) = busy_jobs(connection, 1)
    runtime.stores.provider_limits.throttled(Circuit("google", Access.READS), connection, 4.0, named=True)
    serve(Reading(at_once=True), tasks=2)
    assert ask([job], seconds=2.0)[0].failed.reason is Reason.RATE_LIMITED
    assert ask([job], seconds=20.0)[0].whole()


@pytest.mark.slow
def test_a_read_that_timed_out_is_repeated_by_a_request_with_more_time(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 1)
    reading = Reading(at_once=True)
    late = Failed(Reason.PROVIDER_ERROR, "late")

    def hang(runtime, job, credentials, deadline):
        time.sleep(max(0.0, deadline - time.monotonic()) + 0.05)
        return Reply(read_at=now(), failed=late)

    with ThreadPoolExecutor(2) as threads:
        serve(hang)
        hasty = threads.submit(ask, jobs, seconds=3.0)
        until(lambda: runtime.pool.used)
        patient = threads.submit(ask, jobs)
        serve(reading)
        waiting(runtime, 1)
        assert hasty.result()[0].failed is not None
        assert patient.result()[0].whole()
    assert set(reading.reads.values()) == {1}


def test_the_settings_of_the_web_server_decide_how_long_a_failure_answers(fanout, serve, runtime, connected):
    """The worker of an installation may be configured later than the web server."""
    (job,) = busy_jobs(connected(), 1)
    short = SingleFlight(runtime.stores.redis, failure_seconds=0.0, keep_seconds=60.0)
    fanout._flights = short
    reading = Reading(at_once=True)

    def ask_once():
        policy = CoalescingPolicy(began=time.time() * 1000)
        deadline = time.monotonic() + 20
        return fanout.gather([job], queue=Queue.READS, deadline=deadline, coalescing=policy)[0]

    serve(lambda *_: Reply(read_at=now(), failed=REFUSED))
    assert ask_once().failed == REFUSED
    time.sleep(0.01)
    serve(reading)
    assert ask_once().whole()


def test_without_a_worker_nothing_is_left(ask, runtime, connected):
    jobs = busy_jobs(connected(), 3)
    assert [each.failed for each in ask(jobs, seconds=0.3)] == [TIMED_OUT] * 3
    assert not runtime.stores.redis.keys("fanout:*")
    assert not runtime.stores.redis.keys("read-*")

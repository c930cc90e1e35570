"""Single flight in the fan-out: equal reads of several requests are performed once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from providers.base import Read
from scheduling.intervals import Intervals
from tests.flights import followers
from tests.waiting import until
from tests.workers.coalesced_reads import PATIENCE, REFUSED, Reading, now, waiting
from tests.workers.conftest import busy_jobs, put_work, read_one, run_drain
from workers.fanout.codec import reply_list
from workers.fanout.request import CoalescingPolicy
from workers.jobs import Reply
from workers.queues import Queue


def test_of_many_requests_one_has_the_reads_made_and_all_are_answered(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 5)
    reading = Reading()
    serve(reading)
    with ThreadPoolExecutor(12) as threads:
        # The same reads, with different numbers in each request.
        asked = [threads.submit(ask, jobs[n % 5 :] + jobs[: n % 5]) for n in range(12)]
        waiting(runtime, 12)
        reading.release.set()
        answers = [each.result() for each in asked]
    assert set(reading.reads.values()) == {1}
    for n, replies in enumerate(answers):
        calendars = [name for reply in replies for name in reply.outcomes]
        assert calendars == [f"calendar-{(n + each) % 5}" for each in range(5)]


def test_a_request_for_a_part_joins_that_part(ask, serve, runtime, connected):
    jobs = busy_jobs(connected(), 4)
    reading = Reading()
    serve(reading)
    with ThreadPoolExecutor(2) as threads:
        whole = threads.submit(ask, jobs)
        waiting(runtime, 1)
        part = threads.submit(ask, jobs[1:3])
        redis = runtime.stores.redis
        until(lambda: sorted(followers(redis)) == [0, 0, 1, 1])
        reading.release.set()
        assert [list(reply.outcomes) for reply in part.result()] == [["calendar-1"], ["calendar-2"]]
        assert len(whole.result()) == 4
    assert set(reading.reads.values()) == {1}


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


def test_failure_answers_immediate_repeats(ask, serve, connected):
    jobs = busy_jobs(connected(), 1)

    def refuse(runtime, job, credentials, deadline):
        return Reply(read_at=now(), failed=REFUSED)

    serve(refuse)
    assert ask(jobs)[0].failed == REFUSED
    # No worker is left.
    assert ask(jobs)[0].failed == REFUSED
    reading = Reading(at_once=True)
    serve(reading)
    assert ask(jobs, newer_than=now())[0].whole()


def test_a_refresh_does_not_wait_and_repeats_no_read(fanout, runtime, connected):
    jobs = busy_jobs(connected(), 3)
    for _ in range(2):
        fanout.refresh(
            jobs, queue=Queue.READS, deadline=time.monotonic() + 30, coalescing=CoalescingPolicy(began=now())
        )
    redis = runtime.stores.redis
    (work,) = redis.keys("fanout:*:work")
    assert redis.llen(work) == 3
    redis.delete(work, *redis.keys("flight:*"))


def test_jobs_that_are_not_shared_make_no_flight(runtime, connected):
    put_work(runtime, "f", busy_jobs(connected(), 2))
    run_drain(runtime, "f", read_one)
    assert runtime.stores.redis.llen(reply_list("f")) == 2
    assert not runtime.stores.redis.keys("flight:*")


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

"""The worker's side of a fan-out: every job that was taken gets a reply."""

from __future__ import annotations

import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import msgspec
import pytest
from redis.client import Pipeline

from providers.base import Calendar, Failed
from providers.changes import ChangePage
from providers.errors import Reason
from store.cache.busy_cache import CalendarKey
from store.cache.calendar_lists import CalendarList, ListedCalendar
from store.config.settings import Settings
from store.coordination import shares
from store.coordination.provider_limits import (
    Access,
    AcquireRequest,
    BreakerLimits,
    CallLimit,
    Circuit,
    ProviderLimits,
)
from store.sql.database import Database
from store.sql.models import OAuthConnection
from store.sql.queries import connections
from tests.conftest import settings_of
from tests.waiting import until
from tests.workers.coalesced_reads import now
from tests.workers.conftest import (
    DAY,
    all_places_free,
    busy_jobs,
    period_end,
    put_work,
    read_one,
    replies,
    run_drain,
    start_redis,
)
from workers.failures import BROKEN, DOWN
from workers.fanout import steps
from workers.fanout.chunks import GONE
from workers.fanout.codec import reply_list, work_list
from workers.fanout.pool import MAX_WAITING_IN_ALL, MAX_WAITING_TASKS, StepPool
from workers.fanout.steps import MAX_CHUNK, Steps
from workers.fanout.work import FanoutRequest
from workers.jobs import ReadBusy, ReadChanges, Reply
from workers.runtime import Runtime
from workers.telemetry import request_ids


def test_every_job_is_answered_under_its_number(runtime, connected):
    jobs = busy_jobs(connected(), 100)
    put_work(runtime, "f", jobs)
    run_drain(runtime, "f", read_one)
    answers = replies(runtime, "f")
    assert [number for number, _ in answers] == list(range(100))
    for (_, reply), job in zip(answers, jobs, strict=True):
        (calendar,) = job.calendars
        assert reply.outcomes[calendar].busy.pairs() == [(0, period_end(calendar))]
    assert all_places_free(runtime)


def test_replies_that_no_request_reads_expire(runtime, connected):
    put_work(runtime, "f", busy_jobs(connected(), 1))
    run_drain(runtime, "f", read_one)
    assert 0 < runtime.stores.redis.ttl(reply_list("f")) <= 60


def test_what_was_read_is_in_the_cache_and_what_failed_is_not(runtime, connected):
    connection = connected()
    listed = (ListedCalendar("team", False),)
    read_at = time.time_ns() // 1_000_000

    def perform(runtime, job, credentials, deadline):
        failed = Failed(Reason.NOT_FOUND, "gone")
        team = read_one(runtime, ReadBusy(connection, ("calendar-7",), 0, DAY), credentials, deadline)
        return Reply(read_at=read_at, listed=listed, outcomes={**team.outcomes, "gone": failed})

    put_work(runtime, "f", [ReadBusy(connection, None, 0, 7 * DAY)])
    run_drain(runtime, "f", perform)
    keys = [CalendarKey(connection, name) for name in ("calendar-7", "gone")]
    known = runtime.stores.busy.load(keys, 0, 7 * DAY)
    assert known.missing == {1: (0, 7 * DAY)}
    assert (int(known.read_at[0]), known.busy.flat().pairs()) == (read_at, [(0, 8)])
    assert runtime.stores.calendar_lists.load([connection]) == {connection: CalendarList(read_at, listed)}


def test_unexpected_failure_of_one_job_does_not_affect_others(runtime, connected, caplog):
    def perform(runtime, job, credentials, deadline):
        if period_end(job.calendars[0]) % 2:
            raise RuntimeError("planted")
        return read_one(runtime, job, credentials, deadline)

    put_work(runtime, "f", busy_jobs(connected(), 40))
    run_drain(runtime, "f", perform)
    answers = replies(runtime, "f")
    assert [reply.failed for _, reply in answers] == [BROKEN, None] * 20
    assert all_places_free(runtime)
    assert "planted" not in BROKEN.message


def test_a_reply_that_cannot_be_packed_fails_its_own_job_alone(runtime, connected):
    # MessagePack has no such number.
    original = {"number": 2**64}
    calendar = Calendar("a", "google", "", "owner", True, True, "", "", "UTC", original)

    def perform(runtime, job, credentials, deadline):
        if period_end(job.calendars[0]) % 2:
            return Reply(calendars=(calendar,))
        return read_one(runtime, job, credentials, deadline)

    put_work(runtime, "f", busy_jobs(connected(), 4))
    run_drain(runtime, "f", perform)
    assert [reply.failed for _, reply in replies(runtime, "f")] == [BROKEN, None] * 2
    assert all_places_free(runtime)


def test_a_connection_that_is_gone_is_named_and_the_others_are_read(runtime, connected):
    removed, stays = connected(), connected()
    with runtime.stores.database.writing() as session:
        connections.remove(session, [removed])
    put_work(runtime, "f", [*busy_jobs(removed, 1), *busy_jobs(stays, 1)])
    run_drain(runtime, "f", read_one)
    (_, gone), (_, read) = replies(runtime, "f")
    assert (gone.failed, read.failed) == (GONE, None)


def test_tokens_under_a_key_that_is_lost_fail_their_connection_only(runtime, connected):
    copied, own = connected(), connected()
    with runtime.stores.database.writing() as session:
        rows = {each: session.get_one(OAuthConnection, each) for each in (copied, own)}
        rows[copied].sealed_access_token = rows[own].sealed_access_token
    put_work(runtime, "f", [*busy_jobs(copied, 1), *busy_jobs(own, 1)])
    run_drain(runtime, "f", read_one)
    assert [reply.failed for _, reply in replies(runtime, "f")] == [BROKEN, None]


def test_without_a_database_every_job_fails_and_none_is_lost(runtime, connected, tmp_path):
    connection = connected()
    runtime.stores.database.close()
    runtime.stores.__dict__["database"] = Database(f"sqlite:///{tmp_path}/no/such/folder/almanac.db")
    put_work(runtime, "f", busy_jobs(connection, 50))
    run_drain(runtime, "f", read_one)
    answers = replies(runtime, "f")
    assert [number for number, _ in answers] == list(range(50))
    assert {reply.failed for _, reply in answers} == {DOWN}
    assert all_places_free(runtime)


def test_two_drains_take_each_job_once(runtime, connected, apart):
    taken = []

    def perform(runtime, job, credentials, deadline):
        taken.append(job.calendars[0])
        time.sleep(0.001)
        return read_one(runtime, job, credentials, deadline)

    other = Runtime(apart)
    other.__dict__["pool"] = StepPool(4, other.stores)
    put_work(runtime, "f", busy_jobs(connected(), 300))
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda each: run_drain(each, "f", perform), [runtime, other]))
    other.pool.close()
    other.stores.database.close()
    other.stores.redis.close()
    assert len(taken) == len(set(taken)) == 300
    assert [number for number, _ in replies(runtime, "f")] == list(range(300))


def test_a_fan_out_that_has_ended_takes_no_jobs(runtime, connected):
    put_work(runtime, "f", busy_jobs(connected(), 3))
    run_drain(runtime, "f", read_one, seconds=0.0)
    assert runtime.stores.redis.llen(work_list("f")) == 3
    assert replies(runtime, "f") == []


def test_deadline_stops_taking_jobs_and_taken_ones_are_answered(runtime, connected):
    def perform(runtime, job, credentials, deadline):
        time.sleep(0.75)
        return read_one(runtime, job, credentials, deadline)

    put_work(runtime, "f", busy_jobs(connected(), 20))
    run_drain(runtime, "f", perform, seconds=1.0)
    answers = len(replies(runtime, "f"))
    assert 4 <= answers <= 12
    # A few more were taken from the list and not begun.
    assert 20 - MAX_CHUNK <= answers + runtime.stores.redis.llen(work_list("f")) <= 20


def test_a_step_that_finds_no_thread_before_its_deadline_takes_no_job(runtime, connected):
    gate = threading.Event()
    for _ in range(5):
        runtime.pool.submit(lambda: gate.wait(30))
    put_work(runtime, "f", busy_jobs(connected(), 2))
    request = FanoutRequest("f", time.monotonic() + 0.1)
    steps.run(runtime, request, read_one, 2)
    time.sleep(0.2)
    gate.set()
    assert all_places_free(runtime)
    assert runtime.stores.redis.llen(work_list("f")) == 2
    run_drain(runtime, "f", read_one)
    assert len(replies(runtime, "f")) == 2


def test_small_request_is_served_during_a_large_one(runtime, connected):
    gate, running = threading.Event(), threading.Semaphore(0)

    def hang(runtime, job, credentials, deadline):
        running.release()
        gate.wait(30)
        return read_one(runtime, job, credentials, deadline)

    connection = connected()
    put_work(runtime, "large", busy_jobs(connection, 40))
    put_work(runtime, "small", busy_jobs(connection, 3))
    args, limits = (runtime, "large", hang), {"seconds": 60, "share": 4}
    large = threading.Thread(target=run_drain, args=args, kwargs=limits)
    large.start()
    for _ in range(4):
        assert running.acquire(timeout=30)
    run_drain(runtime, "small", read_one, seconds=30)
    assert len(replies(runtime, "small")) == 3
    assert replies(runtime, "large") == []
    gate.set()
    large.join()
    assert len(replies(runtime, "large")) == 40


def test_a_job_that_cannot_be_understood_fails_alone(runtime, connected, caplog):
    put_work(runtime, "f", busy_jobs(connected(), 3))
    redis = runtime.stores.redis
    # One job as a web server of another version might encode it, and one that is invalid.
    other = msgspec.msgpack.encode([3, {"type": "ReadMoods", "connection": "c"}])
    redis.lpush(work_list("f"), other, b"foreign")
    run_drain(runtime, "f", read_one)
    assert [(number, reply.failed) for number, reply in replies(runtime, "f")] == [
        (0, None),
        (1, None),
        (2, None),
        (3, BROKEN),
    ]
    assert caplog.text.count("a job cannot be decoded") == 2
    assert all_places_free(runtime)


def test_jobs_that_cannot_be_decoded_do_not_end_the_steps(runtime, connected):
    def perform(runtime, job, credentials, deadline):
        runtime.stores.redis.rpush(work_list("f"), b"foreign")
        return read_one(runtime, job, credentials, deadline)

    put_work(runtime, "f", busy_jobs(connected(), 20))
    run_drain(runtime, "f", perform)
    assert [reply.failed for _, reply in replies(runtime, "f")] == [None] * 20


def test_a_cache_key_of_another_type_costs_no_reply(runtime, connected, caplog):
    connection = connected()
    runtime.stores.redis.set(f"busy-of:{connection}", "foreign")
    put_work(runtime, "f", busy_jobs(connection, 40))
    run_drain(runtime, "f", read_one)
    assert len(replies(runtime, "f")) == 40
    assert "WRONGTYPE" in caplog.text


@pytest.fixture
def mortal(environment, tmp_path) -> tuple[Settings, subprocess.Popen[bytes]]:
    """An installation whose Redis the test can stop."""
    settings = settings_of(environment | {"ALMANAC_DATA_DIR": str(tmp_path)})
    redis = start_redis(settings)
    yield settings, redis
    redis.kill()
    redis.wait()


def test_when_redis_dies_the_steps_end_and_keep_no_thread(mortal, runtime, connected, caplog):
    settings, redis = mortal
    connection = connected()
    there = Runtime(settings)
    there.stores.__dict__["database"] = runtime.stores.database
    there.stores.__dict__["keyring"] = runtime.stores.keyring
    there.__dict__["pool"] = StepPool(4, there.stores)

    def perform(runtime, job, credentials, deadline):
        redis.kill()
        redis.wait()
        return read_one(runtime, job, credentials, deadline)

    put_work(there, "f", busy_jobs(connection, 1))
    started = [steps.run(there, FanoutRequest("f", time.monotonic() + 5), perform, 4)]
    until(lambda: "results of jobs could not be reported" in caplog.text)
    started.append(steps.run(there, FanoutRequest("f", time.monotonic() + 5), perform, 4))
    until(lambda: not any(each.busy for each in started))
    assert all_places_free(there)
    there.pool.close()


def test_job_paused_beyond_the_deadline_is_answered_at_once(runtime, connected):
    connection = connected()
    runtime.stores.provider_limits.throttled(Circuit("google", Access.READS), connection, 60.0, named=True)
    put_work(runtime, "f", busy_jobs(connection, 3))
    began = time.monotonic()
    run_drain(runtime, "f", read_one, seconds=40.0)
    answers = [reply.failed for _, reply in replies(runtime, "f")]
    assert [each.reason for each in answers] == [Reason.RATE_LIMITED] * 3
    assert all(50 < each.retry_after <= 60 for each in answers)
    # The drain waited neither for the deadline nor for the end of the pause.
    assert time.monotonic() - began < 30


def test_a_throttled_job_whose_mailbox_is_in_use_too_is_reported_as_throttled(runtime, connected):
    connection = connected(provider="microsoft")
    limits, reads = runtime.stores.provider_limits, Circuit("microsoft", Access.READS)
    mailbox = f"{connection}@example.com"
    others = [AcquireRequest(reads, "other", 1, mailbox, f"other:{number}") for number in range(4)]
    assert not any(each.wait for each in limits.acquire(others, left=5.0, lease_seconds=60.0))
    # The job looks for a permit before the pause has ended.
    limits.throttled(reads, connection, 1.5, named=True)
    put_work(runtime, "f", busy_jobs(connection, 1))

    run_drain(runtime, "f", read_one, seconds=3.0)

    ((_, reply),) = replies(runtime, "f")
    assert reply.failed.reason is Reason.RATE_LIMITED


def test_a_job_pays_once_for_a_permit_that_it_waits_for(runtime, connected, monkeypatch):
    # Five calls at once, then one every fifth of a second.
    few = CallLimit(10, 1.0)
    limits = ProviderLimits(runtime.stores.redis, {"google": few}, {"google": few}, BreakerLimits(0, 0, 1.0))
    monkeypatch.setattr(runtime.stores, "provider_limits", limits)
    put_work(runtime, "f", busy_jobs(connected(), 7))

    run_drain(runtime, "f", read_one, seconds=8.0)

    assert all(reply.whole() for _, reply in replies(runtime, "f"))


def test_taken_jobs_that_have_not_begun_at_the_deadline_leave_their_locks(
    runtime, connected, flights, monkeypatch
):
    """Other requests, which have more time, then need not wait until the locks expire."""
    redis = runtime.stores.redis
    put_work(runtime, "f", busy_jobs(connected(), 12))
    release, begun = threading.Event(), []

    def hang(runtime, job, credentials, deadline):
        begun.append(job)
        # With the first chunk the length of the list is known; the next ones are larger.
        assert len(begun) <= 2 or release.wait(60)
        return read_one(runtime, job, credentials, deadline)

    monkeypatch.setattr(runtime.stores.single_flight, "renew", lambda _: None)
    terms = flights.terms(now(), now(), None)
    request = FanoutRequest("f", time.monotonic() + 1.5, terms)
    hung = Steps(runtime, request, hang)
    # Eight steps share four threads and a spare one.
    hung.start(8)
    try:
        until(lambda: len(begun) >= 5)
        held = redis.keys("read-lock:*")
        assert len(held) >= 3
        until(lambda: not request.seconds_left)
        for each in held:
            # It does not end by itself.
            redis.persist(each)
    finally:
        release.set()
    until(lambda: not redis.keys("read-lock:*"))
    assert all_places_free(runtime)


def test_a_job_that_is_resumed_after_the_deadline_leaves_its_lock(runtime, connected, flights, monkeypatch):
    """It waited for a permit, and then for a thread."""
    redis, connection, gate = runtime.stores.redis, connected(), threading.Event()
    runtime.stores.provider_limits.throttled(Circuit("google", Access.READS), connection, 1.0, named=True)
    monkeypatch.setattr(runtime.stores.single_flight, "renew", lambda _: None)
    put_work(runtime, "f", busy_jobs(connection, 1))
    request = FanoutRequest("f", time.monotonic() + 2.0, flights.terms(now(), now(), None))
    Steps(runtime, request, read_one).start(1)
    (lock,) = until(lambda: redis.keys("read-lock:*"))
    for _ in range(20):
        runtime.pool.submit(lambda: gate.wait(30))
    until(lambda: not request.seconds_left)
    # It does not end by itself.
    redis.persist(lock)
    gate.set()
    until(lambda: not redis.exists(lock))


def test_a_read_that_continues_past_its_deadline_keeps_its_lease(runtime, connected):
    """Else a mailbox would have more calls at once than it accepts."""
    redis, gate = runtime.stores.redis, threading.Event()

    def hang(runtime, job, credentials, deadline):
        gate.wait(30)
        return read_one(runtime, job, credentials, deadline)

    put_work(runtime, "f", busy_jobs(connected(provider="microsoft"), 1))
    Steps(runtime, FanoutRequest("f", time.monotonic() + 1.0), hang).start(1)
    # It is reported to have timed out.
    until(lambda: redis.llen(reply_list("f")))
    (leases,) = redis.keys("throttle:mailbox:*")
    assert redis.zcount(leases, now(), "+inf") == 1
    gate.set()
    until(lambda: not redis.exists(leases))


@pytest.mark.parametrize("tenants", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_reads_of_tenants_that_hang_leave_threads_to_others(apart, runtime, connected, tenants):
    """The last tenant sends its reads when the others have used up their shares."""
    gate, there = threading.Event(), Runtime(apart)
    there.__dict__["pool"] = StepPool(16, there.stores)

    def hang(runtime, job, credentials, deadline):
        gate.wait(30)
        return read_one(runtime, job, credentials, deadline)

    def run_as(tenant, fanout, perform):
        shares.current.set(tenant)
        steps.run(there, FanoutRequest(fanout, time.monotonic() + 60), perform, 32)

    used = 0
    for tenant in range(1, tenants + 1):
        put_work(there, f"hostile {tenant}", [job for _ in range(32) for job in busy_jobs(connected(), 1)])
        args = run_as, tenant, f"hostile {tenant}", hang
        threading.Thread(target=copy_context().run, args=args).start()
        until(lambda used=used: there.pool.used > used)
        time.sleep(0.2)
        used = there.pool.used
    put_work(there, "other", busy_jobs(connected(), 3))

    copy_context().run(run_as, 100, "other", read_one)

    until(lambda: len(replies(there, "other")) == 3)
    gate.set()
    for tenant in range(1, tenants + 1):
        until(lambda tenant=tenant: len(replies(there, f"hostile {tenant}")) == 32)
    assert all_places_free(there)
    there.pool.close()
    there.stores.close()


def test_the_last_thread_is_for_a_tenant_that_has_none(runtime):
    gate, served, pool = threading.Event(), threading.Event(), runtime.pool
    for tenant, hanging in ((1, 3), (2, 10)):
        for _ in range(hanging):
            pool.submit(lambda: gate.wait(30), tenant)
    assert pool.used == 5
    pool.submit(served.set, 3)
    assert served.wait(10)
    gate.set()
    assert all_places_free(runtime)


def test_tasks_that_wait_leave_threads_of_celery_to_others(runtime):
    gate, pool = threading.Event(), runtime.pool
    tenants = [1] * (MAX_WAITING_TASKS + 1) + [2] * (MAX_WAITING_IN_ALL - MAX_WAITING_TASKS + 1)
    for tenant in set(tenants):
        for _ in range(20):
            pool.submit(lambda: gate.wait(30), tenant)
    tasks = [threading.Thread(target=pool.wait_for_room, args=(60.0, each)) for each in tenants]
    for each in tasks:
        each.start()
    until(lambda: sum(each.is_alive() for each in tasks) == MAX_WAITING_IN_ALL)
    time.sleep(0.2)
    waits = [each.is_alive() for each in tasks]
    gate.set()
    for each in tasks:
        each.join(30)
    assert sum(waits[: MAX_WAITING_TASKS + 1]) == MAX_WAITING_TASKS
    assert sum(waits) == MAX_WAITING_IN_ALL


def test_a_task_waits_while_more_steps_queue_than_there_are_threads(runtime, connected):
    gate = threading.Event()

    def hang(runtime, job, credentials, deadline):
        gate.wait(30)
        return read_one(runtime, job, credentials, deadline)

    put_work(runtime, "f", busy_jobs(connected(), 40))
    ended = threading.Event()

    def task():
        steps.run(runtime, FanoutRequest("f", time.monotonic() + 30), hang, 32)
        ended.set()

    running = threading.Thread(target=task)
    running.start()
    until(lambda: runtime.pool.used == 5)
    assert not ended.wait(0.3)
    gate.set()
    # Steps submit themselves again until no job is left.
    assert ended.wait(30)
    running.join()
    until(lambda: len(replies(runtime, "f")) == 40)


def test_a_task_does_not_wait_for_its_reads(runtime, connected):
    gate = threading.Event()

    def hang(runtime, job, credentials, deadline):
        gate.wait(30)
        return read_one(runtime, job, credentials, deadline)

    put_work(runtime, "f", busy_jobs(connected(), 4))
    began = time.monotonic()
    steps.run(runtime, FanoutRequest("f", began + 30), hang, 4)
    assert time.monotonic() - began < 10
    assert replies(runtime, "f") == []
    gate.set()
    until(lambda: len(replies(runtime, "f")) == 4)


def test_a_worker_that_ends_performs_the_jobs_of_its_tasks(runtime, connected):
    connection = connected()
    runtime.stores.provider_limits.throttled(Circuit("google", Access.READS), connection, 0.5, named=True)

    def perform(runtime, job, credentials, deadline):
        time.sleep(0.02)
        return read_one(runtime, job, credentials, deadline)

    put_work(runtime, "f", busy_jobs(connection, 20))
    steps.run(runtime, FanoutRequest("f", time.monotonic() + 20), perform, 4)
    runtime.pool.finish(20)
    assert len(replies(runtime, "f")) == 20


def test_a_worker_takes_large_chunks_of_a_long_list_and_single_jobs_of_a_short_one(runtime, connected):
    taken, lpop = [], Pipeline.lpop

    def counted(pipe, name, count):
        taken.append(count)
        return lpop(pipe, name, count)

    put_work(runtime, "f", busy_jobs(connected(), 1_300))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pipeline, "lpop", counted)
        run_drain(runtime, "f", read_one, seconds=60, share=2)
    assert max(taken) == MAX_CHUNK
    assert taken[-1] <= 2
    assert len(replies(runtime, "f")) == 1_300


def test_the_steps_of_a_request_run_in_its_context(runtime, connected):
    seen = set()

    def perform(runtime, job, credentials, deadline):
        seen.add((shares.current.get(), request_ids.current.get()))
        return read_one(runtime, job, credentials, deadline)

    put_work(runtime, "f", busy_jobs(connected(), 20))
    tokens = shares.current.set(7), request_ids.current.set("request")
    try:
        run_drain(runtime, "f", perform)
    finally:
        shares.current.reset(tokens[0])
        request_ids.current.reset(tokens[1])
    assert seen == {(7, "request")}


def test_the_calendars_that_were_read_are_named_when_the_steps_end(runtime, connected):
    connection, used = connected(), []
    put_work(runtime, "f", busy_jobs(connection, 10))
    request = FanoutRequest("f", time.monotonic() + 20)
    steps.run(runtime, request, read_one, 4, used.extend)
    until(lambda: len(used) == 10)
    assert set(used) == {("google", CalendarKey(connection, f"calendar-{n}")) for n in range(10)}


def test_the_calendars_whose_changes_were_read_are_named_too(runtime, connected):
    """A program that reads only the changes of a calendar is notified of them."""
    connection, used = connected(), []

    def perform(runtime, job, credentials, deadline):
        if job.calendar == "gone":
            return Reply(failed=Failed(Reason.NOT_FOUND, "gone"))
        return Reply(changes=ChangePage((), (), "token"))

    put_work(runtime, "f", [ReadChanges(connection, each, 0, DAY) for each in ("primary", "gone")])
    steps.run(runtime, FanoutRequest("f", time.monotonic() + 20), perform, 4, used.extend)
    until(lambda: len(replies(runtime, "f")) == 2)
    until(lambda: used)
    assert used == [("google", CalendarKey(connection, "primary"))]

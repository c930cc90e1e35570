"""The web tier's side of a fan-out: one reply for each job, in order, by one deadline."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from kombu.exceptions import OperationalError

from app.services import EXTENSION
from providers.base import Failed, Read
from providers.errors import Reason
from providers.scopes import Operation
from tests.app.days import DAY, PROVIDERS, meeting
from tests.conftest import settings_of
from tests.workers.conftest import busy_jobs, period_end, read_one
from workers.celery_app import create_celery
from workers.egress import KNOWN_SECONDS, PROBE_SECONDS
from workers.failures import BROKEN, TIMED_OUT
from workers.fanout import steps
from workers.fanout.client import RESEND_SECONDS, Fanout
from workers.fanout.codec import pack_job, pack_reply, work_list
from workers.jobs import ListCalendars, Reply
from workers.queues import DRAIN, Queue


def in_seconds(seconds):
    return time.monotonic() + seconds


def test_replies_come_in_the_order_of_the_jobs(fanout, serve, connected):
    def perform(runtime, job, credentials, deadline):
        # The first jobs take longest.
        time.sleep(0.05 / period_end(job.calendars[0]))
        return read_one(runtime, job, credentials, deadline)

    serve(perform, tasks=2)
    replies = fanout.gather(busy_jobs(connected(), 100), queue=Queue.READS, deadline=in_seconds(10))
    found = [outcome.busy.pairs() for reply in replies for outcome in reply.outcomes.values()]
    assert found == [[(0, n + 1)] for n in range(100)]


def test_a_late_job_has_failed_and_the_others_count(fanout, serve, connected, runtime):
    release = threading.Event()

    def perform(runtime, job, credentials, deadline):
        if period_end(job.calendars[0]) == 2:
            release.wait(60)
        return read_one(runtime, job, credentials, deadline)

    serve(perform)
    began = time.monotonic()
    replies = fanout.gather(busy_jobs(connected(), 5), queue=Queue.READS, deadline=in_seconds(2))
    took = time.monotonic() - began
    release.set()
    assert 1.9 < took < 20
    late = Failed(Reason.PROVIDER_ERROR, "Google Calendar did not answer in time", Operation.FREE_BUSY)
    # The worker reports it shortly before the deadline, which can be too late on a busy machine.
    assert replies[1].failed in (late, TIMED_OUT)
    assert [reply.failed for reply in replies if reply is not replies[1]] == [None] * 4
    assert all(isinstance(o, Read) for reply in replies for o in reply.outcomes.values())
    assert "in time" in TIMED_OUT.message


def test_without_a_worker_every_job_is_late(fanout, connected, runtime):
    jobs = busy_jobs(connected(), 40)
    replies = fanout.gather(jobs, queue=Queue.READS, deadline=in_seconds(0.3))
    assert [reply.failed for reply in replies] == [TIMED_OUT] * 40
    assert not runtime.stores.redis.keys("fanout:*")


def test_a_foreign_message_on_the_list_costs_no_reply(fanout, connected, runtime, monkeypatch):
    send = fanout._send

    def send_with_foreign(request, numbers):
        send(request, numbers)
        runtime.stores.redis.rpush(request.work_list, b"foreign")

    monkeypatch.setattr(fanout, "_send", send_with_foreign)
    (reply,) = fanout.gather(busy_jobs(connected(), 1), queue=Queue.READS, deadline=in_seconds(0.3))
    assert reply.failed == TIMED_OUT


@pytest.mark.parametrize("tenths_of_a_millisecond", range(-1, 60, 2))
def test_gather_just_before_the_deadline_returns(fanout, connected, tenths_of_a_millisecond):
    began = time.monotonic()
    (reply,) = fanout.gather(
        [ListCalendars("nobody")], queue=Queue.READS, deadline=in_seconds(tenths_of_a_millisecond / 10_000)
    )
    assert (reply.failed, time.monotonic() - began < 20) == (TIMED_OUT, True)


def test_a_reply_that_cannot_be_read_has_failed_and_the_others_count(
    fanout, serve, connected, runtime, monkeypatch
):
    pack = steps.pack_body
    # As a worker of another version might pack it.
    monkeypatch.setattr(steps, "pack_body", lambda reply: b"?" if 2 in ends(reply) else pack(reply))
    serve(read_one)

    replies = fanout.gather(busy_jobs(connected(), 5), queue=Queue.READS, deadline=in_seconds(20))

    assert [reply.failed for reply in replies] == [None, BROKEN, None, None, None]


def test_of_two_replies_to_one_job_a_failure_never_replaces_a_read(fanout, connected, runtime, monkeypatch):
    failed = Reply(failed=BROKEN)
    read = read_one(runtime, *(job := busy_jobs(connected(), 2))[:1], None, 0.0)
    redis = runtime.stores.redis
    blpop = redis.blpop

    def replied(names, timeout):
        # Job 0 was sent again, and two workers have replied. The reply to job 1 comes last.
        redis.rpush(names[0], *(pack_reply(*each) for each in ((0, read), (0, failed), (1, read))))
        return blpop(names, timeout=timeout)

    monkeypatch.setattr(fanout._redis, "blpop", replied)
    replies = fanout.gather(job, queue=Queue.READS, deadline=in_seconds(5))

    assert [reply.failed for reply in replies] == [None, None]


def elsewhere(times):
    """Performs jobs like a worker that cannot reach the provider, this many times for each."""
    seen = Counter()

    def perform(runtime, job, credentials, deadline):
        seen[job.calendars] += 1
        if seen[job.calendars] <= times:
            return Reply(failed=steps.ELSEWHERE)
        return read_one(runtime, job, credentials, deadline)

    return perform


def test_a_read_of_a_worker_without_a_way_to_the_provider_is_sent_again(fanout, serve, connected):
    serve(elsewhere(1), tasks=2)
    (reply,) = fanout.gather(busy_jobs(connected(), 1), queue=Queue.READS, deadline=in_seconds(20))
    assert reply.failed is None


def test_a_job_that_is_answered_before_it_is_sent_again_stays_unsent(fanout, connected, runtime, monkeypatch):
    """Another worker had it too, and has replied."""
    jobs = busy_jobs(connected(), 2)
    read = read_one(runtime, jobs[0], None, 0.0)
    redis = runtime.stores.redis
    blpop, pops = redis.blpop, []

    def replied(names, timeout):
        pops.append(names)
        left, first, last = ((0, Reply(failed=steps.ELSEWHERE)), (0, read), (1, read))
        messages = {1: (left, first), 4: (last,)}.get(len(pops), ())
        for each in messages:
            redis.rpush(names[0], pack_reply(*each))
        return blpop(names, timeout=timeout) if messages else time.sleep(RESEND_SECONDS[0])

    monkeypatch.setattr(fanout._redis, "blpop", replied)
    replies = fanout.gather(jobs, queue=Queue.READS, deadline=in_seconds(5))

    assert [reply.failed for reply in replies] == [None, None]
    assert redis.llen(Queue.READS) == 1


def test_a_read_outlives_the_time_in_which_workers_learn_that_none_has_a_way(fanout, serve, connected):
    learnt = time.monotonic() + KNOWN_SECONDS + PROBE_SECONDS / 2

    def perform(runtime, job, credentials, deadline):
        if time.monotonic() < learnt:
            return Reply(failed=steps.ELSEWHERE)
        return read_one(runtime, job, credentials, deadline)

    serve(perform, tasks=1 + len(RESEND_SECONDS))

    (reply,) = fanout.gather(busy_jobs(connected(), 1), queue=Queue.READS, deadline=in_seconds(20))

    assert reply.failed is None


def test_a_read_that_no_worker_can_make_fails(fanout, serve, connected):
    serve(elsewhere(100), tasks=1 + len(RESEND_SECONDS))
    began = time.monotonic()
    (reply,) = fanout.gather(busy_jobs(connected(), 1), queue=Queue.READS, deadline=in_seconds(20))
    assert reply.failed == steps.ELSEWHERE
    assert time.monotonic() - began >= sum(RESEND_SECONDS)


def ends(reply):
    return [end for _, read in reply.read() for end in read.ends]


def test_nothing_to_do_sends_nothing(fanout, runtime):
    assert fanout.gather([], queue=Queue.READS, deadline=in_seconds(5)) == []
    assert runtime.stores.redis.llen(Queue.READS) == 0


@pytest.mark.parametrize(("jobs", "tasks"), [(1, 1), (16, 1), (17, 2), (1000, 2)])
def test_a_fan_out_is_a_handful_of_tasks(fanout, runtime, jobs, tasks):
    fanout.gather(busy_jobs("nobody", jobs), queue=Queue.READS, deadline=in_seconds(0.05))
    assert runtime.stores.redis.llen(Queue.READS) == tasks


def test_nothing_is_left_when_all_is_answered(fanout, serve, connected, runtime):
    serve(read_one)
    fanout.gather(busy_jobs(connected(), 20), queue=Queue.READS, deadline=in_seconds(5))
    assert not runtime.stores.redis.keys("fanout:*")


def test_a_message_holds_an_id_a_moment_and_a_number_and_nothing_else(fanout, serve, connected):
    (thread,) = serve(read_one)
    fanout.gather(busy_jobs(connected(), 1), queue=Queue.READS, deadline=in_seconds(5))
    arguments, named, _ = thread.message.payload
    assert arguments == []
    assert set(named) == {"fanout", "deadline", "most"}
    assert thread.message.headers["task"] == DRAIN[Queue.READS]
    assert thread.message.headers["expires"] is not None


def test_fan_outs_at_once_do_not_mix(fanout, serve, connected):
    serve(read_one, tasks=6)
    connection = connected()

    def gather(count):
        replies = fanout.gather(busy_jobs(connection, count), queue=Queue.READS, deadline=in_seconds(10))
        return [name for reply in replies for name in reply.outcomes]

    with ThreadPoolExecutor(6) as threads:
        for count, found in zip(range(5, 11), threads.map(gather, range(5, 11)), strict=True):
            assert found == [f"calendar-{n}" for n in range(count)]


@pytest.mark.parametrize(
    "broker", ["redis+socket:///nowhere/no.sock", "redis://127.0.0.1:1", "amqp://guest:guest@127.0.0.1:1"]
)
def test_a_broker_that_is_down_is_an_error_at_once(environment, runtime, broker):
    celery = create_celery(settings_of(environment | {"ALMANAC_BROKER_URL": broker}))
    fanout = Fanout(celery, runtime.stores.redis, runtime.stores.single_flight, tasks=2)
    began = time.monotonic()
    with pytest.raises(OperationalError):
        fanout.gather([ListCalendars("nobody")], queue=Queue.READS, deadline=in_seconds(30))
    assert time.monotonic() - began < 3
    assert not runtime.stores.redis.keys("fanout:*")
    celery.close()


@pytest.mark.usefixtures("worker")
def test_a_task_that_has_expired_is_dropped_by_the_worker(app, stores):
    services = app.extensions[EXTENSION]
    stores.redis.rpush(work_list("expired"), pack_job(0, ListCalendars("nobody")))
    services.celery.send_task(
        DRAIN[Queue.READS],
        kwargs={"fanout": "expired", "deadline": time.time() + 60},
        queue=Queue.READS,
        expires=datetime.now(UTC) - timedelta(seconds=1),
    )
    # A later job has been answered, so the worker has read the queue past the expired task.
    (reply,) = services.fanout.gather([ListCalendars("nobody")], queue=Queue.READS, deadline=in_seconds(5))
    assert reply.failed is not TIMED_OUT
    assert stores.redis.llen(work_list("expired")) == 1
    stores.redis.delete(work_list("expired"))


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_no_token_is_in_redis_while_a_fan_out_runs(api, sandbox, new_user, stores):
    events = [meeting("09:00", "10:00")]
    accounts = [sandbox.account(name, f"ada@{name}.example", events=events) for name in PROVIDERS]
    user = new_user(*accounts)
    sandbox.fault(latency_ms=800)
    planted = [token for each in accounts for token in (each.access_token, each.refresh_token)]
    asking = threading.Thread(target=api.get, args=(f"/users/{user}/calendar/busy",), kwargs=DAY)
    asking.start()
    dumps = []
    while asking.is_alive():
        dumps.append(everything_in(stores.redis))
        time.sleep(0.02)
    dumps.append(everything_in(stores.redis))
    # The fan-out and its cache entries were seen.
    assert any("fanout:" in dump or "reads" in dump for dump in dumps)
    assert "busy:" in dumps[-1]
    assert not [token for token in planted for dump in dumps if token in dump]


def everything_in(redis):
    """Every key with its value, as text."""
    read = {
        b"string": redis.get,
        b"list": lambda key: redis.lrange(key, 0, -1),
        b"set": redis.smembers,
        b"hash": redis.hgetall,
        b"zset": lambda key: redis.zrange(key, 0, -1),
        b"none": lambda key: None,
    }
    # A message is base64 inside JSON.
    return "\n".join(f"{key} {unwrapped(read[redis.type(key)](key))}" for key in redis.keys("*"))


def unwrapped(value):
    texts = []
    for each in value if isinstance(value, list) else [value]:
        texts.append(repr(each))
        try:
            texts.append(base64.b64decode(json.loads(each)["body"]).decode())
        except (ValueError, TypeError, KeyError):
            continue
    return " ".join(texts)


@pytest.mark.slow
def test_waiting_for_a_write_does_not_poll_redis_all_the_time(fanout, connected, runtime):
    before = runtime.stores.redis.info("commandstats").get("cmdstat_blpop", {"calls": 0})["calls"]
    fanout.gather(busy_jobs(connected(), 1), queue=Queue.WRITES, deadline=in_seconds(3))
    asked = runtime.stores.redis.info("commandstats")["cmdstat_blpop"]["calls"] - before
    assert asked <= 6

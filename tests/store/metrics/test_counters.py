"""Counters over time: sums over all processes, by interval, and their retention."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest
from redis import Redis
from redis.exceptions import RedisError

from store.config import embedded_redis
from store.metrics import counters
from store.metrics.counters import (
    COARSE,
    DAY,
    FINE,
    GROUPS,
    HOUR,
    MAX_WAITING,
    MINUTE,
    STATUSES,
    Cache,
    Counters,
    Counts,
    together,
)


@pytest.fixture
def socket(tmp_path):
    return tmp_path / "redis.sock"


@pytest.fixture
def server(tmp_path, socket):
    """Starts a Redis of the test's own, again when it was stopped; a function that stops it."""
    running = []

    def start():
        running.append(embedded_redis.start(tmp_path, socket))

    def stop():
        running[-1].terminate()
        running.pop().wait(timeout=30)

    start()
    yield start, stop
    if running:
        stop()


@pytest.fixture
def redis(server, socket):
    with Redis(unix_socket_path=str(socket)) as redis:
        yield redis


@pytest.fixture
def activity(redis):
    return Counters(redis)


@pytest.fixture
def now():
    return time.time_ns() // 1_000_000


def total(activity, since, until) -> Counts:
    return together(point.counts for point in activity.points(since, until))


def test_what_is_counted_is_read_by_what_it_was(activity, now):
    activity.request("busy", "2xx", 0.0012)
    activity.request("busy", "2xx", 0.0013)
    activity.request("busy", "5xx", 3.0)
    activity.request("users", "4xx", 0.0004)
    activity.cache(hits=3, stale=0, misses=1)
    activity.cache(hits=1, stale=2, misses=0)
    activity.read("google", 0.15)
    activity.write("google", 0.3)
    activity.read("microsoft", 60.0)
    activity.failure("microsoft", "providerError")
    activity.flush(now=now)

    found = total(activity, now - HOUR, now + 1)

    assert found.requests().total == 4
    assert found.requests("busy").total == 3
    assert found.requests("busy", "2xx").total == 2
    assert found.requests(status="4xx").total == 1
    assert found.requests("busy", "2xx").percentile(50) == 1.5
    assert found.requests("events").total == 0
    assert found.cache == Cache(hits=4, stale=2, misses=1)
    assert found.cache.wanted == 7
    assert (found.reads().total, found.reads("google").total, found.writes("google").total) == (2, 1, 1)
    assert found.reads("microsoft").percentile(99) == 10_000
    assert found.writes("microsoft").total == 0
    assert found.failures() == found.failures("microsoft") == {"providerError": 1}
    assert found.failures("google") == {}


def test_every_group_and_status_is_kept_apart(activity, now):
    for group in GROUPS:
        for status in STATUSES:
            activity.request(group, status, 0.01)
    activity.flush(now=now)

    found = total(activity, now, now + 1)

    assert {found.requests(group, status).total for group in GROUPS for status in STATUSES} == {1}


def test_stretches_follow_each_other_and_empty_ones_are_there(activity, now):
    middle = FINE.begin(now) - 10 * MINUTE
    activity.request("busy", "2xx", 0.001)
    activity.flush(now=middle)

    points = activity.points(middle - 5 * MINUTE, middle + 10 * MINUTE)

    starts = [middle - 5 * MINUTE, middle, middle + 5 * MINUTE]
    assert [(point.start, point.end) for point in points] == [(each, each + 5 * MINUTE) for each in starts]
    assert [point.counts.requests().total for point in points] == [0, 1, 0]
    assert points[0].counts == Counts()


def test_edges_inside_a_stretch_take_the_whole_of_it(activity, now):
    begin = FINE.begin(now) - HOUR

    assert [point.start for point in activity.points(begin + 1, begin + 5 * MINUTE + 1)] == [
        begin,
        begin + 5 * MINUTE,
    ]
    assert [point.start for point in activity.points(begin, begin + 5 * MINUTE)] == [begin]
    assert activity.points(begin, begin) == []


def test_points_of_more_than_two_days_are_hourly(activity, now):
    activity.request("busy", "2xx", 0.001)
    activity.flush(now=now - 3 * DAY)
    activity.request("busy", "2xx", 0.001)
    activity.flush(now=now - HOUR)

    points = activity.points(now - 4 * DAY, now)

    assert {point.end - point.start for point in points} == {HOUR}
    assert len(points) in (96, 97)
    assert [point.counts.requests().total for point in points if point.counts.requests().total] == [1, 1]


def test_each_kind_of_stretch_ends_by_itself(activity, redis, now):
    activity.request("busy", "2xx", 0.001)
    activity.flush(now=now)

    left = {key.decode(): redis.pttl(key) for key in redis.scan_iter("activity:*")}

    assert set(left) == {FINE.key(now), COARSE.key(now)}
    assert left[FINE.key(now)] == pytest.approx(2 * DAY, abs=MINUTE)
    assert left[COARSE.key(now)] == pytest.approx(30 * DAY, abs=MINUTE)


COUNTING = """
import sys
from redis import Redis
from store.metrics.counters import Counters
from store.metrics.flusher import Flusher

activity = Counters(Redis(unix_socket_path=sys.argv[1]))
Flusher([activity.flush], seconds=3600).start()
for _ in range(1000):
    activity.request("busy", "2xx", 0.001)
"""


@pytest.mark.slow
def test_counts_of_several_processes_are_summed(activity, socket, now):
    commands = [[sys.executable, "-c", COUNTING, str(socket)] for _ in range(2)]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    activity.request("busy", "2xx", 0.001)
    activity.flush()

    assert total(activity, now - HOUR, now + HOUR).requests().total == 2001


def test_threads_lose_nothing_while_it_is_flushed(activity, now):
    def count():
        for _ in range(5000):
            activity.request("busy", "2xx", 0.001)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        activity.flush(now=now)
    activity.flush(now=now)

    assert total(activity, now, now + 1).requests().total == 20_000


@pytest.mark.long
def test_what_redis_cannot_take_waits_until_it_is_back(activity, server, now, caplog):
    start, stop = server
    activity.request("busy", "2xx", 0.001)
    stop()
    activity.flush(now=now - 10 * MINUTE)
    activity.request("busy", "2xx", 0.001)
    activity.flush(now=now)
    assert "kept for the next flush" in caplog.text
    with pytest.raises(RedisError):
        activity.points(now - HOUR, now)

    start()
    activity.flush(now=now)
    activity.flush(now=now)

    # Each in the stretch in which it was counted.
    points = activity.points(FINE.begin(now) - 10 * MINUTE, now + 1)
    assert [point.counts.requests().total for point in points] == [1, 0, 1]


@pytest.mark.long
def test_what_waits_for_too_long_is_lost_the_oldest_first(activity, server, now, caplog):
    start, stop = server
    stop()
    for stretches_ago in range(MAX_WAITING + 2, 0, -1):
        activity.request("busy", "2xx", 0.001)
        activity.flush(now=now - stretches_ago * FINE.length)
    assert "oldest counters dropped" in caplog.text
    start()
    activity.flush(now=now)

    points = activity.points(FINE.begin(now) - (MAX_WAITING + 2) * FINE.length, FINE.begin(now))
    assert [point.counts.requests().total for point in points] == [0, 0, *[1] * MAX_WAITING]


def test_what_another_version_counted_is_passed_over(activity, redis, now):
    redis.hset(FINE.key(now), mapping={"moods:good": 1, "cache:lukewarm": 1, "requests:busy": 1})
    activity.cache(hits=1, stale=0, misses=0)
    activity.flush(now=now)

    assert total(activity, now, now + 1) == Counts(cache=Cache(hits=1))


def test_totals_have_all_that_was_ever_counted_and_never_end(activity, redis, now):
    activity.request("busy", "2xx", 0.25)
    activity.flush(now=now - 40 * DAY)
    activity.request("busy", "2xx", 0.5)
    activity.read("google", 0.125)
    activity.write("microsoft", 1.5)
    activity.failure("google", "notFound")
    activity.cache(hits=2, stale=0, misses=1)
    activity.jobs("asked", 3)
    activity.jobs("late", 0)
    activity.flush(now=now)

    found = counters.read(redis)

    assert found.counts.requests("busy", "2xx").total == 2
    assert found.counts.cache == Cache(hits=2, misses=1)
    assert found.counts.failures("google") == {"notFound": 1}
    assert found.seconds == pytest.approx(
        {("requests", "busy", "2xx"): 0.75, ("reads", "google"): 0.125, ("writes", "microsoft"): 1.5}
    )
    assert found.jobs == {"asked": 3}
    assert redis.ttl(counters.KEY) == -1


def test_only_the_totals_have_durations_and_jobs(activity, redis, now):
    """Intervals are kept for weeks, and no page shows their durations and jobs."""
    activity.read("google", 0.4)
    activity.jobs("asked", 3)
    activity.flush(now=now)

    stored = {name.split(b":")[0] for each in (FINE, COARSE) for name in redis.hkeys(each.key(now))}
    assert stored == {b"reads"}


@pytest.mark.slow
def test_totals_that_redis_could_not_take_come_later(activity, redis, server, now):
    start, stop = server
    activity.read("google", 0.1)
    stop()
    activity.flush(now=now)
    start()
    activity.flush(now=now)
    activity.flush(now=now)

    assert counters.read(redis).counts.reads("google").total == 1


def test_totals_of_a_new_redis_are_none(redis):
    assert counters.read(redis) == counters.Totals()

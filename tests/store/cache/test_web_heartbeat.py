"""Gaps in which no web process could take notifications, by the heartbeats of the processes."""

from __future__ import annotations

import time

import pytest

from store.cache.busy_cache import GAP_KEY
from store.cache.web_heartbeat import GAP, START_GAP, WEB, WebHeartbeat
from store.lua import ScriptRedis
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def redis(settings):
    """A database without the heartbeats of web servers that other tests have started."""
    with ScriptRedis.from_url(settings.redis_url, db=5) as found:
        found.delete(WEB, GAP_KEY)
        yield found


@pytest.fixture
def processes(redis):
    """Two heartbeats, as of two web processes."""
    started = [WebHeartbeat(redis), WebHeartbeat(redis)]
    yield started
    for each in started:
        each.stop()


def test_the_first_heartbeat_ends_a_gap_and_later_ones_do_not(redis, processes):
    one, other = processes
    one.start()
    first = redis.get(GAP_KEY)
    assert abs(int(first) / 1000 - time.time()) < 10
    other.start()
    time.sleep(GAP + 0.5)
    other.stop()
    # One of two processes that is missing is no gap.
    time.sleep(GAP + 0.5)
    assert redis.get(GAP_KEY) == first


def test_a_heartbeat_after_none_for_two_seconds_ends_a_gap(redis, processes):
    one, other = processes
    one.start()
    first = int(redis.get(GAP_KEY))
    one.stop()
    time.sleep(2)
    other.start()
    assert int(redis.get(GAP_KEY)) >= first + 2000


def test_a_process_that_starts_when_no_other_has_sent_one_for_a_second_ends_a_gap(redis, processes):
    one, other = processes
    one.start()
    first = redis.get(GAP_KEY)
    one.stop()
    time.sleep(START_GAP + 0.2)
    other.start()
    assert redis.get(GAP_KEY) != first


def test_redis_that_lost_the_record_counts_as_a_gap(redis, processes):
    one, _ = processes
    one.start()
    redis.delete(WEB, GAP_KEY)
    until(lambda: redis.get(GAP_KEY))


def test_a_request_of_a_process_that_was_paused_sends_the_heartbeat(redis, processes, monkeypatch):
    one, _ = processes
    one.start()
    assert not one.is_late
    redis.delete(GAP_KEY)
    later = time.monotonic() + 60
    monkeypatch.setattr("store.cache.web_heartbeat.time.monotonic", lambda: later)
    assert one.is_late
    redis.set(WEB, int(redis.get(WEB)) - 60_000)
    one.catch_up()
    assert redis.get(GAP_KEY)
    assert not one.is_late


def test_a_process_that_serves_no_requests_is_never_late(redis):
    assert not WebHeartbeat(redis).is_late

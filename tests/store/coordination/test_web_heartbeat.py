"""Gaps in which no web process could take notifications, by the heartbeats of the processes."""

from __future__ import annotations

import time

import pytest

from store.cache.busy_buckets import GAP_KEY
from store.coordination.web_heartbeat import GAP, WEB, WebHeartbeat
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def processes(stores):
    """Two heartbeats, as of two web processes."""
    stores.redis.delete(WEB, GAP_KEY)
    started = [WebHeartbeat(stores.redis), WebHeartbeat(stores.redis)]
    yield started
    for each in started:
        each.stop()


def test_the_first_heartbeat_ends_a_gap_and_later_ones_do_not(stores, processes):
    one, other = processes
    one.start()
    first = stores.redis.get(GAP_KEY)
    assert abs(int(first) / 1000 - time.time()) < 10
    other.start()
    time.sleep(GAP + 0.5)
    other.stop()
    # One of two processes that is missing is no gap.
    time.sleep(GAP + 0.5)
    assert stores.redis.get(GAP_KEY) == first


def test_a_heartbeat_after_none_for_two_seconds_ends_a_gap(stores, processes):
    one, other = processes
    one.start()
    first = int(stores.redis.get(GAP_KEY))
    one.stop()
    time.sleep(2)
    other.start()
    assert int(stores.redis.get(GAP_KEY)) >= first + 2000


def test_redis_that_lost_the_record_counts_as_a_gap(stores, processes):
    one, _ = processes
    one.start()
    stores.redis.delete(WEB, GAP_KEY)
    until(lambda: stores.redis.get(GAP_KEY))


def test_a_request_of_a_process_that_was_paused_sends_the_heartbeat(stores, processes, monkeypatch):
    one, _ = processes
    one.start()
    assert not one.is_late
    first = stores.redis.get(GAP_KEY)
    later = time.monotonic() + 60
    monkeypatch.setattr("store.coordination.web_heartbeat.time.monotonic", lambda: later)
    assert one.is_late
    stores.redis.set(WEB, int(stores.redis.get(WEB)) - 60_000)
    one.catch_up()
    assert stores.redis.get(GAP_KEY) != first
    assert not one.is_late


def test_a_process_that_serves_no_requests_is_never_late(stores):
    assert not WebHeartbeat(stores.redis).is_late

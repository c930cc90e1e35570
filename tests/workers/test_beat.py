"""Beat sends heartbeats, and continues without Redis."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from store.coordination.heartbeats import BEAT_SECONDS
from workers.beat import HeartbeatScheduler
from workers.process import SWEEP_SECONDS, create_worker


@pytest.fixture
def tick(tmp_path: Path):
    """Tick once, like a beat with these settings; returns the seconds until the next tick."""

    def tick(settings) -> float:
        with create_worker(settings) as celery:
            scheduler = HeartbeatScheduler(app=celery, schedule_filename=str(tmp_path / "schedule"))
            try:
                return scheduler.tick()
            finally:
                scheduler.close()

    return tick


def test_a_tick_is_seen_by_all(apart, runtime, tick):
    assert not runtime.stores.heartbeats.live_processes().beat_is_alive

    wait = tick(apart)

    assert runtime.stores.heartbeats.live_processes().beat_is_alive
    # Several ticks come before a heartbeat counts as old.
    assert 0 <= wait <= SWEEP_SECONDS < BEAT_SECONDS / 2


def test_a_redis_that_is_down_stops_no_tick(apart, tick):
    wait = tick(replace(apart, redis_url="redis://127.0.0.1:1/0"))

    assert 0 <= wait <= SWEEP_SECONDS

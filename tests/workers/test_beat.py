"""Beat's clock: it tells that it ticks, and goes on when nobody hears it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from store.coordination.heartbeats import BEAT_SECONDS
from workers.beat import Clock
from workers.celery_app import SWEEP_SECONDS, create_celery


@pytest.fixture
def tick(tmp_path: Path):
    """Tick once, as a beat of these settings; the seconds until the next."""

    def tick(settings) -> float:
        with create_celery(settings) as celery:
            scheduler = Clock(app=celery, schedule_filename=str(tmp_path / "schedule"))
            try:
                return scheduler.tick()
            finally:
                scheduler.close()

    return tick


def test_a_tick_is_seen_by_all(apart, runtime, tick):
    assert not runtime.stores.heartbeats.present().beats

    wait = tick(apart)

    assert runtime.stores.heartbeats.present().beats
    # It ticks several times while a tick counts as young.
    assert 0 <= wait <= SWEEP_SECONDS < BEAT_SECONDS / 2


def test_a_redis_that_is_down_stops_no_tick(apart, tick):
    wait = tick(replace(apart, redis_url="redis://127.0.0.1:1/0"))

    assert 0 <= wait <= SWEEP_SECONDS

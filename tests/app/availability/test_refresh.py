"""Which cached calendars are read again in the background."""

from __future__ import annotations

import time

import pytest

from app.availability import jobs
from app.services import services
from scheduling.intervals import Intervals
from store.cache.busy_cache import BusyRead, CalendarKey

SECOND = 1000
DAY = 86_400_000


@pytest.fixture
def lenient(new_app):
    """The web application of an installation that serves stale answers for a minute."""
    return new_app(busy_ttl_seconds=10.0, busy_stale_seconds=60.0)


def test_a_stale_calendar_is_read_again_unless_it_is_watched(lenient, unique):
    """The provider reports every change of a watched one."""
    fresh, stale, watched = (CalendarKey(unique("connection"), "primary") for _ in range(3))
    now = time.time_ns() // 1_000_000

    with lenient.app_context():
        busy, redis = services().stores.busy, services().stores.redis
        start, end = busy.hull(now, now + DAY)
        busy.watch(watched, "channel", 3600.0)
        ages = {fresh: SECOND, stale: 20 * SECOND, watched: 20 * SECOND}
        generations = busy.begin_reads([each.connection for each in ages], {})
        with redis.pipeline() as pipe:
            reads = [
                BusyRead(key, Intervals.of(()), start, end, now - age, generations[key.connection])
                for key, age in ages.items()
            ]
            busy.store(pipe, reads)
            pipe.execute()
        keys = list(ages)
        known = busy.load(keys, start, end)

        assert known.missing == {}
        assert jobs.stale_calendars(keys, known) == [keys.index(stale)]

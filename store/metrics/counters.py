"""Usage counters over time: counted in each process, summed in Redis by time interval.

Counting costs a request less than a microsecond: one number in a dictionary. Every few seconds a process adds
its numbers to three hashes in Redis: that of the current five minutes, that of the current hour, and the
totals, which never expire.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from redis import Redis
from redis.exceptions import RedisError

from store.metrics.histogram import bucket
from store.metrics.schema import (
    CACHE,
    FAILURES,
    READS,
    REQUESTS,
    WRITES,
    Counts,
    Field,
    Group,
    Status,
    name_of,
    parse,
)
from store.metrics.totals import JOBS, KEY, TOOK, JobFate

log = logging.getLogger(__name__)

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class Stretch(NamedTuple):
    """A kind of time interval; ``length`` and ``kept`` (its retention) in milliseconds."""

    name: str
    length: int
    kept: int

    def begin(self, moment: int) -> int:
        """The start of the interval that contains a moment."""
        return moment // self.length * self.length

    def key(self, moment: int) -> str:
        """The name of the hash of the interval that contains a moment."""
        return f"activity:{self.name}:{self.begin(moment)}"


FINE = Stretch("5m", 5 * MINUTE, 2 * DAY)
COARSE = Stretch("1h", HOUR, 30 * DAY)

# While Redis is down, a process keeps the counts of this many intervals of five minutes; older ones are lost.
MAX_WAITING = 12


@dataclass(frozen=True, slots=True)
class Point:
    """The counts of ``[start, end)``, in milliseconds since 1970."""

    start: int
    end: int
    counts: Counts


class Counters:
    """The counters of one process (thread-safe), and access to the sums of all processes."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._lock = threading.Lock()
        self._counted: dict[Field, int] = {}
        # One flush at a time. Counts not yet in Redis, by the start of their interval.
        self._flushing = threading.Lock()
        self._waiting: dict[int, dict[Field, int]] = {}

    def request(self, group: Group, status: Status, seconds: float) -> None:
        """Count a request that was answered."""
        self._timed(seconds, REQUESTS, group, status)

    def cache(self, *, hits: int, stale: int, misses: int) -> None:
        """Count calendars that were looked up in the busy cache."""
        for name, count in (("hits", hits), ("stale", stale), ("misses", misses)):
            if count:
                self._count((CACHE, name), count)

    def read(self, provider: str, seconds: float) -> None:
        """Count a read from a provider."""
        self._timed(seconds, READS, provider)

    def write(self, provider: str, seconds: float) -> None:
        """Count a write to a provider, successful or not."""
        self._timed(seconds, WRITES, provider)

    def failure(self, provider: str, reason: str) -> None:
        """Count a failed read or write."""
        self._count((FAILURES, provider, reason), 1)

    def jobs(self, fate: JobFate, count: int) -> None:
        """Count jobs of a fan-out: enqueued for workers, left to another request's flight, or late."""
        if count:
            self._count((JOBS, fate), count)

    def flush(self, *, now: int | None = None) -> None:
        """Add the counts to those in Redis. If Redis fails, they are kept for the next flush.

        If Redis fails after it applied them, they are counted twice rather than lost.
        """
        with self._flushing:
            self._put_by(_now() if now is None else now)
            try:
                self._give()
            except RedisError as error:
                log.warning("counters not flushed, kept for the next flush: %s", type(error).__name__)

    def points(self, since: int, until: int) -> list[Point]:
        """The counts of ``[since, until)``, in milliseconds, by whole intervals, the oldest first.

        Intervals of five minutes if those of ``since`` still exist, otherwise hours.

        :raise redis.RedisError: when Redis is down
        """
        stretch = FINE if since >= _now() - FINE.kept else COARSE
        starts = range(stretch.begin(since), until, stretch.length)
        with self._redis.pipeline(transaction=False) as pipe:
            for start in starts:
                pipe.hgetall(stretch.key(start))
            kept = pipe.execute() if starts else []
        each = zip(starts, map(parse, kept), strict=True)
        return [Point(start, start + stretch.length, counts) for start, counts in each]

    def _count(self, counted: Field, by: int) -> None:
        with self._lock:
            self._counted[counted] = self._counted.get(counted, 0) + by

    def _timed(self, seconds: float, *names: str) -> None:
        one: Field = (*names, bucket(seconds))
        took: Field = (TOOK, *names)
        with self._lock:
            counted = self._counted
            counted[one] = counted.get(one, 0) + 1
            counted[took] = counted.get(took, 0) + round(seconds * 1e6)

    def _put_by(self, now: int) -> None:
        """Move the counts to the pending counts of the current interval."""
        with self._lock:
            counted, self._counted = self._counted, {}
        if not counted:
            return
        waiting = self._waiting.setdefault(FINE.begin(now), {})
        for each, by in counted.items():
            waiting[each] = waiting.get(each, 0) + by
        if len(self._waiting) > MAX_WAITING:
            del self._waiting[min(self._waiting)]
            log.warning("oldest counters dropped: Redis was down for too long")

    def _give(self) -> None:
        if not self._waiting:
            return
        with self._redis.pipeline() as pipe:
            for key, kept, counted in self._hashes():
                for each, by in counted.items():
                    if each[0] not in (TOOK, JOBS):
                        pipe.hincrby(key, name_of(each), by)
                pipe.pexpire(key, kept)
            for counted in self._waiting.values():
                for each, by in counted.items():
                    pipe.hincrby(KEY, name_of(each), by)
            pipe.execute()
        self._waiting = {}

    def _hashes(self) -> Iterator[tuple[str, int, dict[Field, int]]]:
        """The hash, retention and counts of each pending interval."""
        for start, counted in self._waiting.items():
            for stretch in (FINE, COARSE):
                yield stretch.key(start), stretch.kept, counted


def _now() -> int:
    return time.time_ns() // 1_000_000

"""Usage counters over time: counted in each process, summed in Redis by time interval.

Counting costs a request less than a microsecond: one number in a dictionary. Every few seconds a process adds
its numbers to three hashes in Redis: that of the current five minutes, that of the current hour, and the
totals of all processes since Redis was last empty, which never expire. The totals also have the time spent,
in whole microseconds, and the jobs of fan-outs.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from typing import Literal, NamedTuple, TypeVar, cast, get_args

from redis import Redis
from redis.exceptions import RedisError

# Upper bounds in milliseconds, inclusive. Each bucket begins, exclusive, at the bound before it.
BOUNDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, inf)


def bucket(seconds: float) -> int:
    """The index in ``BOUNDS`` of a duration."""
    return bisect_left(BOUNDS, seconds * 1000)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of durations; ``buckets`` are in the order of ``BOUNDS``."""

    buckets: tuple[int, ...] = (0,) * len(BOUNDS)

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(tuple(map(sum, zip(self.buckets, other.buckets, strict=True))))

    @property
    def total(self) -> int:
        """The number of durations."""
        return sum(self.buckets)

    def percentile(self, percent: int) -> float | None:
        """The estimated percentile in milliseconds; None when the histogram is empty.

        Durations count as evenly spread within their bucket. The last bucket has no upper bound: for it the
        result is its lower bound.
        """
        rank = max(1, -(-self.total * percent // 100))
        for index, upto in enumerate(accumulate(self.buckets)):
            if upto >= rank:
                low, high = BOUNDS[index - 1] if index else 0.0, BOUNDS[index]
                within = self.buckets[index]
                return low if high == inf else low + (high - low) * (rank - upto + within) / within
        return None


Group = Literal[
    "users",
    "organizations",
    "oauth",
    "calendars",
    "events",
    "busy",
    "scheduling",
    "holds",
    "webhooks",
    "other",
]
Status = Literal["2xx", "3xx", "4xx", "5xx"]

GROUPS: tuple[Group, ...] = get_args(Group)
STATUSES: tuple[Status, ...] = get_args(Status)

# A field of the hash: the kind, its labels and, for durations, the bucket.
Field = tuple[str | int, ...]

REQUESTS, CACHE, READS, WRITES, FAILURES = "requests", "cache", "reads", "writes", "failures"

Key = TypeVar("Key")
Amount = TypeVar("Amount", int, Histogram)


@dataclass(frozen=True, slots=True)
class Cache:
    """Calendars that requests looked up: ``hits`` were fresh, ``misses`` had to be read."""

    hits: int = 0
    stale: int = 0
    misses: int = 0

    def __add__(self, other: Cache) -> Cache:
        return Cache(self.hits + other.hits, self.stale + other.stale, self.misses + other.misses)

    @property
    def wanted(self) -> int:
        """The number of calendars looked up."""
        return self.hits + self.stale + self.misses


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of some time. The methods sum over every label that is not given.

    ``answers`` is by route group and class of status; ``read``, ``written`` and ``failed`` are by provider,
    the last also by reason. Counts of zero are absent.
    """

    answers: Mapping[tuple[str, str], Histogram] = field(default_factory=dict)
    cache: Cache = Cache()
    read: Mapping[str, Histogram] = field(default_factory=dict)
    written: Mapping[str, Histogram] = field(default_factory=dict)
    failed: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            _added(self.answers, other.answers, Histogram()),
            self.cache + other.cache,
            _added(self.read, other.read, Histogram()),
            _added(self.written, other.written, Histogram()),
            _added(self.failed, other.failed, 0),
        )

    def requests(self, group: Group | None = None, status: Status | None = None) -> Histogram:
        """The requests below ``/v1``, with their time to the first byte of the answer."""
        return _sum(
            latency
            for (of_group, of_status), latency in self.answers.items()
            if group in (None, of_group) and status in (None, of_status)
        )

    def reads(self, provider: str | None = None) -> Histogram:
        """The reads from providers for requests, successful or not."""
        return _sum(each for name, each in self.read.items() if provider in (None, name))

    def writes(self, provider: str | None = None) -> Histogram:
        """The writes of events at providers, successful or not."""
        return _sum(each for name, each in self.written.items() if provider in (None, name))

    def failures(self, provider: str | None = None) -> dict[str, int]:
        """Failed reads and writes by reason; one that failed for several reasons counts for each."""
        found: dict[str, int] = {}
        for (name, reason), count in self.failed.items():
            if provider in (None, name):
                found[reason] = found.get(reason, 0) + count
        return found


def together(several: Iterable[Counts]) -> Counts:
    """The sum of several counts."""
    return sum(several, Counts())


def name_of(counted: Field) -> str:
    """The name of a field in a hash."""
    return ":".join(map(str, counted))


def parse(kept: Mapping[bytes, bytes]) -> Counts:
    """Parse a hash from Redis; unknown fields are ignored."""
    answers: dict[tuple[str, str], list[int]] = {}
    calls: dict[tuple[str, str], list[int]] = {}
    failed: dict[tuple[str, str], int] = {}
    cache: dict[str, int] = {}
    for name, count in kept.items():
        match name.decode().split(":"):
            case ["requests", group, status, index]:
                answers.setdefault((group, status), _empty())[int(index)] = int(count)
            case [("reads" | "writes") as kind, provider, index]:
                calls.setdefault((kind, provider), _empty())[int(index)] = int(count)
            case ["failures", provider, reason]:
                failed[provider, reason] = int(count)
            case ["cache", ("hits" | "stale" | "misses") as found]:
                cache[found] = int(count)
    return Counts(
        {each: Histogram(tuple(buckets)) for each, buckets in answers.items()},
        Cache(**cache),
        _of(READS, calls),
        _of(WRITES, calls),
        failed,
    )


def _empty() -> list[int]:
    return [0] * len(BOUNDS)


def _of(wanted: str, calls: Mapping[tuple[str, str], list[int]]) -> dict[str, Histogram]:
    return {provider: Histogram(tuple(each)) for (kind, provider), each in calls.items() if kind == wanted}


def _added(one: Mapping[Key, Amount], other: Mapping[Key, Amount], nothing: Amount) -> dict[Key, Amount]:
    return {each: one.get(each, nothing) + other.get(each, nothing) for each in {**one, **other}}


def _sum(several: Iterable[Histogram]) -> Histogram:
    return sum(several, Histogram())


KEY = "totals"

# Kinds of fields that only the totals have.
TOOK, JOBS = "took", "jobs"

# A request enqueues some of its jobs for workers ("asked"). It follows others, which another request has
# enqueued. Jobs without a result at the deadline count as late in addition.
JobFate = Literal["asked", "followed", "late"]

MICROSECOND = 1e-6


@dataclass(frozen=True, slots=True)
class Totals:
    """``seconds`` is by a kind of count and its labels. Counts of zero are absent."""

    counts: Counts = field(default_factory=Counts)
    seconds: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    jobs: Mapping[str, int] = field(default_factory=dict)


def read(redis: Redis) -> Totals:
    """The current totals, as a consistent snapshot.

    :raise redis.RedisError: when Redis is down
    """
    kept = cast(Mapping[bytes, bytes], redis.hgetall(KEY))
    seconds: dict[tuple[str, ...], float] = {}
    jobs: dict[str, int] = {}
    for name, count in kept.items():
        match name.decode().split(":"):
            case ["took", *what]:
                seconds[tuple(what)] = int(count) * MICROSECOND
            case ["jobs", fate]:
                jobs[fate] = int(count)
    return Totals(parse(kept), seconds, jobs)


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

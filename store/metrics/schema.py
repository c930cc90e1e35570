"""The schema of the usage counters, and how they are stored in a Redis hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from store.metrics.histogram import BOUNDS, Histogram

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

"""What was counted of the service over some time: its words, and how they are kept in a Redis hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from store.metrics.histogram import BOUNDS, Histogram

Group = Literal[
    "users", "organizations", "oauth", "calendars", "events", "busy", "scheduling", "webhooks", "other"
]
Status = Literal["2xx", "3xx", "4xx", "5xx"]

GROUPS: tuple[Group, ...] = get_args(Group)
STATUSES: tuple[Status, ...] = get_args(Status)

# What is counted: kind, names, and where it took time, the bucket.
Field = tuple[str | int, ...]

REQUESTS, CACHE, READS, WRITES, FAILURES = "requests", "cache", "reads", "writes", "failures"

Key = TypeVar("Key")
Amount = TypeVar("Amount", int, Histogram)


@dataclass(frozen=True, slots=True)
class Cache:
    """Calendars that requests wanted: ``hits`` were fresh, ``stale`` were old, ``misses`` had to be read."""

    hits: int = 0
    stale: int = 0
    misses: int = 0

    def __add__(self, other: Cache) -> Cache:
        return Cache(self.hits + other.hits, self.stale + other.stale, self.misses + other.misses)

    @property
    def wanted(self) -> int:
        """All of them."""
        return self.hits + self.stale + self.misses


@dataclass(frozen=True, slots=True)
class Counts:
    """What was done. The methods add up what they are not asked to tell apart.

    ``answers`` is by route group and class of status; ``read``, ``written`` and ``failed`` are by provider,
    the last also by reason. What never happened is absent.
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
        """The requests below ``/v1``, and how long they took until their answers began."""
        return _sum(
            latency
            for (of_group, of_status), latency in self.answers.items()
            if group in (None, of_group) and status in (None, of_status)
        )

    def reads(self, provider: str | None = None) -> Histogram:
        """The reads from providers for requests, whatever came of them."""
        return _sum(each for name, each in self.read.items() if provider in (None, name))

    def writes(self, provider: str | None = None) -> Histogram:
        """The changes of events at providers, whatever came of them."""
        return _sum(each for name, each in self.written.items() if provider in (None, name))

    def failures(self, provider: str | None = None) -> dict[str, int]:
        """How many reads and writes failed, by reason; one that failed in several ways counts for each."""
        found: dict[str, int] = {}
        for (name, reason), count in self.failed.items():
            if provider in (None, name):
                found[reason] = found.get(reason, 0) + count
        return found


def together(several: Iterable[Counts]) -> Counts:
    """All of them added up."""
    return sum(several, Counts())


def name_of(counted: Field) -> str:
    """A field as it stands in a hash."""
    return ":".join(map(str, counted))


def parse(kept: Mapping[bytes, bytes]) -> Counts:
    """A hash as it is kept; what we have no word for is passed over."""
    answers: dict[tuple[str, str], list[int]] = {}
    calls: dict[tuple[str, str], list[int]] = {}
    failed: dict[tuple[str, str], int] = {}
    cache: dict[str, int] = {}
    for name, count in kept.items():
        match name.decode().split(":"):
            case ["requests", group, status, place]:
                answers.setdefault((group, status), _empty())[int(place)] = int(count)
            case [("reads" | "writes") as deed, provider, place]:
                calls.setdefault((deed, provider), _empty())[int(place)] = int(count)
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
    return {provider: Histogram(tuple(each)) for (deed, provider), each in calls.items() if deed == wanted}


def _added(one: Mapping[Key, Amount], other: Mapping[Key, Amount], nothing: Amount) -> dict[Key, Amount]:
    return {each: one.get(each, nothing) + other.get(each, nothing) for each in {**one, **other}}


def _sum(several: Iterable[Histogram]) -> Histogram:
    return sum(several, Histogram())

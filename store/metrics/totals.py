"""Totals of all processes since Redis was last empty: sums that only grow.

They are in one hash that never expires. In addition to the counts that are kept by interval, it has the time
spent, in whole microseconds, and the jobs of fan-outs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from redis import Redis

from store.metrics.schema import Counts, parse

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

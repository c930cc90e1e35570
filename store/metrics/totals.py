"""What all processes have counted since Redis was new: sums that only grow.

They stand in one hash that never ends. Beside what is kept by stretches it has the time that things took, as
whole microseconds, and the jobs of fan-outs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from redis import Redis

from store.metrics.schema import Counts, parse

KEY = "totals"

# Kinds of fields that no stretch has.
TOOK, JOBS = "took", "jobs"

# Of the jobs that requests want, some they have done, others they follow: another request has them done.
# Those that have no answer at the deadline are late, besides.
JobFate = Literal["asked", "followed", "late"]
JOB_FATES: tuple[JobFate, ...] = get_args(JobFate)

MICROSECOND = 1e-6


@dataclass(frozen=True, slots=True)
class Totals:
    """``seconds`` are by what took them: a kind of count and its names. What never happened is absent."""

    counts: Counts = field(default_factory=Counts)
    seconds: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    jobs: Mapping[str, int] = field(default_factory=dict)


def read(redis: Redis) -> Totals:
    """All of them, as they were at one moment.

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

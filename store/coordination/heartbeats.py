"""Heartbeats of workers and of beat. Redis's clock makes the moments.

With its heartbeat a worker reports the providers that it cannot reach. A worker is isolated from a provider
when it cannot reach it and another worker does not report the same. When every worker reports it, the
provider is down, and the circuit breakers (``store.coordination.circuit_breaker``) are in charge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from redis import Redis

WORKERS, BEAT = "present:workers", "present:beat"
STEPPED_OUT = "present:stepped-out"
# The providers that each worker cannot reach, separated by commas. Workers of a version that does not report
# them are not in this hash, and get no jobs from other workers.
UNREACHABLE = "present:unreachable"

# Seconds without a word after which a worker counts as gone: it says one every five.
WORKER_SECONDS = 16.0
# The same for beat, which ticks at least every five, but for a broker that makes it wait.
BEAT_SECONDS = 30.0

# Seconds after which a worker that is gone is forgotten, unless nobody is there.
FORGOTTEN = 3600.0

# Seconds after which the next may step out, although the one before has not come back.
STEP_SECONDS = 60

# Seconds after which a worker is not about to come back: one that is started anew is there long before.
AWAY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class LiveProcesses:
    """The workers that are there, each with its ``(places in use, places)``; how long ago beat ticked.

    ``unreachable`` are the providers that each of them cannot reach.
    """

    workers: dict[str, tuple[int, int]]
    beat_seconds: float | None
    unreachable: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def beats(self) -> bool:
        """Whether beat's last tick is young."""
        return self.beat_seconds is not None and self.beat_seconds < BEAT_SECONDS

    def reaching(self, provider: str) -> list[str]:
        """The workers that do not report that they cannot reach a provider."""
        return [worker for worker, unreachable in self.unreachable.items() if provider not in unreachable]

    def isolated(self) -> dict[str, list[str]]:
        """The providers from which each worker is isolated; only workers that are isolated from any."""
        found = {
            worker: sorted(provider for provider in unreachable if self.reaching(provider))
            for worker, unreachable in sorted(self.unreachable.items())
        }
        return {worker: providers for worker, providers in found.items() if providers}


class Heartbeats:
    """:raise redis.RedisError: by each method, when Redis is down"""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def work(self, worker: str, *, used: int, places: int, unreachable: Collection[str] = ()) -> None:
        """A worker is there, and cannot reach these providers."""
        now = self._now()
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hset(WORKERS, worker, f"{now}:{used}:{places}")
            pipe.hset(UNREACHABLE, worker, ",".join(sorted(unreachable)))
            pipe.execute()

    def leave(self, worker: str) -> None:
        """A worker ends. When it did is kept: that somebody was there tells absence from ignorance."""
        self._redis.hset(WORKERS, worker, f"{self._now()}:0:0")

    def step_out(self, worker: str) -> bool:
        """Whether this worker may be away for a moment: one at a time, so that others are there."""
        return bool(self._redis.set(STEPPED_OUT, worker, nx=True, ex=STEP_SECONDS))

    def come_back(self, worker: str) -> None:
        """Let the next step out, if it was this one that did."""
        if self._redis.get(STEPPED_OUT) == worker.encode():
            self._redis.delete(STEPPED_OUT)

    def tick(self) -> None:
        """Beat is there."""
        self._redis.set(BEAT, self._now())

    def present(self) -> LiveProcesses:
        """Who is there now."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.hgetall(WORKERS)
            pipe.get(BEAT)
            pipe.hgetall(UNREACHABLE)
            (seconds, micros), kept, ticked, reported = pipe.execute()
        now = seconds + micros / 1e6
        workers: dict[str, tuple[int, int]] = {}
        gone: list[bytes] = []
        for name, told in kept.items():
            at, used, places = told.decode().split(":")
            # Who has left has no places.
            if now - float(at) < WORKER_SECONDS and int(places):
                workers[name.decode()] = int(used), int(places)
            elif now - float(at) > FORGOTTEN:
                gone.append(name)
        if gone and workers:
            self._redis.hdel(WORKERS, *gone)
            self._redis.hdel(UNREACHABLE, *gone)
        unreachable = {
            name: frozenset(filter(None, providers.decode().split(",")))
            for name, providers in ((each.decode(), reported[each]) for each in reported)
            if name in workers
        }
        return LiveProcesses(workers, None if ticked is None else max(0.0, now - float(ticked)), unreachable)

    def _now(self) -> float:
        seconds, micros = self._redis.time()
        return float(seconds + micros / 1e6)

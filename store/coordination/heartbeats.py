"""Heartbeats of workers and of beat, timed by Redis's clock.

With its heartbeat a worker reports the providers that it cannot reach. A worker is isolated from a provider
when it cannot reach it and another worker does not report the same. When every worker reports it, the
provider is down, and the circuit breakers (``store.coordination.provider_limits``) are in charge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from redis import Redis

WORKERS, BEAT = "present:workers", "present:beat"
# The providers that each worker cannot reach, separated by commas. Not "present:unreachable": workers of an
# earlier release would hand jobs to the workers that report there.
UNREACHABLE = "present:egress"

# Seconds after its last heartbeat at which a worker counts as gone: it sends one every five.
WORKER_SECONDS = 16.0
# The same for beat. It ticks at least every five seconds, but a slow broker may delay it.
BEAT_SECONDS = 30.0

# Seconds after which the entry of a gone worker is deleted, if another worker is alive.
FORGOTTEN = 3600.0

# Seconds without any worker after which requests no longer wait for one. A restart takes much less.
AWAY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class LiveProcesses:
    """The live workers, each with its ``(threads in use, threads)``, and the seconds since beat's last tick.

    ``unreachable`` has the providers that each worker cannot reach.
    """

    workers: dict[str, tuple[int, int]]
    beat_seconds: float | None
    unreachable: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def beat_is_alive(self) -> bool:
        """Whether beat has ticked recently."""
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
    """Every method raises :class:`redis.RedisError` when Redis is down."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def record_worker(
        self, worker: str, *, used: int, places: int, unreachable: Collection[str] = ()
    ) -> None:
        """Store a worker's heartbeat, with the providers that it cannot reach."""
        now = self._now()
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hset(WORKERS, worker, f"{now}:{used}:{places}")
            pipe.hset(UNREACHABLE, worker, ",".join(sorted(unreachable)))
            pipe.execute()

    def record_worker_exit(self, worker: str) -> None:
        """Record that a worker ends. Its entry stays: "all are gone" differs from "none has come yet"."""
        self._redis.hset(WORKERS, worker, f"{self._now()}:0:0")

    def record_beat(self) -> None:
        """Store a tick of beat."""
        self._redis.set(BEAT, self._now())

    def live_processes(self) -> LiveProcesses:
        """The workers that are alive now, and beat's last tick. Deletes entries that are long gone."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.hgetall(WORKERS)
            pipe.get(BEAT)
            pipe.hgetall(UNREACHABLE)
            (seconds, micros), kept, ticked, reported = pipe.execute()
        now = seconds + micros / 1e6
        workers: dict[str, tuple[int, int]] = {}
        gone: list[bytes] = []
        for name, heartbeat in kept.items():
            at, used, places = heartbeat.decode().split(":")
            # A worker that has left has no threads.
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

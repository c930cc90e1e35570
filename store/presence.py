"""Who is there: workers say so every few seconds, and so does beat. Moments are Redis's own, whoever asks."""

from __future__ import annotations

from dataclasses import dataclass

from redis import Redis

WORKERS, BEAT = "present:workers", "present:beat"
STEPPED_OUT = "present:stepped-out"

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
class Present:
    """The workers that are there, each with its ``(places in use, places)``; how long ago beat ticked."""

    workers: dict[str, tuple[int, int]]
    beat_seconds: float | None

    @property
    def beats(self) -> bool:
        """Whether beat's last tick is young."""
        return self.beat_seconds is not None and self.beat_seconds < BEAT_SECONDS


class Presence:
    """:raise redis.RedisError: by each method, when Redis is down"""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def work(self, worker: str, *, used: int, places: int) -> None:
        """A worker is there."""
        self._redis.hset(WORKERS, worker, f"{self._now()}:{used}:{places}")

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

    def present(self) -> Present:
        """Who is there now."""
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.hgetall(WORKERS)
            pipe.get(BEAT)
            (seconds, micros), kept, ticked = pipe.execute()
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
        return Present(workers, None if ticked is None else max(0.0, now - float(ticked)))

    def _now(self) -> float:
        seconds, micros = self._redis.time()
        return float(seconds + micros / 1e6)

"""The busy cache: what providers answered, kept in Redis by calendar and aligned stretch of time.

Requests ask for arbitrary ranges, so time is divided into buckets of a fixed length, counted from 1970.
A bucket is one Redis key that holds int64 pairs: first ``(FORMAT, moment of the read)``, then one
``(start, end)`` for each busy period in it, all in UTC milliseconds. A period that crosses a border
stands in both buckets; merging joins it again. A key that is there was read, whatever it holds: an empty
bucket means "read, nothing there", a missing one means "not read".

Each connection has a generation, a counter. Whoever reads from the provider notes it before, and what was
read is kept only while the counter still stands there; a write moves it on and drops what is kept. So a
read that began before a write was over can never put the old picture back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
from redis import Redis
from redis.client import Pipeline

from scheduling.intervals import Intervals

FORMAT = 1
ROW_BYTES = 16

# Longer than any read from a provider takes: a counter that is forgotten starts anew from none.
GENERATION_SECONDS = 86_400

# KEYS: generation, index, buckets. ARGV: the generation noted, milliseconds to live, buckets' values.
STORE = """
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
for n = 3, #KEYS do
    redis.call('SET', KEYS[n], ARGV[n], 'PX', ARGV[2])
    redis.call('SADD', KEYS[2], KEYS[n])
end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
"""

# KEYS: generation, index. ARGV: seconds to remember the generation for.
OVERTAKE = """
redis.call('INCR', KEYS[1])
redis.call('EXPIRE', KEYS[1], ARGV[1])
for _, name in ipairs(redis.call('SMEMBERS', KEYS[2])) do redis.call('DEL', name) end
redis.call('DEL', KEYS[2])
"""

Rows = npt.NDArray[np.int64]


class CalendarKey(NamedTuple):
    """A calendar of a connection, by the id that the provider is asked with."""

    connection: str
    calendar: str


@dataclass(frozen=True, slots=True)
class Cached:
    """What the cache knows of one calendar over a range.

    ``busy`` comes in any order and may touch at bucket borders. ``missing`` is the aligned hull of what
    has to be read, None when nothing has; ``busy`` then says nothing about the hull.
    """

    busy: Intervals
    missing: tuple[int, int] | None
    oldest_read: int | None


class BusyCache:
    """Busy periods by connection and calendar, for ``ttl_seconds`` after they were read (0: never)."""

    def __init__(self, redis: Redis, *, ttl_seconds: float, bucket: int) -> None:
        self._redis = redis
        self._ttl = int(ttl_seconds * 1000)
        self._bucket = bucket

    def hull(self, start: int, end: int) -> tuple[int, int]:
        """``[start, end)`` widened to whole buckets."""
        return start // self._bucket * self._bucket, -(-end // self._bucket) * self._bucket

    def load(
        self, keys: Sequence[CalendarKey], start: int, end: int, *, newer_than: int | None = None
    ) -> list[Cached]:
        """What is known of each calendar over ``[start, end)``, in one round trip.

        What was read before ``newer_than`` counts as missing.
        """
        first, last = (edge // self._bucket for edge in self.hull(start, end))
        if not keys:
            return []
        if not self._ttl:
            return [Cached(Intervals.of(()), self.hull(start, end), None) for _ in keys]
        names = [_name(key, number) for key in keys for number in range(first, last)]
        values = cast(list[bytes | None], self._redis.mget(names))
        width = last - first
        return [self._read(values[n * width : (n + 1) * width], first, newer_than) for n in range(len(keys))]

    def _read(self, values: Sequence[bytes | None], first: int, newer_than: int | None) -> Cached:
        buckets = [_usable(value, newer_than) for value in values]
        gaps = [n for n, bucket in enumerate(buckets) if bucket is None]
        missing = None
        if gaps:
            missing = ((first + gaps[0]) * self._bucket, (first + gaps[-1] + 1) * self._bucket)
            # One provider call reads the whole hull: buckets inside it give way to the newer picture.
            buckets[gaps[0] : gaps[-1] + 1] = []
        present = [bucket for bucket in buckets if bucket is not None]
        if not present:
            return Cached(Intervals.of(()), missing, None)
        rows = np.concatenate([bucket[1:] for bucket in present])
        oldest = min(int(bucket[0, 1]) for bucket in present)
        return Cached(Intervals(rows[:, 0], rows[:, 1]), missing, oldest)

    def generations(self, connection_ids: Iterable[str]) -> dict[str, bytes]:
        """The generation of each connection, to be noted before the provider is asked; one round trip."""
        ids = list(dict.fromkeys(connection_ids))
        if not ids or not self._ttl:
            return dict.fromkeys(ids, b"")
        values = cast(list[bytes | None], self._redis.mget([_generation(each) for each in ids]))
        return {each: value or b"" for each, value in zip(ids, values, strict=True)}

    def store(
        self,
        pipe: Pipeline,
        key: CalendarKey,
        busy: Intervals,
        start: int,
        end: int,
        *,
        read_at: int,
        generation: bytes,
    ) -> None:
        """Queue on ``pipe`` what was read over ``[start, end)``, whose edges are bucket borders.

        ``busy`` is sorted and merged. ``read_at`` is the moment before the provider was asked, ``generation``
        what was noted before it: when that has moved on, nothing is kept.
        """
        if not self._ttl:
            return
        borders = np.arange(start, end + 1, self._bucket)
        # Merged periods are sorted by both edges: those of a bucket are one slice.
        firsts = np.searchsorted(busy.ends, borders[:-1], side="right")
        lasts = np.searchsorted(busy.starts, borders[1:], side="left")
        names: list[str] = []
        values: list[bytes] = []
        for n, border in enumerate(borders[:-1].tolist()):
            rows = np.empty((lasts[n] - firsts[n] + 1, 2), dtype=np.int64)
            rows[0] = FORMAT, read_at
            rows[1:, 0] = np.maximum(busy.starts[firsts[n] : lasts[n]], border)
            rows[1:, 1] = np.minimum(busy.ends[firsts[n] : lasts[n]], border + self._bucket)
            names.append(_name(key, border // self._bucket))
            values.append(rows.tobytes())
        keys = [_generation(key.connection), _index(key.connection), *names]
        pipe.eval(STORE, len(keys), *keys, generation, self._ttl, *values)

    def forget(self, connection_ids: Iterable[str]) -> None:
        """Drop everything kept for these connections, and what is being read for them just now."""
        with self._redis.pipeline(transaction=False) as pipe:
            for each in connection_ids:
                pipe.eval(OVERTAKE, 2, _generation(each), _index(each), GENERATION_SECONDS)
            pipe.execute()


def _name(key: CalendarKey, number: int) -> str:
    return f"busy:{key.connection}:{key.calendar}:{number}"


def _generation(connection_id: str) -> str:
    return f"busy-generation:{connection_id}"


def _index(connection_id: str) -> str:
    return f"busy-of:{connection_id}"


def _usable(value: bytes | None, newer_than: int | None) -> Rows | None:
    """The rows of a bucket, or None when it is not there, not ours or too old."""
    if value is None or len(value) % ROW_BYTES or not value:
        return None
    rows: Rows = np.frombuffer(value, dtype="<i8").reshape(-1, 2)
    if rows[0, 0] != FORMAT or (newer_than is not None and rows[0, 1] < newer_than):
        return None
    return rows

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

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
from redis import Redis
from redis.client import Pipeline

from scheduling.intervals import Groups, Intervals, Times
from store.line import Line

FORMAT = 1
HEAD = struct.Struct("<qq")
ROW_BYTES = HEAD.size

# Later than any read.
NEVER = 2**62

# Longer than any read from a provider takes: a counter that is forgotten starts anew from none.
GENERATION_SECONDS = 86_400

# KEYS: generation, index, buckets. ARGV: the generation noted, milliseconds to live, buckets' values.
STORE = """
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
for n = 3, #KEYS do
    -- A read that took long may come after one that began later: the newer picture stays. Bytes of a number
    -- compare as it does when the greatest is first.
    local kept = redis.call('GETRANGE', KEYS[n], 0, 15)
    local same = string.sub(kept, 1, 8) == string.sub(ARGV[n], 1, 8)
    local newer = string.reverse(string.sub(kept, 9)) > string.reverse(string.sub(ARGV[n], 9, 16))
    if not (same and newer) then
        redis.call('SET', KEYS[n], ARGV[n], 'PX', ARGV[2])
        redis.call('SADD', KEYS[2], KEYS[n])
    end
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


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What the cache knows of some calendars over a range.

    ``busy`` has the periods of each calendar, sorted; they may touch at bucket borders. ``missing`` has, by
    the calendar's place, the aligned hull of what has to be read; ``busy`` then says nothing about the hull.
    ``read_at`` has, for each calendar, when the oldest part that is known was read; ``NEVER`` without any.
    ``beside`` is the value that was asked for in the same round trip.
    """

    busy: Groups
    missing: Mapping[int, tuple[int, int]]
    read_at: Times
    beside: bytes | None


class BusyCache:
    """Busy periods by connection and calendar, for ``ttl_seconds`` after they were stored (0: never)."""

    def __init__(self, redis: Redis, line: Line, *, ttl_seconds: float, bucket: int) -> None:
        self._redis = redis
        self._line = line
        self._ttl = int(ttl_seconds * 1000)
        self._bucket = bucket

    def hull(self, start: int, end: int) -> tuple[int, int]:
        """``[start, end)`` widened to whole buckets."""
        return start // self._bucket * self._bucket, -(-end // self._bucket) * self._bucket

    def load(
        self,
        keys: Sequence[CalendarKey],
        start: int,
        end: int,
        *,
        newer_than: int | None = None,
        beside: str | None = None,
    ) -> Known:
        """What is known of each calendar over ``[start, end)``, and the value ``beside``, in one round trip.

        What was read before ``newer_than`` counts as missing.
        """
        numbers = range(*(edge // self._bucket for edge in self.hull(start, end)))
        names = [f"{prefix}{number}" for prefix in map(_prefix, keys) for number in numbers]
        wanted = [*(names if self._ttl else ()), *([beside] if beside else ())]
        values = self._line.mget(wanted) if wanted else []
        value = values.pop() if beside else None
        return self._read(values or [None] * len(names), len(keys), numbers, newer_than, value)

    def _read(
        self,
        values: Sequence[bytes | None],
        keys: int,
        numbers: range,
        newer_than: int | None,
        beside: bytes | None,
    ) -> Known:
        """All buckets joined byte by byte: nothing of them is looked at but their heads."""
        width = len(numbers)
        moments = [_read_at(value, newer_than) for value in values]
        missing: dict[int, tuple[int, int]] = {}
        if None in moments:
            for key in range(keys):
                places = range(key * width, (key + 1) * width)
                if gaps := [place for place in places if moments[place] is None]:
                    first, last = (numbers[gap - places[0]] for gap in (gaps[0], gaps[-1]))
                    missing[key] = first * self._bucket, (last + 1) * self._bucket
                    # One provider call reads the whole hull: buckets inside give way to the newer picture.
                    moments[gaps[0] : gaps[-1] + 1] = [None] * (gaps[-1] + 1 - gaps[0])
        parts = [
            b"" if value is None or moment is None else value[ROW_BYTES:]
            for value, moment in zip(values, moments, strict=True)
        ]
        rows: Rows = np.frombuffer(b"".join(parts), dtype="<i8").reshape(-1, 2)
        sizes = np.fromiter(map(len, parts), np.int64, len(parts)).reshape(keys, width).sum(axis=1)
        oldest = np.array([NEVER if moment is None else moment for moment in moments], np.int64)
        return Known(
            Groups.sized(rows[:, 0], rows[:, 1], sizes // ROW_BYTES),
            missing,
            oldest.reshape(keys, width).min(axis=1),
            beside,
        )

    def generations(self, connection_ids: Iterable[str]) -> dict[str, bytes]:
        """The generation of each connection, to be noted before the provider is asked; one round trip."""
        ids = list(dict.fromkeys(connection_ids))
        if not ids or not self._ttl:
            return dict.fromkeys(ids, b"")
        values = cast(list[bytes | None], self._redis.mget([_generation(each) for each in ids]))
        return {each: value or b"" for each, value in zip(ids, values, strict=True)}

    def ask_generations(self, pipe: Pipeline, connection_ids: Iterable[str]) -> None:
        """Queue on ``pipe`` the same question: a value for each connection, None where it has none yet."""
        pipe.mget([_generation(each) for each in connection_ids])

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
        prefix = _prefix(key)
        packed = np.stack((busy.starts, busy.ends), axis=1).astype("<i8", copy=False).tobytes()
        borders = range(start, end, self._bucket)
        # Merged periods are sorted by both edges: those of a bucket are one slice.
        firsts = busy.ends.searchsorted(borders, side="right").tolist()
        lasts = busy.starts.searchsorted([border + self._bucket for border in borders]).tolist()
        names = [f"{prefix}{border // self._bucket}" for border in borders]
        values = [
            HEAD.pack(FORMAT, read_at)
            + _clipped(packed[first * ROW_BYTES : last * ROW_BYTES], border, border + self._bucket)
            for first, last, border in zip(firsts, lasts, borders, strict=True)
        ]
        keys = [_generation(key.connection), _index(key.connection), *names]
        pipe.eval(STORE, len(keys), *keys, generation, self._ttl, *values)

    def forget(self, connection_ids: Iterable[str]) -> None:
        """Drop everything kept for these connections, and what is being read for them just now."""
        with self._redis.pipeline(transaction=False) as pipe:
            for each in connection_ids:
                pipe.eval(OVERTAKE, 2, _generation(each), _index(each), GENERATION_SECONDS)
            pipe.execute()


def _prefix(key: CalendarKey) -> str:
    """What the names of a calendar's buckets begin with; a bucket's number follows."""
    return f"busy:{key.connection}:{key.calendar}:"


def _generation(connection_id: str) -> str:
    return f"busy-generation:{connection_id}"


def _index(connection_id: str) -> str:
    return f"busy-of:{connection_id}"


def _read_at(value: bytes | None, newer_than: int | None) -> int | None:
    """When a bucket was read; None when it is not there, not ours or too old."""
    if not value or len(value) % ROW_BYTES:
        return None
    form, moment = HEAD.unpack_from(value)
    return None if form != FORMAT or (newer_than is not None and moment < newer_than) else moment


def _clipped(rows: bytes, opening: int, closing: int) -> bytes:
    """Sorted periods cut to a bucket: only the first and the last can reach beyond it."""
    if not rows:
        return rows
    clipped = bytearray(rows)
    start, end = HEAD.unpack_from(clipped)
    HEAD.pack_into(clipped, 0, max(start, opening), end)
    start, end = HEAD.unpack_from(clipped, len(clipped) - ROW_BYTES)
    HEAD.pack_into(clipped, len(clipped) - ROW_BYTES, start, min(end, closing))
    return bytes(clipped)

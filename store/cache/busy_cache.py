"""The busy cache: what providers answered, kept in Redis by calendar and aligned stretch of time.

Requests ask for arbitrary ranges, so time is divided into buckets of a fixed length, counted from 1970.
A bucket is one Redis key that holds int64 pairs: first ``(FORMAT, moment of the read)``, then one
``(start, end)`` for each busy period in it, all in UTC milliseconds. A period that crosses a border
stands in both buckets; merging joins it again. A key that is there was read, whatever it holds: an empty
bucket means "read, nothing there", a missing one means "not read".

Each connection has a generation, a random name. A reader notes it before it asks the provider, and its
answer is stored only if the connection still has that generation. An invalidation replaces the generation and
deletes what is cached. So a read that began before the end of a write can never store the old events, nor can
one that began before Redis was emptied.

A reader also enters its connection into the sets of readers of the calendar's tags
(``store.cache.cache_tags``), between its note of the generation and its call to the provider. A write
invalidates every connection in the sets of its tags: all that read the same mailbox or calendar. A
connection that enters later reads after the write.

A calendar that its provider watches for us is kept for longer, as the provider tells of every change. Its
watch is a key of its own, which ends before the provider's channel does; where it is lacking, the usual time
holds. Whatever is kept for longer was read under the watch: its beginning replaces the generation.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from redis import Redis
from redis.client import Pipeline

from scheduling.intervals import Groups, Intervals, Times
from store.cache.cache_tags import Tags
from store.cache.fast_redis import FastRedis

# 1: buckets of releases without sets of readers. They count as missing.
FORMAT = 2
HEAD = struct.Struct("<qq")
ROW_BYTES = HEAD.size

# Later than any read.
NEVER = 2**62

# Longer than any read from a provider takes; afterwards the next read gives a new one.
GENERATION_SECONDS = 86_400

# The generation of a connection, which has one from now on: a new one if it had none.
GENERATION = f"""
local function generation(key, new)
    local given = redis.call('GET', key)
    if not given then
        given = new
        redis.call('SET', key, new, 'EX', {GENERATION_SECONDS})
    end
    return given
end
"""

# KEYS: generations. ARGV: the new one.
NOTE = (
    GENERATION
    + """
local noted = {}
for n, key in ipairs(KEYS) do noted[n] = generation(key, ARGV[1]) end
return noted
"""
)

# KEYS: generation, index, watch, buckets. ARGV: the generation noted, milliseconds to live, the same for a
# calendar that is watched, buckets' values.
STORE = """
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
local lives = math.max(tonumber(ARGV[2]), math.min(tonumber(ARGV[3]), redis.call('PTTL', KEYS[3])))
for n = 4, #KEYS do
    -- A read that took long may come after one that began later: the newer picture stays. Bytes of a number
    -- compare as it does when the greatest is first.
    local kept = redis.call('GETRANGE', KEYS[n], 0, 15)
    local same = string.sub(kept, 1, 8) == string.sub(ARGV[n], 1, 8)
    local newer = string.reverse(string.sub(kept, 9)) > string.reverse(string.sub(ARGV[n], 9, 16))
    if not (same and newer) then
        redis.call('SET', KEYS[n], ARGV[n], 'PX', lives)
        redis.call('SADD', KEYS[2], KEYS[n])
    end
end
-- Never before a bucket that stands in it.
if redis.call('PTTL', KEYS[2]) < lives then redis.call('PEXPIRE', KEYS[2], lives) end
return 1
"""

# KEYS: sets of readers, first those of mailboxes, then those of single calendars. ARGV: the new generation,
# seconds to keep it, the number of sets of mailboxes, then connections to invalidate as a whole.
INVALIDATE = """
local whole, parts = {}, {}
for n = 4, #ARGV do whole[ARGV[n]] = true end
for n, key in ipairs(KEYS) do
    for _, reader in ipairs(redis.call('SMEMBERS', key)) do
        if n <= tonumber(ARGV[3]) then
            whole[reader] = true
        else
            local connection = string.match(reader, '^[^:]*')
            parts[connection] = parts[connection] or {}
            table.insert(parts[connection], 'busy:' .. reader .. ':')
        end
    end
    redis.call('DEL', key)
end
for connection, prefixes in pairs(parts) do
    if not whole[connection] then
        local index = 'busy-of:' .. connection
        redis.call('SET', 'busy-generation:' .. connection, ARGV[1], 'EX', ARGV[2])
        for _, name in ipairs(redis.call('SMEMBERS', index)) do
            for _, prefix in ipairs(prefixes) do
                if string.sub(name, 1, #prefix) == prefix then
                    redis.call('DEL', name)
                    redis.call('SREM', index, name)
                end
            end
        end
    end
end
for connection in pairs(whole) do
    local index = 'busy-of:' .. connection
    redis.call('SET', 'busy-generation:' .. connection, ARGV[1], 'EX', ARGV[2])
    for _, name in ipairs(redis.call('SMEMBERS', index)) do redis.call('DEL', name) end
    redis.call('DEL', index)
end
"""

# KEYS: generation, watch. ARGV: the new generation, seconds to remember it for, channel, milliseconds to
# watch for.
WATCH = """
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
"""

# KEYS: generation, index, watch. ARGV: the new generation, seconds to remember it for, what the names of the
# calendar's buckets begin with, the channel whose watch ends (none: it goes on).
EMPTY = """
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
if redis.call('GET', KEYS[3]) == ARGV[4] then redis.call('DEL', KEYS[3]) end
for _, name in ipairs(redis.call('SMEMBERS', KEYS[2])) do
    if string.sub(name, 1, #ARGV[3]) == ARGV[3] then
        redis.call('DEL', name)
        redis.call('SREM', KEYS[2], name)
    end
end
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
    """Busy periods by connection and calendar, for ``ttl_seconds`` after they were stored (0: never).

    For ``stale_seconds`` more they are still there, for who takes an old answer while a new one is read.
    Those of a calendar that is watched live for ``watched_seconds``, when that is longer.
    """

    def __init__(
        self,
        redis: Redis,
        line: FastRedis,
        *,
        ttl_seconds: float,
        stale_seconds: float = 0.0,
        watched_seconds: float = 0.0,
        bucket: int,
    ) -> None:
        self._redis = redis
        self._line = line
        self._fresh = int(ttl_seconds * 1000)
        self._ttl = self._fresh and self._fresh + int(stale_seconds * 1000)
        self._watched = int(watched_seconds * 1000)
        self._bucket = bucket
        # A set of readers outlives whatever they store.
        self._readers = GENERATION_SECONDS + max(self._ttl, self._watched) // 1000

    def hull(self, start: int, end: int) -> tuple[int, int]:
        """``[start, end)`` widened to whole buckets."""
        return start // self._bucket * self._bucket, -(-end // self._bucket) * self._bucket

    def stale(self, known: Known, now: int) -> list[int]:
        """The places of calendars that are known, but of which a part was read too long ago to be fresh."""
        if self._ttl == self._fresh:
            return []
        old = (known.read_at < now - self._fresh).nonzero()[0].tolist()
        return [place for place in old if place not in known.missing]

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
        # In bytes, up to each bucket; those of a calendar begin where the one before it ends.
        borders = [0, *accumulate(map(len, parts))][::width]
        read_at = [NEVER if moment is None else moment for moment in moments]
        oldest = [min(read_at[first : first + width]) for first in range(0, len(read_at), width)]
        return Known(
            Groups(rows[:, 0], rows[:, 1], np.array(borders, np.int64) // ROW_BYTES),
            missing,
            np.array(oldest, np.int64),
            beside,
        )

    def generations(self, connection_ids: Iterable[str]) -> dict[str, bytes]:
        """The generation of each connection, to be noted before the provider is asked; one round trip."""
        ids = list(dict.fromkeys(connection_ids))
        if not ids:
            return {}
        with self._redis.pipeline(transaction=False) as pipe:
            self.ask_generations(pipe, ids)
            (noted,) = pipe.execute()
        return dict(zip(ids, noted, strict=True))

    def ask_generations(self, pipe: Pipeline, connection_ids: Sequence[str]) -> None:
        """Queue on ``pipe`` the same question; it answers with a list."""
        keys = [generation_key(each) for each in connection_ids]
        pipe.eval(NOTE, len(keys), *keys, new_generation())

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
        keys = [generation_key(key.connection), index_key(key.connection), watch_name(key), *names]
        pipe.eval(STORE, len(keys), *keys, generation, self._ttl, self._watched, *values)

    def enter(self, reads: Mapping[CalendarKey, Tags]) -> None:
        """Enter calendars that are about to be read into the sets of readers of their tags.

        It takes one round trip.

        The generation has been noted before, and the provider is asked afterwards.
        """
        members: dict[str, set[str]] = {}
        for key, tags in reads.items():
            for tag in tags.mailboxes:
                members.setdefault(readers_key(tag), set()).add(key.connection)
            for tag in tags.calendars:
                members.setdefault(readers_key(tag), set()).add(f"{key.connection}:{key.calendar}")
        commands: list[tuple[str | int, ...]] = []
        for name, readers in members.items():
            commands += ("SADD", name, *readers), ("EXPIRE", name, self._readers)
        if commands:
            self._line.ask(*commands)

    def invalidate(self, tags: Tags, connection_ids: Iterable[str] = ()) -> None:
        """Drop the calendars that connections have cached under these tags, and all of some connections.

        Reads under way for one of them will not be cached either.
        """
        names = [readers_key(tag) for tag in dict.fromkeys(tags.mailboxes)]
        mailboxes = len(names)
        names += [readers_key(tag) for tag in dict.fromkeys(tags.calendars)]
        told = new_generation(), GENERATION_SECONDS, mailboxes
        self._redis.eval(INVALIDATE, len(names), *names, *told, *connection_ids)

    def forget(self, connection_ids: Iterable[str]) -> None:
        """Drop everything kept for these connections, and what is being read for them just now."""
        self.invalidate(Tags(), connection_ids)

    def watch(self, key: CalendarKey, channel: str, seconds: float) -> None:
        """Keep for longer what is read of a calendar from now on; its watch ends in ``seconds``."""
        names = generation_key(key.connection), watch_name(key)
        if (milliseconds := int(seconds * 1000)) > 0:
            told = new_generation(), GENERATION_SECONDS, channel, milliseconds
            self._redis.eval(WATCH, len(names), *names, *told)

    def watched(self, keys: Sequence[CalendarKey]) -> list[str | None]:
        """The channel that watches each calendar, in one round trip."""
        values = self._line.mget([watch_name(key) for key in keys]) if keys else []
        return [value.decode() if value else None for value in values]

    def empty(self, key: CalendarKey, *, unwatch: str = "") -> None:
        """Drop everything kept for one calendar, and what is being read for its connection just now.

        ``unwatch`` is the channel that is lost: if it is the one that watches, the watch ends.
        """
        names = generation_key(key.connection), index_key(key.connection), watch_name(key)
        told = new_generation(), GENERATION_SECONDS, _prefix(key), unwatch
        self._redis.eval(EMPTY, len(names), *names, *told)


def _prefix(key: CalendarKey) -> str:
    """What the names of a calendar's buckets begin with; a bucket's number follows."""
    return f"busy:{key.connection}:{key.calendar}:"


def new_generation() -> str:
    """One that no connection has had."""
    return secrets.token_hex(8)


def generation_key(connection_id: str) -> str:
    """The name of a connection's generation."""
    return f"busy-generation:{connection_id}"


def readers_key(tag: str) -> str:
    """The name of the set of connections, or of their calendars, that may be cached under a tag."""
    return f"busy-readers:{tag}"


def watch_name(key: CalendarKey) -> str:
    """The key that says which channel watches a calendar."""
    return f"busy-watch:{key.connection}:{key.calendar}"


def index_key(connection_id: str) -> str:
    """The name of the set of all that is kept of a connection, and goes when it is overtaken."""
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

"""The busy cache: busy periods as providers answered them, in Redis by calendar and time bucket.

Requests ask for arbitrary ranges, so time is divided into buckets of a fixed length, counted from 1970. A
bucket is one Redis key (``store.cache.busy_buckets``). A key that exists was read: an empty bucket means
"read, no busy periods", a missing one means "not read".

Each connection has a generation, a random name. A worker looks it up before it calls the provider, and its
result is stored only if the connection still has that generation. An invalidation replaces the generation and
deletes the cached buckets. So a read that began before the end of a write can never store the old events, nor
can one that began before Redis was emptied.

A worker also adds its connection to the reader sets of the calendar's tags (``store.cache.cache_tags``),
with or after the look-up of the generation and before it calls the provider. A write invalidates every
connection in the reader sets of its tags, so every connection that reads the same mailbox or calendar. A
connection that is added later reads after the write.

While an event write to a mailbox is under way (``store.cache.write_marks``), reads under its tags get the
generation ``UNCACHED``, which no connection has, so they are not stored.

A calendar with a watch (the provider notifies us of every change) is kept for longer. The watch is a key of
its own, which expires before the provider's channel does; without it the usual lifetime applies. The start of
a watch replaces the generation, so only results that were read under the watch are kept for longer. Nothing
is kept for longer than ``max_age_seconds`` since its read: notifications can be lost.
"""

from __future__ import annotations

import secrets
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from redis import Redis
from redis.client import Pipeline

from scheduling.intervals import Intervals
from store.cache.busy_buckets import (
    FORMAT,
    HEAD,
    ROW_BYTES,
    BucketLoad,
    CachedBusy,
    CalendarKey,
    bucket_prefix,
    clipped,
    generation_key,
    index_key,
    mark_key,
    readers_key,
    watch_key,
)
from store.cache.cache_tags import Tags
from store.cache.fast_redis import FastRedis
from store.lua import Script, json_argument

# Longer than any read from a provider takes. After it expires, the next read sets a new one.
GENERATION_SECONDS = 86_400

# In seconds.
UNLIMITED = 1e11

# The generation of reads that overlap an event write.
UNCACHED = b"uncached"

# Milliseconds by which the index of a connection outlives its buckets.
INDEX_MARGIN = 600_000

# Keys of one script: Lua unpacks them on its stack, which holds 8 000.
MAX_KEYS = 1000

_BEGIN_READS = Script("cache/scripts/begin_reads.lua")
_STORE = Script("cache/scripts/store.lua")
_INVALIDATE = Script("cache/scripts/invalidate.lua")
_WATCH = Script("cache/scripts/watch.lua")
_EMPTY = Script("cache/scripts/empty.lua")


class BusyRead(NamedTuple):
    """The busy periods of a calendar, sorted and merged, over a range whose edges are bucket borders.

    ``read_at`` is the time before the provider was called. ``generation`` was looked up before that.
    """

    key: CalendarKey
    busy: Intervals
    start: int
    end: int
    read_at: int
    generation: bytes


class BusyCache:
    """Busy periods by connection and calendar, kept for ``ttl_seconds`` (0: nothing is cached).

    They are kept for ``stale_seconds`` more, for requests that accept a stale answer while a new one is read.
    Those of a watched calendar are kept for ``watched_seconds``, if that is longer. All are kept for
    ``max_age_seconds`` since their read at most.
    """

    def __init__(
        self,
        redis: Redis,
        fast_redis: FastRedis,
        *,
        ttl_seconds: float,
        stale_seconds: float = 0.0,
        watched_seconds: float = 0.0,
        max_age_seconds: float = UNLIMITED,
        bucket: int,
    ) -> None:
        self._redis = redis
        self._fast_redis = fast_redis
        self._fresh = int(ttl_seconds * 1000)
        self._ttl = self._fresh and self._fresh + int(stale_seconds * 1000)
        self._watched = int(watched_seconds * 1000)
        self._max_age = int(max_age_seconds * 1000)
        self._bucket = bucket
        # A reader set outlives every bucket that its readers store.
        self._readers_seconds = GENERATION_SECONDS + max(self._ttl, self._watched) // 1000

    def hull(self, start: int, end: int) -> tuple[int, int]:
        """``[start, end)`` widened to whole buckets."""
        return start // self._bucket * self._bucket, -(-end // self._bucket) * self._bucket

    def stale(self, known: CachedBusy, now: int) -> list[int]:
        """The indexes of cached calendars of which a part is stale."""
        if self._ttl == self._fresh:
            return []
        old = (known.read_at < now - self._fresh).nonzero()[0].tolist()
        return [index for index in old if index not in known.missing]

    def load(
        self,
        keys: Sequence[CalendarKey],
        start: int,
        end: int,
        *,
        newer_than: int | None = None,
        extra_keys: Sequence[str] = (),
    ) -> CachedBusy:
        """Load each calendar over ``[start, end)``, and the Redis keys ``extra_keys``, in one round trip.

        Buckets that were read before ``newer_than`` count as missing.
        """
        load = self.bucket_load(keys, start, end, newer_than=newer_than, extra_keys=extra_keys)
        names = load.names()
        return load.join(self._fast_redis.mget(names) if names else ())

    def bucket_load(
        self,
        keys: Sequence[CalendarKey],
        start: int,
        end: int,
        *,
        newer_than: int | None = None,
        extra_keys: Sequence[str] = (),
    ) -> BucketLoad:
        """What ``load`` reads, for callers that read Redis themselves."""
        numbers = range(*(edge // self._bucket for edge in self.hull(start, end)))
        # Without a watch, periods may be as old as stale ones.
        unwatched_since = now_ms() - self._ttl
        return BucketLoad(
            keys, numbers, self._bucket, newer_than, unwatched_since, extra_keys, cached=self._ttl > 0
        )

    def begin_reads(
        self, connection_ids: Iterable[str], reads: Mapping[CalendarKey, Tags]
    ) -> dict[str, bytes]:
        """Look up the generation of each connection, and :meth:`register_readers`, in one round trip.

        Called before the provider is: a result is cached only under the generation from before the read. It
        is ``UNCACHED`` for a connection whose tags an event write under way has marked.
        """
        ids = list(dict.fromkeys(connection_ids))
        if not ids:
            return {}
        members = _reader_sets(reads)
        arguments = generation_argument(
            readers_seconds=self._readers_seconds,
            connections=len(ids),
            readers=[list(readers) for readers in members.values()],
        )
        marks = [mark_key(tag) for tag in members]
        keys = [*map(generation_key, ids), *map(readers_key, members), *marks]
        return dict(zip(ids, _BEGIN_READS.run(self._redis, keys, arguments), strict=True))

    def store(self, pipe: Pipeline, reads: Iterable[BusyRead]) -> None:
        """Queue on ``pipe`` the storing of calendars that were read.

        Nothing is stored of a connection that has another generation by now.
        """
        if not self._ttl:
            return
        batch = _Batch()
        for read in reads:
            # From a request whose process has another bucket length: it would fill a bucket in part.
            if read.start % self._bucket or read.end % self._bucket:
                continue
            batch.add(read, self._bucket)
            if len(batch.keys) > MAX_KEYS:
                batch.queue(pipe, self._ttl, self._watched, self._max_age)
                batch = _Batch()
        if batch.keys:
            batch.queue(pipe, self._ttl, self._watched, self._max_age)

    def register_readers(self, reads: Mapping[CalendarKey, Tags]) -> None:
        """Add calendars that are about to be read to the reader sets of their tags, in one round trip.

        Call it after the generation was looked up and before the provider is called. The generation of a
        connection whose tags an event write under way has marked is replaced: this read is not cached.
        """
        found = self.begin_reads((key.connection for key in reads), reads)
        if overlapping := [each for each, generation in found.items() if generation == UNCACHED]:
            self.invalidate_connections(overlapping)

    def invalidate_tags(self, tags: Tags, connection_ids: Iterable[str] = ()) -> None:
        """Invalidate the calendars that are cached under these tags, and all calendars of some connections.

        Reads in progress for one of these connections will not be cached.
        """
        names = [readers_key(tag) for tag in dict.fromkeys(tags.mailboxes)]
        mailboxes = len(names)
        names += [readers_key(tag) for tag in dict.fromkeys(tags.calendars)]
        arguments = generation_argument(mailboxes=mailboxes, connections=list(connection_ids))
        _INVALIDATE.run(self._redis, names, arguments)

    def invalidate_connections(self, connection_ids: Iterable[str]) -> None:
        """Invalidate everything that is cached for these connections, and their reads in progress."""
        self.invalidate_tags(Tags(), connection_ids)

    def watch(self, key: CalendarKey, channel: str, seconds: float) -> None:
        """Start a watch: results of reads of this calendar from now on are kept longer, for ``seconds``."""
        names = [generation_key(key.connection), watch_key(key)]
        if (milliseconds := int(seconds * 1000)) > 0:
            arguments = generation_argument(channel=channel, milliseconds=milliseconds)
            _WATCH.run(self._redis, names, arguments)

    def watched(self, keys: Sequence[CalendarKey]) -> list[str | None]:
        """The channel that watches each calendar, in one round trip."""
        values = self._fast_redis.mget([watch_key(key) for key in keys]) if keys else []
        return [value.decode() if value else None for value in values]

    def invalidate_calendar(self, key: CalendarKey, *, unwatch: str = "") -> None:
        """Invalidate everything that is cached for one calendar, and its connection's reads in progress.

        ``unwatch`` is a channel that no longer works: if it is the one in the calendar's watch, that ends.
        """
        names = [generation_key(key.connection), index_key(key.connection), watch_key(key)]
        arguments = generation_argument(prefix=bucket_prefix(key), unwatch=unwatch)
        _EMPTY.run(self._redis, names, arguments)


def generation_argument(**arguments: object) -> bytes:
    """The arguments of a script that replaces generations."""
    return json_argument(generation=new_generation(), generation_seconds=GENERATION_SECONDS, **arguments)


class _Batch:
    """The keys and arguments of ``store.lua`` for some calendars."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._reads: list[tuple[str, int, int]] = []
        self._values: list[bytes] = []

    def add(self, read: BusyRead, bucket: int) -> None:
        """Divide a calendar into buckets of this length."""
        key, busy = read.key, read.busy
        prefix = bucket_prefix(key)
        rows = np.empty((len(busy), 2), "<i8")
        rows[:, 0], rows[:, 1] = busy.starts, busy.ends
        packed, starts, ends = rows.tobytes(), busy.starts.tolist(), busy.ends.tolist()
        borders = range(read.start, read.end, bucket)
        head = HEAD.pack(FORMAT, read.read_at)
        for border in borders:
            # Merged periods are sorted by start and by end, so those of a bucket are one slice.
            first, last = bisect_right(ends, border), bisect_left(starts, border + bucket)
            within = packed[first * ROW_BYTES : last * ROW_BYTES]
            self._values.append(head + clipped(within, border, border + bucket))
        self.keys += generation_key(key.connection), index_key(key.connection), watch_key(key)
        self.keys += [f"{prefix}{border // bucket}" for border in borders]
        # By the clock that has stamped the read: Redis's may differ.
        age = max(0, now_ms() - read.read_at)
        self._reads.append((read.generation.decode(), len(borders), age))

    def queue(self, pipe: Pipeline, ttl: int, watched: int, max_age: int) -> None:
        """Queue the script on ``pipe``."""
        arguments = json_argument(
            ttl=ttl, watched_ttl=watched, max_age=max_age, margin=INDEX_MARGIN, reads=self._reads
        )
        _STORE.queue(pipe, self.keys, arguments, *self._values)


def _reader_sets(reads: Mapping[CalendarKey, Tags]) -> dict[str, set[str]]:
    """The new members of each tag's reader set."""
    members: dict[str, set[str]] = {}
    for key, tags in reads.items():
        for tag in tags.mailboxes:
            members.setdefault(tag, set()).add(key.connection)
        for tag in tags.calendars:
            members.setdefault(tag, set()).add(f"{key.connection}:{key.calendar}")
    return members


def now_ms() -> int:
    """The current time in milliseconds, by the clock of this machine."""
    return time.time_ns() // 1_000_000


def new_generation() -> str:
    """A random generation, which no connection has had."""
    return secrets.token_hex(8)

"""The busy cache: busy periods as providers answered them, in Redis by calendar and time bucket.

Requests ask for arbitrary ranges, so time is divided into buckets of a fixed length, counted from 1970. A
bucket is one Redis key. A key that exists was read: an empty bucket means "read, no busy periods", a missing
one means "not read". It holds int64 pairs: first ``(FORMAT, time of the read)``, then one ``(start, end)``
for each busy period in it, all in UTC milliseconds. A period that crosses a border is stored in both buckets;
merging joins it again.

Each connection has a generation, a random name. A worker looks it up before it calls the provider, and its
result is stored only if the connection still has that generation. An invalidation replaces the generation and
deletes the cached buckets. So a read that began before the end of a write can never store the old events, nor
can one that began before Redis was emptied.

A worker also adds its connection to the reader sets of the calendar's tags (``store.cache.cache_tags``),
with or after the look-up of the generation and before it calls the provider. A write invalidates every
connection in the reader sets of its tags, so every connection that reads the same mailbox or calendar. A
connection that is added later reads after the write.

A worker may be killed after the provider has received an event write, and nothing then invalidates the
cache. So the tags of a write are marked before the provider is called. While a mark lasts, reads under its
tags get the generation ``UNCACHED``, which no connection has, so they are not stored, and what was cached
before is kept no longer than the mark. A mark ends when the outcome of the write is known and the cache
invalidated, else shortly after the deadline.

A calendar with a watch (the provider notifies us of every change) is kept for longer. The watch is a key of
its own, which expires before the provider's channel does; without it the usual lifetime applies. The start of
a watch replaces the generation, so only results that were read under the watch are kept for longer. Nothing
is kept for longer than ``max_age_seconds`` since its read: notifications can be lost.
"""

from __future__ import annotations

import logging
import secrets
import struct
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError

from scheduling.intervals import Groups, Intervals, Times
from store.cache.cache_tags import Identified, Tags, change_tags
from store.cache.fast_redis import FastRedis
from store.lua import Script, json_argument

# 1: buckets of releases without reader sets. 2: of releases that kept watched calendars for hours. They
# count as missing.
FORMAT = 3
HEAD = struct.Struct("<qq")
ROW_BYTES = HEAD.size

# Later than any read.
NEVER = 2**62

# The end of the last time in which no web process could take notifications, in milliseconds by Redis's clock
# (``store.cache.web_heartbeat``).
GAP_KEY = "busy-gap"
# Milliseconds by which the clock of a worker, which stamps reads, may be ahead of Redis's.
CLOCK_MARGIN = 5000

Rows = npt.NDArray[np.int64]


class CalendarKey(NamedTuple):
    """A calendar of a connection, by the id that is used in calls to the provider."""

    connection: str
    calendar: str


@dataclass(frozen=True, slots=True, eq=False)
class CachedBusy:
    """The cached busy periods of some calendars over a range.

    ``busy`` has the periods of each calendar, sorted; they may touch at bucket borders. ``missing`` has, by
    the calendar's index, the smallest range of whole buckets that covers the missing ones; ``busy`` then has
    nothing in that range. ``read_at`` has, for each calendar, when its oldest cached part was read, or
    ``NEVER`` if there is none. ``extra_values`` has the other values that were loaded in the same round trip.
    """

    busy: Groups
    missing: Mapping[int, tuple[int, int]]
    read_at: Times
    extra_values: Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class BucketLoad:
    """A load of some calendars: the names of the Redis keys to read, and the join of their values.

    ``numbers`` are those of the buckets, each ``length`` milliseconds long. Buckets that were read before
    ``newer_than`` count as missing. So do buckets that were read before the end of the last gap of
    notifications and before ``unwatched_since``: younger ones need no notifications. ``extra_keys`` are other
    Redis keys, read in the same round trip. Without ``cached``, all buckets count as missing; none is read.
    """

    keys: Sequence[CalendarKey]
    numbers: range
    length: int
    newer_than: int | None
    unwatched_since: int
    extra_keys: Sequence[str]
    cached: bool

    def names(self) -> list[str]:
        """The Redis keys to read."""
        found: list[str] = []
        if self.cached:
            found = [
                f"{prefix}{number}" for prefix in map(bucket_prefix, self.keys) for number in self.numbers
            ]
            found.append(GAP_KEY)
        return [*found, *self.extra_keys]

    def join(self, values: Sequence[bytes | None]) -> CachedBusy:
        """The busy periods in the values of ``names``. Of each bucket, only the head is parsed."""
        width = len(self.numbers)
        count = len(self.keys) * width
        extra_values = values[len(values) - len(self.extra_keys) :]
        buckets = values[:count] if self.cached else [None] * count
        newer_than = self._oldest_used(values[count]) if self.cached else None
        moments = [_read_at(value, newer_than) for value in buckets]
        missing = self._extract_missing(moments) if None in moments else {}
        parts = [
            b"" if value is None or moment is None else value[ROW_BYTES:]
            for value, moment in zip(buckets, moments, strict=True)
        ]
        rows: Rows = np.frombuffer(b"".join(parts), dtype="<i8").reshape(-1, 2)
        # Offsets in bytes at which each calendar's rows begin, and the end of the last one's.
        borders = [0, *accumulate(map(len, parts))][::width]
        read_at = [NEVER if moment is None else moment for moment in moments]
        oldest = [min(read_at[first : first + width]) for first in range(0, len(read_at), width)]
        return CachedBusy(
            Groups(rows[:, 0], rows[:, 1], np.array(borders, np.int64) // ROW_BYTES),
            missing,
            np.array(oldest, np.int64),
            extra_values,
        )

    def _oldest_used(self, gap: bytes | None) -> int | None:
        """Buckets that were read before this time count as missing."""
        if gap is None:
            return self.newer_than
        return max(self.newer_than or 0, min(int(gap) + CLOCK_MARGIN, self.unwatched_since))

    def _extract_missing(self, moments: list[int | None]) -> dict[int, tuple[int, int]]:
        """The missing range of each calendar that has one; clears the moments inside it.

        One provider call reads the whole range, so its newer result replaces buckets inside.
        """
        missing: dict[int, tuple[int, int]] = {}
        width = len(self.numbers)
        for key in range(len(self.keys)):
            positions = range(key * width, (key + 1) * width)
            if gaps := [position for position in positions if moments[position] is None]:
                first, last = (self.numbers[gap - positions[0]] for gap in (gaps[0], gaps[-1]))
                missing[key] = first * self.length, (last + 1) * self.length
                moments[gaps[0] : gaps[-1] + 1] = [None] * (gaps[-1] + 1 - gaps[0])
        return missing


def bucket_prefix(key: CalendarKey) -> str:
    """The prefix of the names of a calendar's buckets; the bucket's number follows."""
    return f"busy:{key.connection}:{key.calendar}:"


def generation_key(connection_id: str) -> str:
    """The name of a connection's generation."""
    return f"busy-generation:{connection_id}"


def readers_key(tag: str) -> str:
    """The name of a tag's reader set: the connections, or their calendars, that may be cached under it."""
    return f"busy-readers:{tag}"


def mark_key(tag: str) -> str:
    """The name of the set of event writes under way that invalidate a tag."""
    return f"busy-writes:{tag}"


def watch_key(key: CalendarKey) -> str:
    """The name of a calendar's watch, which holds the id of its channel."""
    return f"busy-watch:{key.connection}:{key.calendar}"


def index_key(connection_id: str) -> str:
    """The name of the set of a connection's cached buckets, all of which an invalidation deletes."""
    return f"busy-of:{connection_id}"


def clipped(rows: bytes, opening: int, closing: int) -> bytes:
    """Sorted periods cut to a bucket: only the first and the last can reach beyond it."""
    if not rows:
        return rows
    cut = bytearray(rows)
    start, end = HEAD.unpack_from(cut)
    HEAD.pack_into(cut, 0, max(start, opening), end)
    start, end = HEAD.unpack_from(cut, len(cut) - ROW_BYTES)
    HEAD.pack_into(cut, len(cut) - ROW_BYTES, start, min(end, closing))
    return bytes(cut)


def _read_at(value: bytes | None, newer_than: int | None) -> int | None:
    """When a bucket was read; None when it is missing, of another format or too old."""
    if not value or len(value) % ROW_BYTES:
        return None
    form, moment = HEAD.unpack_from(value)
    return None if form != FORMAT or (newer_than is not None and moment < newer_than) else moment


# Longer than any read from a provider takes. After it expires, the next read sets a new one.
GENERATION_SECONDS = 86_400

# In seconds.
UNLIMITED = 1e11

# The generation of reads that overlap an event write.
UNCACHED = b"uncached"

# Milliseconds by which the index of a connection outlives its buckets.
INDEX_MARGIN = 600_000

# Seconds after the deadline of a write by which the provider has executed it, if it ever does.
MARK_MARGIN_SECONDS = 5.0

# Keys of one script: Lua unpacks them on its stack, which holds 8 000.
MAX_KEYS = 1000

_BEGIN_READS = Script("cache/scripts/begin_reads.lua")
_STORE = Script("cache/scripts/store.lua")
_INVALIDATE = Script("cache/scripts/invalidate.lua")
_WATCH = Script("cache/scripts/watch.lua")
_EMPTY = Script("cache/scripts/empty.lua")
_MARK = Script("cache/scripts/mark_write.lua")
_UNMARK = Script("cache/scripts/unmark_write.lua")


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
        arguments = _generation_argument(
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
        arguments = _generation_argument(mailboxes=mailboxes, connections=list(connection_ids))
        _INVALIDATE.run(self._redis, names, arguments)

    def invalidate_connections(self, connection_ids: Iterable[str]) -> None:
        """Invalidate everything that is cached for these connections, and their reads in progress."""
        self.invalidate_tags(Tags(), connection_ids)

    def watch(self, key: CalendarKey, channel: str, seconds: float) -> None:
        """Start a watch: results of reads of this calendar from now on are kept longer, for ``seconds``."""
        names = [generation_key(key.connection), watch_key(key)]
        if (milliseconds := int(seconds * 1000)) > 0:
            arguments = _generation_argument(channel=channel, milliseconds=milliseconds)
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
        arguments = _generation_argument(prefix=bucket_prefix(key), unwatch=unwatch)
        _EMPTY.run(self._redis, names, arguments)

    def invalidate_changed(self, of: Identified, key: CalendarKey, owner: str) -> None:
        """Invalidate a calendar for every connection that reads it, after a provider's notification.

        Of many notifications for one change, only the first finds entries. ``owner`` as in ``change_tags``.
        """
        self.invalidate_calendar(key)
        self.invalidate_tags(change_tags(of, key.calendar, owner))

    def begin_write(self, tags: Tags, connection_id: str, seconds: float) -> str:
        """Mark the tags of a write that ends within ``seconds``; returns the name of the write.

        The marks of several writes to one mailbox do not end each other.

        :raise redis.RedisError: when Redis is down; the provider must not be called then
        """
        write = secrets.token_hex(8)
        names = _unique(tags)
        arguments = _generation_argument(
            mailboxes=len(dict.fromkeys(tags.mailboxes)),
            connections=[connection_id],
            write=write,
            milliseconds=int((max(0.0, seconds) + MARK_MARGIN_SECONDS) * 1000),
        )
        _MARK.run(self._redis, [*map(readers_key, names), *map(mark_key, names)], arguments)
        return write

    def end_write(self, tags: Tags, write: str) -> None:
        """End the mark of a write whose outcome is known, after the cache was invalidated."""
        try:
            _UNMARK.run(self._redis, [*map(mark_key, _unique(tags))], json_argument(write=write))
        except RedisError as error:
            log.warning("mark of a write not removed, it expires by itself: %s", type(error).__name__)


def _generation_argument(**arguments: object) -> bytes:
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


log = logging.getLogger(__name__)


def _unique(tags: Tags) -> list[str]:
    """Each tag once, those of mailboxes first."""
    return [*dict.fromkeys(tags.mailboxes), *dict.fromkeys(tags.calendars)]

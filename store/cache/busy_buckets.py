"""Buckets of the busy cache: their bytes, the names of its keys, and how loaded ones are joined to periods.

A bucket is one Redis key that holds int64 pairs: first ``(FORMAT, time of the read)``, then one
``(start, end)`` for each busy period in it, all in UTC milliseconds. A period that crosses a border is stored
in both buckets; merging joins it again.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scheduling.intervals import Groups, Times

# 1: buckets of releases without reader sets. 2: of releases that kept watched calendars for hours. They
# count as missing.
FORMAT = 3
HEAD = struct.Struct("<qq")
ROW_BYTES = HEAD.size

# Later than any read.
NEVER = 2**62

# The end of the last time in which no web process could take notifications, in milliseconds by Redis's clock
# (``store.coordination.web_heartbeat``).
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

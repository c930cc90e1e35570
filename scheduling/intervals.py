"""Half-open intervals of time in numpy arrays: those of one owner, or those of many owners in one array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

# Milliseconds since 1970 in UTC: the resolution of the timestamps we answer with.
Times = npt.NDArray[np.int64]
# Indexes into an array, or of owners.
Indexes = npt.NDArray[np.int64]

# Keys of all lanes in one pass stay below this, so that the sum of two keys fits an int64.
KEYS = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Intervals in UTC milliseconds; ``starts[i]`` is included and ``ends[i]`` is not."""

    starts: Times
    ends: Times

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Intervals:
        """Pack pairs in their order, without sorting, merging or dropping any."""
        rows = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        return cls(rows[:, 0].copy(), rows[:, 1].copy())

    def __len__(self) -> int:
        return int(self.starts.size)

    def pairs(self) -> list[tuple[int, int]]:
        """The intervals as Python pairs, for tests, messages and small answers."""
        return list(zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def take(self, rows: npt.NDArray[np.bool_] | Indexes) -> Intervals:
        """The rows that a mask or an index array selects, in its order."""
        return Intervals(self.starts[rows], self.ends[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Intervals of many owners in one array: owner ``i`` has the rows ``offsets[i]:offsets[i + 1]``."""

    starts: Times
    ends: Times
    offsets: Times

    @classmethod
    def of(cls, owners: Iterable[Iterable[tuple[int, int]]]) -> Groups:
        """Pack one iterable of pairs for each owner, in the given order."""
        return cls.pack([Intervals.of(pairs) for pairs in owners])

    @classmethod
    def pack(cls, owners: Sequence[Intervals]) -> Groups:
        """Concatenate the intervals of the owners."""
        if not owners:
            return cls.sized(EMPTY, EMPTY, [])
        starts = np.concatenate([owner.starts for owner in owners])
        ends = np.concatenate([owner.ends for owner in owners])
        return cls.sized(starts, ends, [owner.starts.size for owner in owners])

    @classmethod
    def concat(cls, parts: Sequence[Groups]) -> Groups:
        """The owners of all parts, in order."""
        if not parts:
            return cls.pack([])
        sizes = np.concatenate([part.sizes() for part in parts])
        starts = np.concatenate([part.starts for part in parts])
        return cls.sized(starts, np.concatenate([part.ends for part in parts]), sizes)

    @classmethod
    def sized(cls, starts: Times, ends: Times, sizes: npt.ArrayLike) -> Groups:
        """Divide rows among owners: owner ``i`` has the next ``sizes[i]`` rows."""
        counts = np.asarray(sizes, dtype=np.int64)
        return cls(starts, ends, np.concatenate((_ZERO, np.cumsum(counts))))

    def __len__(self) -> int:
        return int(self.offsets.size) - 1

    def sizes(self) -> Indexes:
        """The number of rows of each owner."""
        return self.offsets[1:] - self.offsets[:-1]

    def owners(self) -> Indexes:
        """The owner of each row."""
        return np.arange(len(self)).repeat(self.sizes())

    def group(self, owner: int) -> Intervals:
        """One owner's rows, as a view."""
        rows = slice(self.offsets[owner], self.offsets[owner + 1])
        return Intervals(self.starts[rows], self.ends[rows])

    def span(self, first: int, last: int) -> Groups:
        """The owners from ``first`` up to but not including ``last``, as a view."""
        offsets = self.offsets[first : last + 1]
        rows = slice(offsets[0], offsets[-1])
        return Groups(self.starts[rows], self.ends[rows], offsets - offsets[0])

    def take(self, owners: Indexes) -> Groups:
        """The groups of these owners, in this order."""
        sizes = self.sizes()[owners]
        rows = progressions(self.offsets[owners], sizes, 1)
        return Groups.sized(self.starts[rows], self.ends[rows], sizes)

    def flat(self) -> Intervals:
        """The rows of all owners."""
        return Intervals(self.starts, self.ends)


EMPTY: Times = np.empty(0, np.int64)
_ZERO = np.zeros(1, np.int64)


def merge(starts: Times, ends: Times) -> Intervals:
    """Union of intervals in any order: overlapping and touching ones joined, empty ones dropped."""
    real = starts < ends
    starts, ends = starts[real], ends[real]
    sort_in_place(starts)
    sort_in_place(ends)
    return join(starts, ends)


def merge_each(groups: Groups, hull: tuple[int, int] | None = None) -> Groups:
    """``merge`` within every group, all groups in one pass. All rows lie inside ``hull``, if it is given.

    Each group's time is shifted to a separate lane, so that the two sorts keep the groups in order and no
    two groups overlap.
    """
    if len(groups) == 1:
        merged = merge(groups.starts, groups.ends)
        return Groups(merged.starts, merged.ends, np.array((0, len(merged))))
    if not groups.starts.size:
        return groups
    base, after = hull or (int(groups.starts.min()), int(groups.ends.max()))
    lane = after - base + 1
    if lane * len(groups) > KEYS:
        half = len(groups) // 2
        parts = (groups.span(0, half), groups.span(half, len(groups)))
        return Groups.concat([merge_each(part) for part in parts])
    lanes = np.arange(len(groups) + 1) * lane
    shift = lanes[:-1] - base
    moved = shift.repeat(groups.sizes())
    starts, ends = groups.starts + moved, groups.ends + moved
    real = starts < ends
    if np.count_nonzero(real) < real.size:
        starts, ends = starts[real], ends[real]
    sort_in_place(starts)
    sort_in_place(ends)
    merged = join(starts, ends)
    offsets = merged.starts.searchsorted(lanes)
    back = shift.repeat(offsets[1:] - offsets[:-1])
    return Groups(merged.starts - back, merged.ends - back, offsets)


def merge_owned(starts: Times, ends: Times, owners: Indexes, count: int, hull: tuple[int, int]) -> Groups:
    """``merge`` for each of ``count`` owners, of rows in any order; rows with a length are in ``hull``."""
    real = (starts < ends).nonzero()[0]
    starts, ends, owners = starts[real], ends[real], owners[real]
    order = owners.argsort(kind="stable")
    sizes = np.bincount(owners, minlength=count)
    return merge_each(Groups.sized(starts[order], ends[order], sizes), hull)


def join(starts: Times, ends: Times) -> Intervals:
    """Union of non-empty intervals from their starts and their ends, each array sorted separately.

    There is a gap after end ``m`` if and only if start ``m + 1`` is later. It does not matter which start
    belongs to which end.
    """
    edges = np.ones(starts.size + 1, np.bool_)
    np.greater(starts[1:], ends[:-1], out=edges[1:-1])
    return Intervals(starts[edges[:-1]], ends[edges[1:]])


# Up to this many values, a check of their order costs as much as sorting them.
MANY = 256
# From this average length on, merging sorted runs is faster than sorting.
LONG_RUN = 16


def sort_in_place(moments: Times) -> None:
    """Sort in place. A few sorted runs, as from the cache, are merged in one pass."""
    runs = np.count_nonzero(moments[1:] < moments[:-1]) if moments.size > MANY else 0
    # numpy's stable sort of int64 (timsort) uses existing runs; its default sort does not.
    kind: Literal["stable"] | None = "stable" if 0 < runs * LONG_RUN <= moments.size else None
    if runs or moments.size <= MANY:
        moments.sort(kind=kind)


def clip(intervals: Intervals, start: int, end: int) -> Intervals:
    """The intervals clipped to ``[start, end)``, in the given order, without empty rows."""
    starts, ends = np.maximum(intervals.starts, start), np.minimum(intervals.ends, end)
    return Intervals(starts, ends).take(starts < ends)


def free_parts(busy: Intervals, cover: Intervals) -> Intervals:
    """The parts of the merged ``cover`` outside all busy periods, which are unsorted and may overlap.

    Time outside the cover counts as busy: one period before the cover, one for each gap, one after it. With
    all starts and all ends sorted separately, ``m + 1`` periods have ended at end ``m``, and the next one
    begins at start ``m``. If that is later, the time between is free.
    """
    begun = np.concatenate((busy.starts, cover.ends))
    ended = np.concatenate((cover.starts, busy.ends))
    sort_in_place(begun)
    sort_in_place(ended)
    some = (ended < begun).nonzero()[0]
    return Intervals(ended.take(some), begun.take(some))


def intersect(rows: Intervals, cover: Intervals) -> tuple[Intervals, Indexes, Indexes]:
    """The intersections of each non-empty row with the intervals of the merged ``cover``.

    They come in the order of the rows, with the index of the row and of the cover interval of each.
    """
    first = np.searchsorted(cover.ends, rows.starts, side="right")
    counts = np.searchsorted(cover.starts, rows.ends, side="left") - first
    row = np.repeat(np.arange(len(rows)), counts)
    met = progressions(first, counts, 1)
    starts = np.maximum(rows.starts[row], cover.starts[met])
    return Intervals(starts, np.minimum(rows.ends[row], cover.ends[met])), row, met


def progressions(firsts: Times, counts: Indexes, stride: int) -> Times:
    """Arithmetic progressions in one array: ``counts[i]`` values from ``firsts[i]`` on, ``stride`` apart."""
    after = counts.cumsum()
    total = int(after[-1]) if after.size else 0
    # Subtract the values of one long progression from 0, which is added below.
    firsts = firsts - (after - counts) * stride
    values = firsts.repeat(counts)
    values += np.arange(0, total * stride, stride)
    return values


def gaps(groups: Groups, start: int, end: int) -> Groups:
    """For each owner, the parts of ``[start, end)`` outside the owner's merged and sorted intervals."""
    opens = np.insert(groups.ends, groups.offsets[:-1], start)
    closes = np.insert(groups.starts, groups.offsets[1:], end)
    owners = np.arange(len(groups)).repeat(groups.sizes() + 1)
    return _sized(opens, closes, owners, len(groups))


def common(one: Groups, other: Groups) -> Groups:
    """For each owner, the intersection of two groups of merged and sorted intervals."""
    if not one.starts.size or not other.starts.size:
        return Groups.sized(one.starts[:0], one.ends[:0], np.zeros(len(one), np.int64))
    base = min(int(one.starts.min()), int(other.starts.min()))
    lane = max(int(one.ends.max()), int(other.ends.max())) - base + 1
    # Each owner's time is shifted to a separate lane, so that owners do not overlap.
    shift = np.arange(len(one)) * lane - base
    pieces, rows, _ = intersect(_moved(one, shift), _moved(other, shift))
    owners = one.owners()[rows]
    return _sized(pieces.starts - shift[owners], pieces.ends - shift[owners], owners, len(one))


def _moved(groups: Groups, shift: Times) -> Intervals:
    by = shift.repeat(groups.sizes())
    return Intervals(groups.starts + by, groups.ends + by)


def _sized(starts: Times, ends: Times, owners: Indexes, count: int) -> Groups:
    real = starts < ends
    return Groups.sized(starts[real], ends[real], np.bincount(owners[real], minlength=count))

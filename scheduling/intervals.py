"""Half-open stretches of time as packed arrays: one owner's, or many owners' laid flat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# Milliseconds since 1970 in UTC: the resolution of the timestamps we answer with.
Times = npt.NDArray[np.int64]
# Positions in an array, or of an owner among the owners.
Indexes = npt.NDArray[np.int64]

# Keys of all lanes of one flat pass stay below this, so that sums of two keys still fit an int64.
KEYS = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Stretches of time, ``starts[i]`` included and ``ends[i]`` not, in UTC milliseconds."""

    starts: Times
    ends: Times

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Intervals:
        """Pack pairs as they come: nothing is sorted, merged or dropped."""
        rows = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        return cls(rows[:, 0].copy(), rows[:, 1].copy())

    def __len__(self) -> int:
        return int(self.starts.size)

    def pairs(self) -> list[tuple[int, int]]:
        """As plain pairs, for tests, messages and small answers."""
        return list(zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def take(self, rows: npt.NDArray[np.bool_] | Indexes) -> Intervals:
        """The rows of a mask or of an index, in its order."""
        return Intervals(self.starts[rows], self.ends[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Intervals of many owners laid flat: owner ``i`` has the rows ``offsets[i]:offsets[i + 1]``."""

    starts: Times
    ends: Times
    offsets: Times

    @classmethod
    def of(cls, owners: Iterable[Iterable[tuple[int, int]]]) -> Groups:
        """Pack one iterable of pairs for each owner, as they come."""
        return cls.pack([Intervals.of(pairs) for pairs in owners])

    @classmethod
    def pack(cls, owners: Sequence[Intervals]) -> Groups:
        """Lay the intervals of the owners one after another."""
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
        """Flat rows of which each owner in turn has ``sizes[i]``."""
        counts = np.asarray(sizes, dtype=np.int64)
        return cls(starts, ends, np.concatenate((_ZERO, np.cumsum(counts))))

    def __len__(self) -> int:
        return int(self.offsets.size) - 1

    def sizes(self) -> Indexes:
        """How many rows each owner has."""
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
        """All rows, whoever owns them."""
        return Intervals(self.starts, self.ends)


EMPTY: Times = np.empty(0, np.int64)
_ZERO = np.zeros(1, np.int64)


def merge(starts: Times, ends: Times) -> Intervals:
    """Union of intervals in any order: overlapping and touching ones joined, empty ones dropped."""
    real = starts < ends
    starts, ends = starts[real], ends[real]
    starts.sort()
    ends.sort()
    return join(starts, ends)


def merge_each(groups: Groups) -> Groups:
    """``merge`` within every group, all groups in one pass.

    Each group's time is moved to a lane of its own, so that two sorts keep every group in its
    place and no two groups meet.
    """
    if len(groups) == 1:
        return Groups.pack([merge(groups.starts, groups.ends)])
    if not groups.starts.size:
        return groups
    base = int(groups.starts.min())
    lane = int(groups.ends.max()) - base + 1
    if lane * len(groups) > KEYS:
        half = len(groups) // 2
        parts = (groups.span(0, half), groups.span(half, len(groups)))
        return Groups.concat([merge_each(part) for part in parts])
    lanes = np.arange(len(groups) + 1) * lane
    shift = lanes[:-1] - base
    moved = shift.repeat(groups.sizes())
    starts, ends = groups.starts + moved, groups.ends + moved
    real = starts < ends
    if not real.all():
        starts, ends = starts[real], ends[real]
    starts.sort()
    ends.sort()
    merged = join(starts, ends)
    offsets = merged.starts.searchsorted(lanes)
    back = shift.repeat(offsets[1:] - offsets[:-1])
    return Groups(merged.starts - back, merged.ends - back, offsets)


def join(starts: Times, ends: Times) -> Intervals:
    """Union of non-empty intervals from their starts and their ends, each sorted by itself.

    After ``m`` ends there is a gap exactly where the next start comes later than end ``m``: which
    start belongs to which end does not matter.
    """
    if not starts.size:
        return Intervals(starts, ends)
    gaps = (starts[1:] > ends[:-1]).nonzero()[0]
    return Intervals(np.concatenate((starts[:1], starts[gaps + 1])), np.concatenate((ends[gaps], ends[-1:])))


def clip(intervals: Intervals, start: int, end: int) -> Intervals:
    """What lies within ``[start, end)``, empty rows dropped, in the order given."""
    starts, ends = np.maximum(intervals.starts, start), np.minimum(intervals.ends, end)
    return Intervals(starts, ends).take(starts < ends)


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """What lies in both; both are merged.

    Two intervals run at once from start ``m + 1`` to end ``m``, wherever that end comes later.
    """
    starts = np.concatenate((a.starts, b.starts))
    ends = np.concatenate((a.ends, b.ends))
    # Two sorted runs each, which the stable sort merges three times as fast.
    starts.sort(kind="stable")
    ends.sort(kind="stable")
    starts, ends = starts[1:], ends[:-1]
    both = starts < ends
    return Intervals(starts[both], ends[both])


def cross(rows: Intervals, cover: Intervals) -> tuple[Intervals, Indexes, Indexes]:
    """Each non-empty row cut to each interval of the merged ``cover`` that it meets.

    The pieces come in the order of the rows, with the row and the cover interval that each is from.
    """
    first = np.searchsorted(cover.ends, rows.starts, side="right")
    counts = np.searchsorted(cover.starts, rows.ends, side="left") - first
    row = np.repeat(np.arange(len(rows)), counts)
    met = progressions(first, counts, 1)
    starts = np.maximum(rows.starts[row], cover.starts[met])
    return Intervals(starts, np.minimum(rows.ends[row], cover.ends[met])), row, met


def progressions(firsts: Times, counts: Indexes, stride: int) -> Times:
    """``counts[i]`` values from ``firsts[i]`` on, ``stride`` apart; one progression after another."""
    after = counts.cumsum()
    total = int(after[-1]) if after.size else 0
    values = np.arange(total)
    values *= stride
    values += (firsts - (after - counts) * stride).repeat(counts)
    return values

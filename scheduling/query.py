"""The engine: free stretches and slots of each member, from their busy periods and a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scheduling import few_periods
from scheduling.intervals import (
    EMPTY,
    KEYS,
    Groups,
    Indexes,
    Intervals,
    Times,
    clip,
    free_parts,
    intersect,
    merge,
    merge_each,
    progressions,
    sort_in_place,
)
from scheduling.slot_cutting import SlotRuns, cut, cut_to_clock
from scheduling.windows import ALL_DAY, DateOverride, Window, resolve

# Rows of one pass: about 500 members with 200 periods. Larger passes exceed the CPU cache and cost double.
_ROWS_IN_A_PASS = 100_000
_MEMBERS_IN_A_PASS = 500
# Up to these numbers, plain Python is faster than numpy for a single member. Counting overlaps takes numpy
# twice as many calls.
_FEW_PERIODS = 25
_FEW_PERIODS_WITH_OVERLAPS = 50
_FEW_INTERVALS = 10
_FEW_SLOTS = 256


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters of a slot search, the same for every member; all times and lengths in milliseconds."""

    start: int
    end: int
    duration: int
    # Kept free before and after each busy period.
    padding_before: int = 0
    padding_after: int = 0
    max_overlaps: int = 0
    zone: str = "UTC"
    # None: slots may lie anywhere in the range. An empty tuple: nowhere.
    windows: tuple[Window, ...] | None = None
    # A daily window that applies in addition to ``windows``.
    each_day: Window | None = None
    # From one start of a slot to the next; None: the duration.
    step: int | None = None
    align_clock: bool = False
    # Time before this instant is not free. The range cuts off at it, so it may be the start of a slot.
    not_before: int | None = None
    # Dates that have windows of their own instead of those of ``windows``.
    overrides: tuple[DateOverride, ...] = ()
    # The most slots of each member, earliest first; None: all.
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError(f"empty range from {self.start} to {self.end}")
        if self.duration <= 0 or self.stride <= 0:
            raise ValueError(f"slots need length and step, got {self.duration} and {self.step}")
        if self.padding_before < 0 or self.padding_after < 0 or self.max_overlaps < 0:
            padding = f"{self.padding_before} and {self.padding_after}"
            raise ValueError(f"negative padding {padding} or overlaps {self.max_overlaps}")
        if self.limit is not None and self.limit < 0:
            raise ValueError(f"negative limit {self.limit}")

    @property
    def stride(self) -> int:
        """The distance between the starts of two consecutive slots."""
        return self.duration if self.step is None else self.step

    @property
    def is_padded(self) -> bool:
        """Whether busy periods have padding."""
        return self.padding_before > 0 or self.padding_after > 0

    def busy_range(self) -> tuple[int, int]:
        """The range over which busy periods have to be read: those outside of it do not block the range.

        A period before the range reaches into it by the padding after the period, and the reverse.
        """
        return self.start - self.padding_after, self.end + self.padding_before

    def open_intervals(self) -> Intervals:
        """The parts of the range inside the windows and not too soon: its free time if nothing is busy."""
        inside = self.inside_windows()
        if self.not_before is None or self.not_before <= self.start:
            return inside
        return clip(inside, self.not_before, self.end)

    def inside_windows(self) -> Intervals:
        """The parts of the range inside the windows."""
        if self.windows is None and not self.overrides:
            return self._resolved(None if self.each_day is None else (self.each_day,))
        # Dates without an override are open all day if there are no weekly windows.
        within = self._resolved((ALL_DAY,) if self.windows is None else self.windows, self.overrides)
        return within if self.each_day is None else intersect(within, self._resolved((self.each_day,)))[0]

    def _resolved(
        self, windows: tuple[Window, ...] | None, overrides: tuple[DateOverride, ...] = ()
    ) -> Intervals:
        if windows is None:
            return Intervals(np.array((self.start,)), np.array((self.end,)))
        return resolve(windows, self.zone, self.start, self.end, overrides)


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Slots of many members, by start, then by member index; each ``duration`` milliseconds long."""

    starts: Times
    members: Indexes
    duration: int

    def __len__(self) -> int:
        return int(self.starts.size)

    def firsts(self) -> Indexes:
        """The index of the first slot at each distinct start."""
        new = np.ones(self.starts.size, dtype=bool)
        new[1:] = self.starts[1:] != self.starts[:-1]
        return new.nonzero()[0]


def slots(query: Query, calendars: Groups, member_of: Indexes, members: int) -> Slots:
    """The slots of ``members`` members, where calendar ``i`` belongs to member ``member_of[i]``.

    ``member_of`` never decreases. The busy rows of a calendar come in any order and may overlap,
    touch or be empty. A member without a calendar is free all the time; the caller leaves out members whose
    calendars are not known.
    """
    bits = members.bit_length()
    if query.end - query.start << bits > KEYS:
        raise OverflowError(f"too long a range for {members} members")
    if members == 1:
        starts = _starts_of_one(query, calendars)
        return Slots(starts, np.zeros(starts.size, np.int64), query.duration)
    keys = [EMPTY]
    for first, stretches in _passes(query, calendars, member_of, members):
        runs = _cut(query, stretches)
        owners = stretches.owners()[runs.rows] + first
        # Start and member in one number. numpy sorts numbers several times faster than it sorts indexes.
        firsts = (runs.firsts - query.start << bits) | owners
        keys.append(progressions(firsts, runs.counts, query.stride << bits))
    key = np.concatenate(keys)
    key.sort()
    return Slots((key >> bits) + query.start, key & (1 << bits) - 1, query.duration)


def slots_of_each(query: Query, calendars: Groups, member_of: Indexes, members: int) -> Groups:
    """The slots as intervals, grouped by member and sorted by start; arguments as for ``slots``."""
    parts = []
    for _, stretches in _passes(query, calendars, member_of, members):
        runs = _cut(query, stretches)
        starts = runs.starts(query.stride)
        before = np.append(0, runs.counts.cumsum())
        offsets = before[runs.rows.searchsorted(stretches.offsets)]
        parts.append(Groups(starts, starts + query.duration, offsets))
    return Groups.concat(parts)


def free(query: Query, calendars: Groups, member_of: Indexes, members: int) -> Groups:
    """Each member's maximal free stretches, sorted; arguments as for ``slots``."""
    return Groups.concat([part for _, part in _passes(query, calendars, member_of, members)])


def max_slots_of(query: Query, members: int) -> int:
    """The most slots that ``members`` members can have, whatever their busy periods; no slot is built.

    It is exact if nothing is busy and the step is not longer than the slot. With a longer step, busy time
    can shift starts closer together, so the slots are counted end to end.
    """
    within = query.open_intervals()
    if query.align_clock:
        runs = cut_to_clock(within, query.duration, query.stride, query.zone)
    else:
        runs = cut(within, query.duration, min(query.stride, query.duration))
    count = int(runs.counts.sum())
    return (count if query.limit is None else min(count, query.limit)) * members


def busy_periods(query: Query, calendars: Groups) -> Groups:
    """Each calendar's busy periods, merged and clipped to ``query.busy_range()``, without padding."""
    return merge_each(_cut_to_busy_range(query, calendars), query.busy_range())


def busy_union(busy: Groups | Intervals, start: int, end: int) -> Intervals:
    """The periods of all owners, merged and clipped to ``[start, end)``."""
    return clip(merge(busy.starts, busy.ends), start, end)


def cut_all(query: Query, stretches: Intervals) -> SlotRuns:
    """The slots of free stretches, without regard to ``query.limit``."""
    if query.align_clock:
        return cut_to_clock(stretches, query.duration, query.stride, query.zone)
    return cut(stretches, query.duration, query.stride)


def _cut(query: Query, stretches: Groups) -> SlotRuns:
    """The slots of each member's free stretches, at most ``query.limit`` for each member."""
    runs = cut_all(query, stretches.flat())
    return runs if query.limit is None else runs.limited(stretches.owners()[runs.rows], query.limit)


def _passes(
    query: Query, calendars: Groups, member_of: Indexes, members: int
) -> Iterator[tuple[int, Groups]]:
    """The free stretches in blocks of members; each block comes with the index of its first member."""
    within = query.open_intervals()
    if members == 1:
        yield 0, Groups.pack([_free_of_one(query, calendars, within)])
        return
    rows = int(calendars.starts.size)
    block = max(1, min(_MEMBERS_IN_A_PASS, _ROWS_IN_A_PASS * members // max(1, rows)))
    if members <= block:
        yield 0, _free(query, calendars, member_of, members, within)
        return
    for first in range(0, members, block):
        last = min(first + block, members)
        low, high = member_of.searchsorted((first, last))
        yield (
            first,
            _free(query, calendars.span(low, high), member_of[low:high] - first, last - first, within),
        )


def _free(query: Query, calendars: Groups, member_of: Indexes, members: int, within: Intervals) -> Groups:
    """``within`` minus the time that more than ``max_overlaps`` padded periods of a member cover."""
    opening, closing = query.busy_range()
    counted = _counted(query, calendars)
    # Each member's time is shifted to a separate lane, so that one sort keeps the members apart.
    lanes = np.arange(members + 1) * (closing - opening + 1)
    shift = lanes[:-1] - opening
    bounds = counted.offsets[member_of.searchsorted(np.arange(members + 1))]
    moved = shift.repeat(bounds[1:] - bounds[:-1])
    busy = _blocking(query, Intervals(counted.starts + moved, counted.ends + moved))
    every = shift[:, np.newaxis]
    found = free_parts(busy, Intervals((every + within.starts).ravel(), (every + within.ends).ravel()))
    offsets = found.starts.searchsorted(lanes)
    back = shift.repeat(offsets[1:] - offsets[:-1])
    return Groups(found.starts - back, found.ends - back, offsets)


def _starts_of_one(query: Query, calendars: Groups) -> Times:
    """The starts of the slots of a single member."""
    within = query.open_intervals()
    if _is_small(query, calendars, within):
        blocks = _few_blocks(query, calendars)
        pairs = zip(within.starts.tolist(), within.ends.tolist(), strict=True)
        found = few_periods.starts(*blocks, pairs, query.duration, query.stride)
        return np.array(found[: query.limit], np.int64)
    runs = cut_all(query, _free_of_one(query, calendars, within))
    if query.limit is not None:
        runs = runs.limited(np.zeros(runs.rows.size, np.int64), query.limit)
    return runs.starts(query.stride)


def _few_blocks(query: Query, calendars: Groups) -> tuple[list[int], list[int]]:
    return few_periods.blocking(calendars, query.padding_before, query.padding_after, query.max_overlaps)


def _is_small(query: Query, calendars: Groups, within: Intervals) -> bool:
    """Whether plain Python finds a single member's slots faster than numpy."""
    if query.align_clock or calendars.starts.size > _FEW_PERIODS or len(within) > _FEW_INTERVALS:
        return False
    return int((within.ends - within.starts).sum()) <= _FEW_SLOTS * query.stride


def _free_of_one(query: Query, calendars: Groups, within: Intervals) -> Intervals:
    """``_free`` for a single member, without lanes: they would take half the time of a small query."""
    if query.max_overlaps and calendars.starts.size <= _FEW_PERIODS_WITH_OVERLAPS:
        opens, closes = _few_blocks(query, calendars)
        return free_parts(Intervals(np.array(opens, np.int64), np.array(closes, np.int64)), within)
    return free_parts(_blocking(query, _counted(query, calendars).flat()), within)


def _blocking(query: Query, periods: Intervals) -> Intervals:
    """The time that more than ``max_overlaps`` of the periods cover, padding included; in any order.

    With K = ``max_overlaps``, and starts and ends each sorted separately: K + 1 periods overlap from start
    number ``m + K`` to end number ``m``, if that start is earlier. This holds across lanes too: padding may
    leave a lane's busy range, but never reaches the query's range in another lane.
    """
    starts, ends = periods.starts, periods.ends
    if query.is_padded:
        starts, ends = starts - query.padding_before, ends + query.padding_after
    if not query.max_overlaps:
        return Intervals(starts, ends)
    sort_in_place(starts)
    sort_in_place(ends)
    starts, ends = starts[query.max_overlaps :], ends[: -query.max_overlaps]
    some = (starts < ends).nonzero()[0]
    return Intervals(starts.take(some), ends.take(some))


def _counted(query: Query, calendars: Groups) -> Groups:
    """The periods clipped to the busy range; merged within each calendar if overlaps are counted."""
    if query.max_overlaps:
        return busy_periods(query, calendars)
    # If one period is enough to block, merging changes nothing. But padding must not give an empty period a
    # length. Empty periods are therefore moved to the start of the busy range, where their padding ends
    # before the query's range starts.
    opening = query.busy_range()[0]
    cut = _cut_to_busy_range(query, calendars)
    empty = cut.starts >= cut.ends
    if np.count_nonzero(empty):
        cut.starts[empty] = opening
        cut.ends[empty] = opening
    return cut


def _cut_to_busy_range(query: Query, calendars: Groups) -> Groups:
    """The periods clipped to the busy range; a row outside of it ends before it starts."""
    opening, closing = query.busy_range()
    starts, ends = np.maximum(calendars.starts, opening), np.minimum(calendars.ends, closing)
    return Groups(starts, ends, calendars.offsets)


@dataclass(frozen=True, slots=True, eq=False)
class Requirement:
    """At least ``required`` of ``members`` have to be free; members are indexes without repetition."""

    members: Indexes
    required: int


def shared(
    found: Slots, requirements: Sequence[Requirement], members: int, limit: int | None = None
) -> Slots:
    """The slots of ``found`` at the starts that meet every requirement.

    ``found`` has the slots of ``members`` members. Its query aligns to the clock: slots of different members
    are on one grid then. ``limit`` is the maximum number of starts, earliest first.
    """
    firsts = found.firsts()
    enough = np.ones(firsts.size, dtype=bool)
    for requirement in requirements:
        counts = np.zeros(members, np.int64)
        counts[requirement.members] = 1
        # The number of these members that have a slot at each start.
        free = np.add.reduceat(counts.take(found.members), firsts) if firsts.size else firsts
        enough &= free >= requirement.required
    if limit is not None:
        enough[enough.nonzero()[0][limit:]] = False
    rows = enough.repeat(np.append(firsts, len(found))[1:] - firsts).nonzero()[0]
    return Slots(found.starts.take(rows), found.members.take(rows), found.duration)

"""Busy calendars and a question in; each member's free stretches and slots out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scheduling.intervals import (
    EMPTY,
    KEYS,
    Groups,
    Indexes,
    Intervals,
    Times,
    clip,
    cross,
    merge,
    merge_each,
    outside,
    progressions,
    put_in_order,
)
from scheduling.slots import SlotRuns, cut, cut_to_clock
from scheduling.windows import Window, resolve

# Rows of one flat pass: about 500 members of 200 periods. Larger passes leave the cache and cost double.
_ROWS_IN_A_PASS = 100_000
_MEMBERS_IN_A_PASS = 500


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of every member; all times and lengths in milliseconds."""

    start: int
    end: int
    duration: int
    padding: int = 0
    max_overlaps: int = 0
    zone: str = "UTC"
    # None: the whole range. An empty tuple: never.
    windows: tuple[Window, ...] | None = None
    # A slot lies inside this one as well.
    each_day: Window | None = None
    # From one start of a slot to the next; None: the duration.
    step: int | None = None
    align_clock: bool = False

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError(f"empty range from {self.start} to {self.end}")
        if self.duration <= 0 or self.stride <= 0:
            raise ValueError(f"slots need length and step, got {self.duration} and {self.step}")
        if self.padding < 0 or self.max_overlaps < 0:
            raise ValueError(f"negative padding {self.padding} or overlaps {self.max_overlaps}")

    @property
    def stride(self) -> int:
        """From one start to the next."""
        return self.duration if self.step is None else self.step

    def busy_range(self) -> tuple[int, int]:
        """The range whose busy periods can matter: what has to be read."""
        return self.start - self.padding, self.end + self.padding

    def within(self) -> Intervals:
        """Range and windows: where a slot may lie when nothing is busy."""
        if self.windows is None:
            return self._resolved(None if self.each_day is None else (self.each_day,))
        within = self._resolved(self.windows)
        return within if self.each_day is None else cross(within, self._resolved((self.each_day,)))[0]

    def _resolved(self, windows: tuple[Window, ...] | None) -> Intervals:
        if windows is None:
            return Intervals(np.array((self.start,)), np.array((self.end,)))
        return resolve(windows, self.zone, self.start, self.end)


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Slots of many members, by start, then by member index; each ``duration`` milliseconds long."""

    starts: Times
    members: Indexes
    duration: int

    def __len__(self) -> int:
        return int(self.starts.size)


def slots(query: Query, calendars: Groups, member_of: Indexes, members: int) -> Slots:
    """The slots of ``members`` members, calendar ``i`` being one of member ``member_of[i]``'s.

    ``member_of`` never decreases. The busy rows of a calendar come in any order and may overlap,
    touch or be empty. A member without a calendar is free all the time: to say nothing about
    somebody, leave them out.
    """
    bits = members.bit_length()
    if (query.end - query.start << bits) > KEYS:
        raise OverflowError(f"too long a range for {members} members")
    if members == 1:
        starts = _cut(query, _free_of_one(query, calendars, query.within())).starts(query.stride)
        return Slots(starts, np.zeros(starts.size, np.int64), query.duration)
    keys = [EMPTY]
    for first, stretches in _passes(query, calendars, member_of, members):
        combs = _cut(query, stretches.flat())
        owner = stretches.owners()[combs.rows] + first
        # Start and member in one number: it sorts into the order of the answer, and a step is one sum.
        firsts = (combs.firsts - query.start << bits) | owner
        keys.append(progressions(firsts, combs.counts, query.stride << bits))
    key = np.concatenate(keys)
    key.sort()
    return Slots((key >> bits) + query.start, key & (1 << bits) - 1, query.duration)


def slots_of_each(query: Query, calendars: Groups, member_of: Indexes, members: int) -> Groups:
    """The same slots as stretches, those of each member by start; arguments as for ``slots``."""
    parts = []
    for _, stretches in _passes(query, calendars, member_of, members):
        combs = _cut(query, stretches.flat())
        starts = combs.starts(query.stride)
        before = np.append(0, combs.counts.cumsum())
        offsets = before[combs.rows.searchsorted(stretches.offsets)]
        parts.append(Groups(starts, starts + query.duration, offsets))
    return Groups.concat(parts)


def free(query: Query, calendars: Groups, member_of: Indexes, members: int) -> Groups:
    """Each member's maximal free stretches, sorted; arguments as for ``slots``."""
    return Groups.concat([part for _, part in _passes(query, calendars, member_of, members)])


def count_limit(query: Query, members: int) -> int:
    """At most how many slots ``members`` members can have, whatever is busy, without making them.

    Exact when nothing is busy, unless the step is longer than the slot: then busy time can shift
    starts closer together, and the count is of slots laid end to end.
    """
    within = query.within()
    if query.align_clock:
        combs = cut_to_clock(within, query.duration, query.stride, query.zone)
    else:
        combs = cut(within, query.duration, min(query.stride, query.duration))
    return int(combs.counts.sum()) * members


def busy_periods(query: Query, calendars: Groups) -> Groups:
    """Each calendar's busy periods, merged and cut to what can matter; not padded."""
    return merge_each(_cut_to_busy_range(query, calendars), query.busy_range())


def busy_union(busy: Groups | Intervals, start: int, end: int) -> Intervals:
    """All periods merged, whoever has them, and clipped to the range."""
    return clip(merge(busy.starts, busy.ends), start, end)


def _cut(query: Query, stretches: Intervals) -> SlotRuns:
    if query.align_clock:
        return cut_to_clock(stretches, query.duration, query.stride, query.zone)
    return cut(stretches, query.duration, query.stride)


def _passes(
    query: Query, calendars: Groups, member_of: Indexes, members: int
) -> Iterator[tuple[int, Groups]]:
    """Blocks of members, each as its first member and the free stretches of its members."""
    within = query.within()
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
    """Range and windows without what more than ``max_overlaps`` padded periods of a member cover."""
    opening, closing = query.busy_range()
    counted = _counted(query, calendars)
    # Each member's time in a lane of its own, so that sorting all lanes keeps every member in place.
    lanes = np.arange(members + 1) * (closing - opening + 1)
    shift = lanes[:-1] - opening
    bounds = counted.offsets[member_of.searchsorted(np.arange(members + 1))]
    moved = shift.repeat(bounds[1:] - bounds[:-1])
    busy = _blocking(query, Intervals(counted.starts + moved, counted.ends + moved))
    every = shift[:, np.newaxis]
    found = outside(busy, Intervals((every + within.starts).ravel(), (every + within.ends).ravel()))
    offsets = found.starts.searchsorted(lanes)
    back = shift.repeat(offsets[1:] - offsets[:-1])
    return Groups(found.starts - back, found.ends - back, offsets)


def _free_of_one(query: Query, calendars: Groups, within: Intervals) -> Intervals:
    """The same for a single member, who needs no lane: that would take half of a small question's time."""
    return outside(_blocking(query, _counted(query, calendars).flat()), within)


def _blocking(query: Query, periods: Intervals) -> Intervals:
    """When more than ``max_overlaps`` of the counted periods run, padding included; in any order.

    With starts and ends each sorted by itself, K + 1 run from the start numbered ``m + K`` until the end
    numbered ``m``. In lanes too: padding reaches beyond a lane's busy range, never into the next one's range.
    """
    starts, ends = periods.starts, periods.ends
    if query.padding:
        starts, ends = starts - query.padding, ends + query.padding
    if not query.max_overlaps:
        return Intervals(starts, ends)
    put_in_order(starts)
    put_in_order(ends)
    starts, ends = starts[query.max_overlaps :], ends[: -query.max_overlaps]
    some = (starts < ends).nonzero()[0]
    return Intervals(starts.take(some), ends.take(some))


def _counted(query: Query, calendars: Groups) -> Groups:
    """The periods that count, merged within a calendar and cut to what can matter."""
    if query.max_overlaps:
        return busy_periods(query, calendars)
    # Where one period already blocks, merging first changes nothing. Only the empty ones must not be
    # widened into real ones: at the opening none is.
    opening = query.busy_range()[0]
    cut = _cut_to_busy_range(query, calendars)
    empty = cut.starts >= cut.ends
    if np.count_nonzero(empty):
        cut.starts[empty] = opening
        cut.ends[empty] = opening
    return cut


def _cut_to_busy_range(query: Query, calendars: Groups) -> Groups:
    """New rows, of which those outside end before they start."""
    opening, closing = query.busy_range()
    starts, ends = np.maximum(calendars.starts, opening), np.minimum(calendars.ends, closing)
    return Groups(starts, ends, calendars.offsets)

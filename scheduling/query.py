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
)
from scheduling.slots import Combs, cut, cut_to_clock
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
            return Intervals.of([(self.start, self.end)])
        return resolve(self.windows, self.zone, self.start, self.end)


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
    within = query.within()
    keys = [EMPTY]
    for first, unblocked in _passes(query, calendars, member_of, members):
        stretches, row = _meet(unblocked, within)
        combs = _cut(query, stretches)
        owner = unblocked.owners()[row[combs.rows]] + first
        # Start and member in one number: it sorts into the order of the answer, and a step is one sum.
        firsts = (combs.firsts - query.start << bits) | owner
        keys.append(Combs(firsts, combs.counts, combs.rows).starts(query.stride << bits))
    key = np.concatenate(keys)
    key.sort()
    return Slots((key >> bits) + query.start, key & (1 << bits) - 1, query.duration)


def free(query: Query, calendars: Groups, member_of: Indexes, members: int) -> Groups:
    """Each member's maximal free stretches, sorted; arguments as for ``slots``."""
    within = query.within()
    parts = []
    for _, unblocked in _passes(query, calendars, member_of, members):
        stretches, row = _meet(unblocked, within)
        sizes = np.bincount(unblocked.owners()[row], minlength=len(unblocked))
        parts.append(Groups.sized(stretches.starts, stretches.ends, sizes))
    return Groups.concat(parts)


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


def busy_union(busy: Groups | Intervals, start: int, end: int) -> Intervals:
    """All periods merged, whoever has them, and clipped to the range."""
    return clip(merge(busy.starts, busy.ends), start, end)


def _cut(query: Query, stretches: Intervals) -> Combs:
    if query.align_clock:
        return cut_to_clock(stretches, query.duration, query.stride, query.zone)
    return cut(stretches, query.duration, query.stride)


def _meet(unblocked: Groups, within: Intervals) -> tuple[Intervals, Indexes]:
    """The free stretches, and the unblocked row that each is of."""
    stretches, row, _ = cross(unblocked.flat(), within)
    return stretches, row


def _passes(
    query: Query, calendars: Groups, member_of: Indexes, members: int
) -> Iterator[tuple[int, Groups]]:
    """Blocks of members, each as its first member and the unblocked stretches of its members."""
    rows = int(calendars.starts.size)
    block = max(1, min(_MEMBERS_IN_A_PASS, _ROWS_IN_A_PASS * members // max(1, rows)))
    edges = [*range(0, members, block), members]
    bounds = np.searchsorted(member_of, edges)
    for number, first in enumerate(edges[:-1]):
        here = slice(bounds[number], bounds[number + 1])
        part = calendars.span(here.start, here.stop)
        yield first, _unblocked(query, part, member_of[here] - first, edges[number + 1] - first)


def _unblocked(query: Query, calendars: Groups, member_of: Indexes, members: int) -> Groups:
    """The stretches of the range that at most ``max_overlaps`` padded periods of a member cover.

    At a moment when ``m`` of a member's periods have ended, no more than K run exactly until the
    one numbered ``m + K`` starts: so the answer is the union over m of [end m - 1, start m + K),
    with starts and ends each sorted by itself.
    """
    allowed = query.max_overlaps + 1
    opening, closing = query.busy_range()
    starts, ends, owner = _counted(query, calendars, member_of)
    # Every member's time in a lane of its own, with an empty period at its opening: the end number -1.
    span = closing - opening + 1
    lanes = np.arange(members) * span
    shift = lanes[owner] - opening
    begun = np.sort(np.concatenate((lanes, starts + shift)))
    ended = np.sort(np.concatenate((lanes, ends + shift)))

    lo = ended + query.padding
    hi = np.repeat(lanes + (query.end - opening), np.bincount(owner, minlength=members) + 1)
    # Where fewer than K + 1 periods are left in a lane this takes a start of a later lane: past the end too.
    np.minimum(hi[:-allowed], begun[allowed:] - query.padding, out=hi[:-allowed])
    return _in_lanes(lo, hi, lanes, query.start - query.padding, span)


def _counted(query: Query, calendars: Groups, member_of: Indexes) -> tuple[Times, Times, Indexes]:
    """The periods that count, with the member of each: merged within a calendar, cut to what can matter."""
    opening, closing = query.busy_range()
    starts, ends = np.maximum(calendars.starts, opening), np.minimum(calendars.ends, closing)
    if query.max_overlaps:
        merged = merge_each(Groups(starts, ends, calendars.offsets))
        return merged.starts, merged.ends, np.repeat(member_of, merged.sizes())
    # Where one period already blocks, merging first changes nothing: only the empty ones must go.
    real = np.flatnonzero(starts < ends)
    return starts[real], ends[real], np.repeat(member_of, calendars.sizes())[real]


def _in_lanes(lo: Times, hi: Times, lanes: Times, opening: int, span: int) -> Groups:
    """Candidates ``[lo, hi)`` back in their members' own time: empty ones dropped, meeting ones joined."""
    real = np.flatnonzero(lo < hi)
    lo, hi = lo[real], hi[real]
    apart = np.flatnonzero(lo[1:] > hi[:-1])
    if lo.size:
        lo = np.concatenate((lo[:1], lo[apart + 1]))
        hi = np.concatenate((hi[apart], hi[-1:]))
    offsets = np.searchsorted(lo, np.append(lanes, lanes.size * span))
    back = np.repeat(lanes - opening, np.diff(offsets))
    return Groups(lo - back, hi - back, offsets)

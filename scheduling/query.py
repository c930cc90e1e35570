"""The engine: free stretches and slots of each member, from their busy periods and a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from scheduling import few_periods
from scheduling.hours import Hours, within_all
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
    # Hours in zones of their own, which apply in addition to ``windows`` and ``each_day``.
    hours: tuple[Hours, ...] = ()

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
        """The parts of the range inside the windows and the hours."""
        inside = self._inside_own_windows()
        for each in self.hours:
            inside = intersect(inside, each.within(self.start, self.end))[0]
        return inside

    def of_member(self, own: Own | None) -> Query:
        """The query for one member."""
        if own is None:
            return self
        return replace(
            self,
            windows=None,
            overrides=(),
            hours=own.hours,
            padding_before=own.padding_before,
            padding_after=own.padding_after,
            not_before=own.not_before,
        )

    def widened(self, own: OfMembers) -> Query:
        """The query with the longest paddings of all members: its ``busy_range`` is enough for each."""
        terms = [each for each in own or () if each is not None]
        if not terms:
            return self
        before = [each.padding_before for each in terms]
        after = [each.padding_after for each in terms]
        if own is not None and len(terms) < len(own):
            before.append(self.padding_before)
            after.append(self.padding_after)
        return replace(self, padding_before=max(before), padding_after=max(after))

    def _inside_own_windows(self) -> Intervals:
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


class Own(NamedTuple):
    """What differs for a member from the query, whose windows, overrides and hours do not count.

    ``hours`` all apply; none: any time. Lengths and ``not_before`` as in ``Query``.
    """

    hours: tuple[Hours, ...]
    padding_before: int
    padding_after: int
    not_before: int | None


# What differs, by member; None: nothing, for a member or for all of them.
OfMembers = Sequence[Own | None] | None


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


def slots(query: Query, calendars: Groups, member_of: Indexes, members: int, own: OfMembers = None) -> Slots:
    """The slots of ``members`` members, where calendar ``i`` belongs to member ``member_of[i]``.

    ``member_of`` never decreases. The busy rows of a calendar come in any order and may overlap,
    touch or be empty. A member without a calendar is free all the time; the caller leaves out members whose
    calendars are not known.
    """
    bits = members.bit_length()
    if query.end - query.start << bits > KEYS:
        raise OverflowError(f"too long a range for {members} members")
    if members == 1:
        starts = _starts_of_one(query if own is None else query.of_member(own[0]), calendars)
        return Slots(starts, np.zeros(starts.size, np.int64), query.duration)
    keys = [EMPTY]
    for first, stretches in _passes(query, calendars, member_of, members, own):
        runs = _cut(query, stretches)
        owners = stretches.owners()[runs.rows] + first
        # Start and member in one number. numpy sorts numbers several times faster than it sorts indexes.
        firsts = (runs.firsts - query.start << bits) | owners
        keys.append(progressions(firsts, runs.counts, query.stride << bits))
    key = np.concatenate(keys)
    key.sort()
    return Slots((key >> bits) + query.start, key & (1 << bits) - 1, query.duration)


def slots_of_each(
    query: Query, calendars: Groups, member_of: Indexes, members: int, own: OfMembers = None
) -> Groups:
    """The slots as intervals, grouped by member and sorted by start; arguments as for ``slots``."""
    parts = []
    for _, stretches in _passes(query, calendars, member_of, members, own):
        runs = _cut(query, stretches)
        starts = runs.starts(query.stride)
        before = np.append(0, runs.counts.cumsum())
        offsets = before[runs.rows.searchsorted(stretches.offsets)]
        parts.append(Groups(starts, starts + query.duration, offsets))
    return Groups.concat(parts)


def free(query: Query, calendars: Groups, member_of: Indexes, members: int, own: OfMembers = None) -> Groups:
    """Each member's maximal free stretches, sorted; arguments as for ``slots``."""
    return Groups.concat([part for _, part in _passes(query, calendars, member_of, members, own)])


def max_slots_of(query: Query, members: int, own: OfMembers = None) -> int:
    """The most slots that ``members`` members can have, whatever their busy periods; no slot is built.

    It is exact if nothing is busy and the step is not longer than the slot. With a longer step, busy time
    can shift starts closer together, so the slots are counted end to end.
    """
    if own is not None:
        each = _Terms.of(query, own).within
        counts = _most_runs(query, each.flat())
        of_each = np.bincount(each.owners()[counts.rows], counts.counts, minlength=members)
        return int((of_each if query.limit is None else np.minimum(of_each, query.limit)).sum())
    count = int(_most_runs(query, query.open_intervals()).counts.sum())
    return (count if query.limit is None else min(count, query.limit)) * members


def _most_runs(query: Query, within: Intervals) -> SlotRuns:
    if query.align_clock:
        return cut_to_clock(within, query.duration, query.stride, query.zone)
    return cut(within, query.duration, min(query.stride, query.duration))


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


@dataclass(frozen=True, slots=True, eq=False)
class _Terms:
    """The time that is open to each member, and each member's paddings; None: those of the query."""

    within: Groups
    paddings: tuple[Times, Times] | None

    @classmethod
    def of(cls, query: Query, own: Sequence[Own | None]) -> _Terms:
        plain = Own(
            (Hours(query.zone, query.windows, query.overrides), *query.hours),
            query.padding_before,
            query.padding_after,
            query.not_before,
        )
        each = [plain if terms is None else terms for terms in own]
        within = within_all([terms.hours for terms in each], query.start, query.end)
        within = _later(_on_each_day(query, within), [terms.not_before for terms in each])
        before, after = (
            np.array(lengths, np.int64)
            for lengths in ([terms.padding_before for terms in each], [terms.padding_after for terms in each])
        )
        same = not (np.any(before != query.padding_before) or np.any(after != query.padding_after))
        return cls(within, None if same else (before, after))

    def span(self, first: int, last: int) -> _Terms:
        """The members from ``first`` up to but not including ``last``."""
        of_some = self.paddings and (self.paddings[0][first:last], self.paddings[1][first:last])
        return _Terms(self.within.span(first, last), of_some)


def _on_each_day(query: Query, within: Groups) -> Groups:
    if query.each_day is None:
        return within
    daily = resolve((query.each_day,), query.zone, query.start, query.end)
    parts, rows, _ = intersect(within.flat(), daily)
    return Groups.sized(parts.starts, parts.ends, np.bincount(within.owners()[rows], minlength=len(within)))


def _later(within: Groups, not_before: Sequence[int | None]) -> Groups:
    """The parts that are not before the moment of each member."""
    if not any(each is not None for each in not_before):
        return within
    first = int(within.starts.min(initial=0))
    owners = within.owners()
    moments = np.array([first if each is None else each for each in not_before], np.int64)[owners]
    starts = np.maximum(within.starts, moments)
    real = starts < within.ends
    return Groups.sized(starts[real], within.ends[real], np.bincount(owners[real], minlength=len(within)))


def _passes(
    query: Query, calendars: Groups, member_of: Indexes, members: int, own: OfMembers = None
) -> Iterator[tuple[int, Groups]]:
    """The free stretches in blocks of members; each block comes with the index of its first member."""
    if members == 1:
        if own is not None:
            query = query.of_member(own[0])
        yield 0, Groups.pack([_free_of_one(query, calendars, query.open_intervals())])
        return
    within = query.open_intervals() if own is None else None
    terms = None if own is None else _Terms.of(query, own)
    query = query.widened(own)
    rows = int(calendars.starts.size)
    block = max(1, min(_MEMBERS_IN_A_PASS, _ROWS_IN_A_PASS * members // max(1, rows)))
    if members <= block:
        yield 0, _free(query, calendars, member_of, members, within, terms)
        return
    for first in range(0, members, block):
        last = min(first + block, members)
        low, high = member_of.searchsorted((first, last))
        of_block = terms and terms.span(first, last)
        part = calendars.span(low, high), member_of[low:high] - first, last - first
        yield first, _free(query, *part, within, of_block)


def _free(
    query: Query,
    calendars: Groups,
    member_of: Indexes,
    members: int,
    within: Intervals | None,
    terms: _Terms | None,
) -> Groups:
    """The open time without the time that more than ``max_overlaps`` padded periods of a member cover.

    ``within`` is open to every member, or ``terms`` says what is open to each. Then the paddings of the query
    are the longest ones of all members.
    """
    opening, closing = query.busy_range()
    counted = _counted(query, calendars)
    # Each member's time is shifted to a separate lane, so that one sort keeps the members apart.
    lanes = np.arange(members + 1) * (closing - opening + 1)
    shift = lanes[:-1] - opening
    bounds = counted.offsets[member_of.searchsorted(np.arange(members + 1))]
    rows = bounds[1:] - bounds[:-1]
    moved = shift.repeat(rows)
    periods = Intervals(counted.starts + moved, counted.ends + moved)
    if terms is not None:
        paddings = terms.paddings and (terms.paddings[0].repeat(rows), terms.paddings[1].repeat(rows))
        shifted = shift.repeat(terms.within.sizes())
        cover = Intervals(terms.within.starts + shifted, terms.within.ends + shifted)
        busy = _blocking(query, periods, paddings)
    else:
        assert within is not None, "one of the two is given"
        every = shift[:, np.newaxis]
        busy = _blocking(query, periods)
        cover = Intervals((every + within.starts).ravel(), (every + within.ends).ravel())
    found = free_parts(busy, cover)
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


def _blocking(query: Query, periods: Intervals, paddings: tuple[Times, Times] | None = None) -> Intervals:
    """The time that more than ``max_overlaps`` of the periods cover, padding included; in any order.

    With K = ``max_overlaps``, and starts and ends each sorted separately: K + 1 periods overlap from start
    number ``m + K`` to end number ``m``, if that start is earlier. This holds across lanes too: padding may
    leave a lane's busy range, but never reaches the query's range in another lane. ``paddings`` are those of
    each period, instead of those of the query.
    """
    starts, ends = periods.starts, periods.ends
    if paddings is not None:
        starts, ends = starts - paddings[0], ends + paddings[1]
    elif query.is_padded:
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


def least_busy_first(found: Slots, calendars: Groups, member_of: Indexes, members: int, around: int) -> Slots:
    """The slots with the members of each start by how much they are booked, the least booked first.

    Booked is the union of a member's busy periods, without padding, from ``around`` milliseconds before the
    start to as long after it. Members with the same amount keep their order.
    """
    if not len(found):
        return found
    low, high = int(found.starts.min()) - around, int(found.starts.max()) + around
    of_member = calendars.offsets[member_of.searchsorted(np.arange(members + 1))]
    clipped = Groups(calendars.starts.clip(low, high), calendars.ends.clip(low, high), of_member)
    busy = merge_each(clipped, (low, high))
    booked = _booked(busy, found.members, found.starts + around, low, high)
    booked -= _booked(busy, found.members, found.starts - around, low, high)
    order = np.lexsort((found.members, booked, found.starts))
    return Slots(found.starts[order], found.members[order], found.duration)


def _booked(busy: Groups, members: Indexes, moments: Times, low: int, high: int) -> Times:
    """How much each of ``members`` is booked from ``low`` to each moment; all times lie up to ``high``."""
    lane = high - low + 1
    shift = busy.owners() * lane - low
    starts, ends = busy.starts + shift, busy.ends + shift
    at = members * lane - low + moments
    # The sum of all periods that have begun, minus the part of the last one that is not over.
    begun = np.append(0, (ends - starts).cumsum())
    number = starts.searchsorted(at, "right")
    last = np.append(0, ends)[number]
    booked: Times = begun[number] - np.maximum(last - at, 0) - begun[busy.offsets[members]]
    return booked


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

"""Each member's time by kind: busy, blocked by padding, or busy but within the allowed overlaps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scheduling.intervals import EMPTY, Groups, Indexes, Intervals, Times, intersect, merge_each
from scheduling.query import Query, free


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Layers of a query's range for each member, each layer merged and sorted.

    - ``busy``: busy time that blocks slots.
    - ``padded``: the same with its padding; empty if the query has no padding.
    - ``tolerated``: busy time that blocks nothing, because at most ``max_overlaps`` periods overlap there.

    Windows and ``not_before`` are ignored: they are the same for all members.
    """

    padded: Groups
    busy: Groups
    tolerated: Groups


def layers(query: Query, calendars: Groups, member_of: Indexes, members: int) -> Layers:
    """The layers of each member; arguments as for ``scheduling.query.slots``."""
    of_member = calendars.offsets[member_of.searchsorted(np.arange(members + 1))]
    starts = calendars.starts.clip(query.start, query.end)
    ends = calendars.ends.clip(query.start, query.end)
    busy = merge_each(Groups(starts, ends, of_member), (query.start, query.end))
    nothing = Groups.sized(EMPTY, EMPTY, np.zeros(members, np.int64))
    if not query.is_padded and not query.max_overlaps:
        return Layers(nothing, busy, nothing)
    # Free time of the whole range, without windows. The rest is blocked.
    whole = replace(query, windows=None, each_day=None, overrides=(), not_before=None)
    left = free(whole, calendars, member_of, members)
    blocked = gaps(left, query.start, query.end)
    if not query.max_overlaps:
        return Layers(blocked, busy, nothing)
    padded = blocked if query.is_padded else nothing
    return Layers(padded, common(busy, blocked), common(busy, left))


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

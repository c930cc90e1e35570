"""Each member's time by kind: busy, blocked by padding, or busy but within the allowed overlaps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scheduling.intervals import EMPTY, Groups, Indexes, common, gaps, merge_each
from scheduling.query import OfMembers, Query, free


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Layers of a query's range for each member, each layer merged and sorted.

    - ``busy``: busy time that blocks slots.
    - ``padded``: the same with its padding; empty if the query has no padding.
    - ``tolerated``: busy time that blocks nothing, because at most ``max_overlaps`` periods overlap there.

    Windows and ``not_before`` are ignored.
    """

    padded: Groups
    busy: Groups
    tolerated: Groups


def layers(
    query: Query, calendars: Groups, member_of: Indexes, members: int, own: OfMembers = None
) -> Layers:
    """The layers of each member; arguments as for ``scheduling.query.slots``."""
    of_member = calendars.offsets[member_of.searchsorted(np.arange(members + 1))]
    starts = calendars.starts.clip(query.start, query.end)
    ends = calendars.ends.clip(query.start, query.end)
    busy = merge_each(Groups(starts, ends, of_member), (query.start, query.end))
    nothing = Groups.sized(EMPTY, EMPTY, np.zeros(members, np.int64))
    is_padded = query.widened(own).is_padded
    if not is_padded and not query.max_overlaps:
        return Layers(nothing, busy, nothing)
    # Free time of the whole range, without windows. The rest is blocked.
    whole = replace(query, windows=None, each_day=None, overrides=(), not_before=None, hours=())
    anytime = own and [each and each._replace(hours=(), not_before=None) for each in own]
    left = free(whole, calendars, member_of, members, anytime)
    blocked = gaps(left, query.start, query.end)
    if not query.max_overlaps:
        return Layers(blocked, busy, nothing)
    padded = blocked if is_padded else nothing
    return Layers(padded, common(busy, blocked), common(busy, left))

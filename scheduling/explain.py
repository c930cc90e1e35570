"""Why a moment is, or is not, offered as part of a slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from scheduling.intervals import Groups, Indexes, Intervals, Times
from scheduling.query import OfMembers, Query, Slots, busy_periods, cut_all, free, slots

Pair = tuple[int, int]


class Verdict(StrEnum):
    """Why a moment is, or is not, offered. If several verdicts apply, the first one is used."""

    OUTSIDE_RANGE = "outsideRange"
    OUTSIDE_WINDOW = "outsideWindow"
    # Before ``not_before``.
    TOO_SOON = "tooSoon"
    # No overlap is allowed, and a busy period covers the moment, or only the padding of one does.
    BUSY = "busy"
    PADDING = "padding"
    # Overlaps are allowed, and more than the allowed number of padded periods cover the moment.
    TOO_MANY_OVERLAPS = "tooManyOverlaps"
    OFFERED = "offered"
    # In a slot, but the member has enough earlier ones.
    BEYOND_LIMIT = "beyondLimit"
    # Free, but in no slot: the free stretch is shorter than a slot, or the moment is after the last slot of
    # the stretch, or before or between its slots.
    TOO_SHORT = "tooShort"
    REMAINDER = "remainder"
    BETWEEN_SLOTS = "betweenSlots"


class Covering(NamedTuple):
    """A busy period that, with its padding, covers the moment.

    ``calendar`` is the index among the member's calendars. The period is merged with others of the calendar,
    and clipped to the range that was read, ``Query.busy_range``.
    """

    calendar: int
    start: int
    end: int
    padded_start: int
    padded_end: int

    def unpadded(self, at: int) -> bool:
        """Whether the period itself covers a moment."""
        return self.start <= at < self.end


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict on the moment ``at``, and the facts behind it; all times in milliseconds."""

    at: int
    verdict: Verdict
    # The slot that covers the moment and starts first; None unless it is offered.
    slot: Pair | None
    starts_slot: bool
    # The maximal free stretch around it.
    free: Pair | None
    # The stretch of the windows around it, clipped to the range but not to ``not_before``. If there is none,
    # the end of the previous stretch and the start of the next one.
    window: Pair | None
    window_before: int | None
    window_after: int | None
    # By calendar, then by start. Empty for a moment outside the range, where no busy periods are read.
    covering: tuple[Covering, ...]
    # The last slot that starts before the moment and may contain it; the first slot that starts after it.
    previous_slot: Pair | None
    next_slot: Pair | None


def explain(
    query: Query, at: int, calendars: Groups, member_of: Indexes, members: int, own: OfMembers = None
) -> list[Explanation]:
    """Explain for each member why ``at`` is, or is not, offered; the other arguments are those of ``slots``.

    A moment is offered if and only if one of the ``slots`` contains it (start included, end excluded).
    """
    nearby = _Nearby.of(slots(query, calendars, member_of, members, own), at, members)
    stretches = _around(free(query, calendars, member_of, members, own), at)
    cuts = _cuts(query, at, stretches)
    queries = [query] * members if own is None else [query.of_member(each) for each in own]
    covering = _covering(queries, at, calendars, member_of)
    of_all = _Enclosing.of(query.inside_windows(), at)
    windows = [of_all if each is query else _Enclosing.of(each.inside_windows(), at) for each in queries]
    return [
        Explanation(
            at=at,
            verdict=_verdict(
                queries[n], at, window, covering[n], stretches.get(n), nearby.covering[n], cuts.get(n)
            ),
            slot=_pair(nearby.covering[n], query.duration),
            starts_slot=nearby.starting[n],
            free=stretches.get(n),
            window=window.stretch,
            window_before=window.before,
            window_after=window.after,
            covering=covering[n],
            previous_slot=_pair(nearby.previous[n], query.duration),
            next_slot=_pair(nearby.next[n], query.duration),
        )
        for n, window in enumerate(windows)
    ]


def _verdict(
    query: Query,
    at: int,
    window: _Enclosing,
    covering: tuple[Covering, ...],
    stretch: Pair | None,
    slot: int | None,
    cut: _Cut | None,
) -> Verdict:
    if not query.start <= at < query.end:
        return Verdict.OUTSIDE_RANGE
    if window.stretch is None:
        return Verdict.OUTSIDE_WINDOW
    if query.not_before is not None and at < query.not_before:
        return Verdict.TOO_SOON
    if stretch is None or cut is None:
        return _blocked(query, at, covering)
    if slot is not None:
        return Verdict.OFFERED
    if cut.covered:
        return Verdict.BEYOND_LIMIT
    if stretch[1] - stretch[0] < query.duration:
        return Verdict.TOO_SHORT
    return Verdict.REMAINDER if cut.some_before and not cut.some_after else Verdict.BETWEEN_SLOTS


def _blocked(query: Query, at: int, covering: tuple[Covering, ...]) -> Verdict:
    if query.max_overlaps:
        return Verdict.TOO_MANY_OVERLAPS
    return Verdict.BUSY if any(each.unpadded(at) for each in covering) else Verdict.PADDING


class _Cut(NamedTuple):
    """Where a moment lies among the slots of its free stretch, without regard to the limit."""

    covered: bool
    some_before: bool
    some_after: bool


def _cuts(query: Query, at: int, stretches: dict[int, Pair]) -> dict[int, _Cut]:
    """The position of the moment for each member with a free stretch around it.

    Computed without listing all slots, because a stretch can hold millions even if a limit keeps the answer
    small.
    """
    runs = cut_all(query, Intervals.of(stretches.values()))
    passed = (at - runs.firsts) // query.stride
    last = runs.firsts + np.minimum(passed, runs.counts - 1) * query.stride
    covered = (passed >= 0) & (at - last < query.duration)
    after = runs.firsts + (runs.counts - 1) * query.stride > at
    found = [
        np.bincount(runs.rows[some], minlength=len(stretches)) > 0 for some in (covered, passed >= 0, after)
    ]
    rows = zip(*(each.tolist() for each in found), strict=True)
    return {member: _Cut(*row) for member, row in zip(stretches, rows, strict=True)}


class _Enclosing(NamedTuple):
    """The stretch that contains a moment; else the end of the previous one and the start of the next."""

    stretch: Pair | None
    before: int | None
    after: int | None

    @classmethod
    def of(cls, within: Intervals, at: int) -> _Enclosing:
        n = int(within.ends.searchsorted(at, "right"))
        if n < len(within) and within.starts[n] <= at:
            return cls((int(within.starts[n]), int(within.ends[n])), None, None)
        before = int(within.ends[n - 1]) if n else None
        return cls(None, before, int(within.starts[n]) if n < len(within) else None)


class _Nearby(NamedTuple):
    """For each member, the starts of the slots around a moment."""

    covering: list[int | None]
    starting: list[bool]
    previous: list[int | None]
    next: list[int | None]

    @classmethod
    def of(cls, found: Slots, at: int, members: int) -> _Nearby:
        starts, owners = found.starts, found.members
        before, after = int(starts.searchsorted(at, "left")), int(starts.searchsorted(at, "right"))
        first = int(starts.searchsorted(at - found.duration, "right"))
        starting = np.isin(np.arange(members), owners[before:after])
        return cls(
            # Reversed, because ``_of_each`` keeps the last start of each member.
            _of_each(starts[first:after][::-1], owners[first:after][::-1], members),
            starting.tolist(),
            _of_each(starts[:before], owners[:before], members),
            _of_each(starts[after:][::-1], owners[after:][::-1], members),
        )


def _of_each(starts: Times, owners: Indexes, members: int) -> list[int | None]:
    """The last of each member's starts."""
    last = np.full(members, -1)
    last[owners] = np.arange(starts.size)
    return [None if index < 0 else int(starts[index]) for index in last.tolist()]


def _around(stretches: Groups, at: int) -> dict[int, Pair]:
    """The stretch that contains a moment, by member; members without one are left out."""
    rows = ((stretches.starts <= at) & (at < stretches.ends)).nonzero()[0]
    owners = stretches.offsets.searchsorted(rows, "right") - 1
    pairs = stretches.flat().take(rows).pairs()
    return dict(zip(owners.tolist(), pairs, strict=True))


def _covering(
    queries: Sequence[Query], at: int, calendars: Groups, member_of: Indexes
) -> list[tuple[Covering, ...]]:
    """The padded busy periods that cover a moment, for each member; ``queries`` has that of each member."""
    found: list[list[Covering]] = [[] for _ in queries]
    if not queries or not queries[0].start <= at < queries[0].end:
        return [()] * len(queries)
    before, after = (
        np.array(lengths, np.int64)
        for lengths in ([each.padding_before for each in queries], [each.padding_after for each in queries])
    )
    widest = replace(queries[0], padding_before=int(before.max()), padding_after=int(after.max()))
    periods = busy_periods(widest, calendars)
    of_row = member_of[periods.owners()]
    padded = Intervals(periods.starts - before[of_row], periods.ends + after[of_row])
    rows = ((padded.starts <= at) & (at < padded.ends)).nonzero()[0]
    owners = periods.offsets.searchsorted(rows, "right") - 1
    first_of = member_of.searchsorted(np.arange(len(queries)))
    for calendar, (start, end) in zip(owners.tolist(), periods.flat().take(rows).pairs(), strict=True):
        member = int(member_of[calendar])
        query = queries[member]
        opening, closing = query.busy_range()
        start, end = max(start, opening), min(end, closing)
        wide = start - query.padding_before, end + query.padding_after
        found[member].append(Covering(calendar - int(first_of[member]), start, end, *wide))
    return [tuple(each) for each in found]


def _pair(start: int | None, duration: int) -> Pair | None:
    return None if start is None else (start, start + duration)

"""What few periods leave free, in plain Python.

An operation on arrays costs as much as a few dozen numbers in a list: for a member with few periods
this is faster than the flat pass of ``query``, and the answer is the same.
"""

from __future__ import annotations

from itertools import chain, pairwise

from scheduling.intervals import Groups

Pairs = list[tuple[int, int]]

# Rows up to which this is the faster of the two.
FEW = 64


def unblocked(calendars: Groups, padding: int, max_overlaps: int, start: int, end: int) -> Pairs:
    """What of ``[start, end)`` no more than ``max_overlaps`` padded periods of the calendars cover."""
    # Where one period already blocks, merging first changes nothing.
    periods = _periods(calendars, merging=max_overlaps > 0)
    begun = sorted([opens - padding for opens, _ in periods])
    ended = sorted([closes + padding for _, closes in periods])
    lows = chain((start,), ended)
    # The last of the lows have no period that far after them.
    highs = chain(begun[max_overlaps:], (end,) * (max_overlaps + 1))
    free: Pairs = []
    last = start - 1
    for low, high in zip(lows, highs, strict=False):
        low, high = max(low, start), min(high, end)
        if low >= high:
            continue
        if low <= last:
            free[-1] = (free[-1][0], high)
        else:
            free.append((low, high))
        last = high
    return free


def _periods(calendars: Groups, merging: bool) -> Pairs:
    """All rows but the empty ones; ``merging`` those of a calendar that overlap or touch."""
    rows = list(zip(calendars.starts.tolist(), calendars.ends.tolist(), strict=True))
    if not merging:
        return [(opens, closes) for opens, closes in rows if opens < closes]
    periods: Pairs = []
    offsets = calendars.offsets.tolist()
    for first, after in pairwise(offsets):
        own = len(periods)
        for opens, closes in sorted(rows[first:after]):
            if opens >= closes:
                continue
            if len(periods) > own and opens <= periods[-1][1]:
                periods[-1] = (periods[-1][0], max(closes, periods[-1][1]))
            else:
                periods.append((opens, closes))
    return periods

"""One member with few busy periods: a sweep in plain Python, which ends before numpy's arrays are laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduling.intervals import Groups, Intervals, Times

if TYPE_CHECKING:
    from scheduling.query import Query

# From about here on laying out arrays is the faster way.
_FEW = 60


def suits(query: Query, calendars: Groups) -> bool:
    """Whether this is the faster way, and the question plain enough for it."""
    return calendars.starts.size <= _FEW and not query.max_overlaps and not query.align_clock


def starts(query: Query, calendars: Groups, within: Intervals) -> Times:
    """The starts of the slots of a member with these calendars; ``within`` is range and windows."""
    found: list[int] = []
    opening = closing = query.start
    windows = iter(within.pairs())
    for low, high in _free(query, calendars):
        # A window may reach over several free stretches, and a stretch over several windows.
        while True:
            if closing <= low:
                window = next(windows, None)
                if window is None:
                    return np.array(found, np.int64)
                opening, closing = window
                continue
            if opening >= high:
                break
            last = min(high, closing) - query.duration
            found.extend(range(max(low, opening), last + 1, query.stride))
            if closing > high:
                break
            closing = low
    return np.array(found, np.int64)


def _free(query: Query, calendars: Groups) -> list[tuple[int, int]]:
    """What no padded period covers, in order."""
    padding, cursor, end = query.padding, query.start, query.end
    free: list[tuple[int, int]] = []
    for opens, closes in sorted(zip(calendars.starts.tolist(), calendars.ends.tolist(), strict=True)):
        if opens >= closes:
            continue
        if opens - padding > cursor:
            if opens - padding >= end:
                break
            free.append((cursor, opens - padding))
        cursor = max(cursor, closes + padding)
    if cursor < end:
        free.append((cursor, end))
    return free

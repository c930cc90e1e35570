"""Periods a provider named: their order, and the answer an adapter gives."""

from __future__ import annotations

from collections.abc import Iterable

from providers.base import Read
from scheduling.intervals import Intervals, clip, merge


def ordered(start: int, end: int) -> tuple[int, int]:
    """A period that does not end before it begins.

    :raise ValueError: for one that does: whatever it was to say, it is not that the time is free
    """
    if end < start:
        raise ValueError("a period that ends before it begins")
    return start, end


def read(periods: Iterable[tuple[int, int]], start: int, end: int) -> Read:
    """Sorted, merged and clipped to ``[start, end)``; periods without length block nothing."""
    busy = Intervals.of(period for period in periods if period[0] < period[1])
    return Read(clip(merge(busy.starts, busy.ends), start, end))

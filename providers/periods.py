"""Periods a provider named, as the answer an adapter gives."""

from __future__ import annotations

from collections.abc import Iterable

from providers.base import Read
from scheduling.intervals import Intervals, clip, merge


def read(periods: Iterable[tuple[int, int]], start: int, end: int) -> Read:
    """Sorted, merged and clipped to ``[start, end)``; periods without length block nothing."""
    busy = Intervals.of(period for period in periods if period[0] < period[1])
    return Read(clip(merge(busy.starts, busy.ends), start, end))

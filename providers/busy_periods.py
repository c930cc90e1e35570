"""Busy periods as providers send them: check, then merge into an adapter's answer."""

from __future__ import annotations

from collections.abc import Iterable

from providers.base import Read
from scheduling.intervals import Intervals, clip, merge


def ordered(start: int, end: int) -> tuple[int, int]:
    """``(start, end)``, checked.

    :raise ValueError: when the period ends before it begins; such a period never means free time
    """
    if end < start:
        raise ValueError("a period that ends before it begins")
    return start, end


def read(periods: Iterable[tuple[int, int]], start: int, end: int) -> Read:
    """Busy periods sorted, merged and clipped to ``[start, end)``; empty periods block nothing."""
    busy = Intervals.of(period for period in periods if period[0] < period[1])
    return Read(clip(merge(busy.starts, busy.ends), start, end))

"""Latency histograms with fixed buckets, from which percentiles are estimated."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from math import inf

# Upper bounds in milliseconds, inclusive. Each bucket begins, exclusive, at the bound before it.
BOUNDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, inf)


def bucket(seconds: float) -> int:
    """The index in ``BOUNDS`` of a duration."""
    return bisect_left(BOUNDS, seconds * 1000)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of durations; ``buckets`` are in the order of ``BOUNDS``."""

    buckets: tuple[int, ...] = (0,) * len(BOUNDS)

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(tuple(map(sum, zip(self.buckets, other.buckets, strict=True))))

    @property
    def total(self) -> int:
        """The number of durations."""
        return sum(self.buckets)

    def percentile(self, percent: int) -> float | None:
        """The estimated percentile in milliseconds; None when the histogram is empty.

        Durations count as evenly spread within their bucket. The last bucket has no upper bound: for it the
        result is its lower bound.
        """
        rank = max(1, -(-self.total * percent // 100))
        for index, upto in enumerate(accumulate(self.buckets)):
            if upto >= rank:
                low, high = BOUNDS[index - 1] if index else 0.0, BOUNDS[index]
                within = self.buckets[index]
                return low if high == inf else low + (high - low) * (rank - upto + within) / within
        return None

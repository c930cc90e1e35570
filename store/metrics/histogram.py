"""How long things took, counted in buckets: little to keep, and enough to estimate percentiles from."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from math import inf

# In milliseconds; a bucket holds what took longer than the bound before it, and no longer than its own.
BOUNDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, inf)


def bucket(seconds: float) -> int:
    """The place in ``BOUNDS`` of something that took so long."""
    return bisect_left(BOUNDS, seconds * 1000)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many took how long; ``buckets`` stand in the order of ``BOUNDS``."""

    buckets: tuple[int, ...] = (0,) * len(BOUNDS)

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(tuple(map(sum, zip(self.buckets, other.buckets, strict=True))))

    @property
    def total(self) -> int:
        """How many there were."""
        return sum(self.buckets)

    def percentile(self, percent: int) -> float | None:
        """The milliseconds within which ``percent`` of a hundred were done; None when there were none.

        Within a bucket they count as evenly spread. Of the last one only its beginning is known: what lies
        there took at least as long as the answer says.
        """
        rank = max(1, -(-self.total * percent // 100))
        for place, upto in enumerate(accumulate(self.buckets)):
            if upto >= rank:
                low, high = BOUNDS[place - 1] if place else 0.0, BOUNDS[place]
                within = self.buckets[place]
                return low if high == inf else low + (high - low) * (rank - upto + within) / within
        return None

"""Slots cut from free stretches, and their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduling.intervals import Indexes, Intervals, Times, intersect, progressions
from scheduling.windows import DAY, clock


@dataclass(frozen=True, slots=True, eq=False)
class SlotRuns:
    """Evenly spaced starts: ``counts[i]`` of them from ``firsts[i]`` on, cut from stretch ``rows[i]``."""

    firsts: Times
    counts: Indexes
    rows: Indexes

    def starts(self, step: int) -> Times:
        """All starts, in the order of the runs."""
        return progressions(self.firsts, self.counts, step)

    def limited(self, owners: Indexes, most: int) -> SlotRuns:
        """At most ``most`` starts for each owner, of the earliest runs; ``owners`` has the owner of each run.

        Owners never decrease, and the runs of each are sorted.
        """
        before = np.append(0, self.counts.cumsum())
        earlier = before[:-1] - before[owners.searchsorted(owners)]
        return SlotRuns(self.firsts, np.clip(most - earlier, 0, self.counts), self.rows)


def cut(stretches: Intervals, duration: int, step: int) -> SlotRuns:
    """A slot every ``step`` from the start of each stretch, while a whole slot fits."""
    room = stretches.ends - stretches.starts
    rows = (room >= duration).nonzero()[0]
    return SlotRuns(stretches.starts.take(rows), (room.take(rows) - duration) // step + 1, rows)


def cut_to_clock(stretches: Intervals, duration: int, step: int, zone: str) -> SlotRuns:
    """A slot at each instant of a stretch whose local time of day is a multiple of ``step``, if it fits.

    The time of day is that of the local clock: a skipped time starts no slot, a repeated time starts two.
    The multiples restart at each local midnight, also if ``step`` does not divide the day.
    """
    fits = np.flatnonzero(stretches.ends - stretches.starts >= duration)
    if not fits.size:
        return SlotRuns(fits, fits, fits)
    # The range of allowed starts; the end of a slot may lie beyond a midnight or a change of offset.
    allowed = Intervals(stretches.starts[fits], stretches.ends[fits] - duration + 1)
    time = clock(zone, int(allowed.starts.min()), int(allowed.ends.max()))
    even, origins = time.days() if DAY % step else (time.stretches, -time.offsets)
    pieces, row, met = intersect(allowed, even)
    firsts = pieces.starts + (origins[met] - pieces.starts) % step
    counts = (pieces.ends - firsts + step - 1) // step
    some = np.flatnonzero(counts > 0)
    return SlotRuns(firsts[some], counts[some], fits[row[some]])

"""The last day in numbers, and the tasks that wait for workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from app.availability.freshness import now_ms
from app.observability.probes import Fault
from app.services import Services, services
from store.metrics.counters import DAY, Counts, together
from workers import broker

# The time for both, in seconds; they are read in parallel.
SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Day:
    """The requests of the last day and the tasks that wait now; None where a part does not answer."""

    counts: Counts | None
    waiting: int | None

    @property
    def requests(self) -> int | None:
        """The requests below ``/v1``."""
        return None if self.counts is None else self.counts.requests().total

    @property
    def failed(self) -> int | None:
        """The requests that were answered with a server error."""
        return None if self.counts is None else self.counts.requests(status="5xx").total

    @property
    def unread(self) -> int | None:
        """The calls to providers that failed."""
        return None if self.counts is None else sum(self.counts.failed.values())

    @property
    def from_cache(self) -> str | None:
        """The share of calendars that were answered from the cache; None without any."""
        if self.counts is None:
            return None
        cache = self.counts.cache
        every = cache.hits + cache.stale + cache.misses
        return f"{100 * (cache.hits + cache.stale) / every:.0f} %" if every else None


def read() -> Day:
    """The numbers now."""
    ours = services()
    found = ours.probes.run(
        {"day counted": partial(_counts, ours), "queues counted": lambda: broker.lengths(ours.settings)},
        seconds=SECONDS,
    )
    counts, lengths = found["day counted"], found["queues counted"]
    return Day(
        None if isinstance(counts, Fault) else counts,
        None if isinstance(lengths, Fault) else sum(lengths.values()),
    )


def _counts(ours: Services) -> Counts:
    # Include the requests that this process has counted since its last periodic flush.
    ours.stores.counters.flush()
    until = now_ms()
    return together(point.counts for point in ours.stores.counters.points(until - DAY, until))

"""The flights of the jobs that one drain has taken: their leases, completion and abandonment.

Changes are collected and sent with the next pipeline of the drain.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from redis.client import Pipeline

from store.coordination.single_flight import Completion, SingleFlight
from workers.fanout.codec import LEFTOVER_SECONDS

# Interval in seconds at which leases of flights are renewed; shorter than the lease.
RENEW = 1.0


class TakenFlights:
    """The flights of one drain, and their changes for its next round trip."""

    def __init__(self, flights: SingleFlight) -> None:
        self._flights = flights
        # The flights of all jobs that were taken and have not ended.
        self._held: dict[str, None] = {}
        self._completions: list[Completion] = []
        self._abandoned: list[str] = []
        self._renew = time.monotonic() + RENEW

    def take(self, flights: Iterable[str | None]) -> None:
        """Hold the leases of these flights; None stands for a job without a flight."""
        self._held |= {each: None for each in flights if each is not None}

    def complete(self, completion: Completion) -> None:
        """Complete a flight, which replies to its leader and its followers."""
        self._held.pop(completion.flight, None)
        self._completions.append(completion)

    def abandon(self, flights: Iterable[str | None]) -> None:
        """End these flights without a result: the next request leads a new one."""
        for each in flights:
            if each is not None:
                self._held.pop(each, None)
                self._abandoned.append(each)

    def release(self, flight: str | None) -> None:
        """Stop renewing the lease of a flight, which another worker holds or which may expire."""
        if flight is not None:
            self._held.pop(flight, None)

    def urgent(self, now: float) -> bool:
        """Whether changes, or leases to renew, must be sent now."""
        return bool(self._completions or self._abandoned) or (bool(self._held) and self._renew <= now)

    def next_renewal(self) -> list[float]:
        """The moment of the next renewal, if there is a lease."""
        return [self._renew] if self._held else []

    def send(self, pipe: Pipeline, replies: str) -> None:
        """Queue all changes on ``pipe``; ``replies`` is the reply list of the drain's request."""
        if self._completions:
            self._flights.complete(pipe, self._completions, replies=replies, leftover=LEFTOVER_SECONDS)
            self._completions = []
        if self._abandoned:
            self._flights.abandon(self._abandoned, pipe)
            self._abandoned = []
        if time.monotonic() >= self._renew:
            self._renew = time.monotonic() + RENEW
            if self._held:
                self._flights.renew(pipe, list(self._held))

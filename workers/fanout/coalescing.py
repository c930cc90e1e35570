"""Who else waits for the jobs of one drain: other requests that want the same are answered with its own."""

from __future__ import annotations

import time
from collections.abc import Iterable

from redis.client import Pipeline

from store.coordination.single_flight import Completion, SingleFlight
from workers.fanout.client import LEFTOVER_SECONDS

# Seconds after which the leases of flights are renewed: a few times before they end.
RENEW = 1.0


class Coalescing:
    """The flights of one drain, and what is to be said of them with its next round trip."""

    def __init__(self, flights: SingleFlight) -> None:
        self._flights = flights
        # Of all jobs that were taken and are not over.
        self._held: dict[str, None] = {}
        self._landings: list[Completion] = []
        self._abandoned: list[str] = []
        self._probing: list[str] = []
        self._renew = time.monotonic() + RENEW

    def take(self, flights: Iterable[str | None]) -> None:
        """Hold these from now on; None is a job that nobody else has."""
        self._held |= {each: None for each in flights if each is not None}

    def complete(self, flight: str | None, body: bytes, *, failed: bool, whole: bool) -> None:
        """Have those answered who wait for a read that is over; see ``Completion``."""
        if flight is not None:
            self._held.pop(flight, None)
            self._landings.append(Completion(flight, body, failed, whole))

    def probe(self, flight: str | None) -> None:
        """Have nobody else wait for long for a read that finds out whether somebody answers."""
        if flight is not None:
            self._probing.append(flight)

    def abandon(self, flights: Iterable[str | None]) -> None:
        """Leave these to whoever asks next."""
        for each in flights:
            if each is not None:
                self._held.pop(each, None)
                self._abandoned.append(each)

    def release(self, flight: str | None) -> None:
        """Hold a flight no longer: another worker does, or its lease ends."""
        if flight is not None:
            self._held.pop(flight, None)

    def urgent(self, now: float) -> bool:
        """Whether something is to be said that nobody is waiting to say."""
        to_say = self._landings or self._abandoned or self._probing
        return bool(to_say) or (bool(self._held) and self._renew <= now)

    def until(self) -> list[float]:
        """When a lease is to be renewed next, if there is any."""
        return [self._renew] if self._held else []

    def tell(self, pipe: Pipeline, told: str) -> None:
        """Queue on ``pipe`` what is to be said; the list ``told`` has its replies beside it."""
        if self._probing:
            self._flights.probe(pipe, self._probing, told)
            self._probing = []
        if self._landings:
            self._flights.complete(pipe, self._landings, told=told, leftover=LEFTOVER_SECONDS)
            self._landings = []
        if self._abandoned:
            self._flights.abandon(pipe, self._abandoned)
            self._abandoned = []
        if time.monotonic() >= self._renew:
            self._renew = time.monotonic() + RENEW
            if self._held:
                self._flights.hold(pipe, list(self._held))

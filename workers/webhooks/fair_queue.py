"""FIFO queue of webhook endpoints with limited concurrency per process."""

from __future__ import annotations

import threading


class FairQueue:
    """Limits how many endpoints a process serves at once; the others wait in order of arrival."""

    def __init__(self, max_concurrent: int) -> None:
        self._lock = threading.Lock()
        self._free = max_concurrent
        # In order of arrival, without duplicates.
        self._waiting: dict[str, None] = {}

    @property
    def has_waiting(self) -> bool:
        """Whether an endpoint is waiting."""
        return bool(self._waiting)

    def add(self, endpoint_id: str) -> None:
        """Add an endpoint, unless it is waiting already."""
        with self._lock:
            self._waiting.setdefault(endpoint_id)

    def take(self) -> str | None:
        """The endpoint that has waited longest, to serve until ``done``; None if none waits or may begin."""
        with self._lock:
            if not self._free or not self._waiting:
                return None
            self._free -= 1
            first = next(iter(self._waiting))
            del self._waiting[first]
            return first

    def done(self) -> None:
        """End the service of one endpoint."""
        with self._lock:
            self._free += 1

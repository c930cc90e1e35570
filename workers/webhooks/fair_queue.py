"""Whose turn it is among the receivers of webhooks: so many at once, the others as they came."""

from __future__ import annotations

import threading


class FairQueue:
    """The endpoints that one process serves, and those that wait for it to have a place for them."""

    def __init__(self, places: int) -> None:
        self._lock = threading.Lock()
        self._free = places
        # In the order in which they came; each waits once.
        self._waiting: dict[str, None] = {}

    @property
    def crowded(self) -> bool:
        """Whether somebody waits for a place."""
        return bool(self._waiting)

    def come(self, endpoint_id: str) -> None:
        """Have an endpoint wait for its turn."""
        with self._lock:
            self._waiting.setdefault(endpoint_id)

    def take(self) -> str | None:
        """Take a place for whoever has waited for longest, to be left after its turn; None without either."""
        with self._lock:
            if not self._free or not self._waiting:
                return None
            self._free -= 1
            first = next(iter(self._waiting))
            del self._waiting[first]
            return first

    def leave(self) -> None:
        """Give a place back."""
        with self._lock:
            self._free += 1

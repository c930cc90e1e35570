"""The webhook endpoints that wait in one process, and how many of them it serves at once."""

from __future__ import annotations

import threading
from typing import NamedTuple

from store.coordination.shares import SharedPlaces


class Turn(NamedTuple):
    """An endpoint to serve, and the tenant that it belongs to."""

    endpoint_id: str
    tenant: int


class FairQueue:
    """Gives turns to waiting endpoints, as ``places`` allows.

    Of the tenants that may have another turn, the one with the fewest gets it, for the endpoint that it has
    added first. So endpoints that hang delay those of their own tenant only.
    """

    def __init__(self, places: SharedPlaces) -> None:
        self._places = places
        self._lock = threading.Lock()
        # In order of arrival, without duplicates: each endpoint with its tenant.
        self._waiting: dict[str, int] = {}

    def add(self, endpoint_id: str, tenant: int) -> None:
        """Add an endpoint, unless it is waiting already."""
        with self._lock:
            self._waiting.setdefault(endpoint_id, tenant)

    def take(self) -> Turn | None:
        """The next endpoint, to serve until ``done``; None if none waits or may begin."""
        with self._lock:
            able = [tenant for tenant in self._waiting.values() if self._places.has_room(tenant)]
            if not able:
                return None
            chosen = min(able, key=self._places.used_by)
            endpoint_id = next(each for each, tenant in self._waiting.items() if tenant == chosen)
            del self._waiting[endpoint_id]
            self._places.take(chosen)
            return Turn(endpoint_id, chosen)

    def done(self, turn: Turn) -> None:
        """End the service of one endpoint."""
        self._places.release(turn.tenant)

    def others_wait_for(self, turn: Turn) -> bool:
        """Whether an endpoint waits that could begin when this turn ends."""
        with self._lock:
            if self._places.is_full:
                return bool(self._waiting)
            return turn.tenant in self._waiting.values()

"""Celery's clock, which tells that it goes."""

from __future__ import annotations

import logging
import time
from typing import Any

from celery.beat import PersistentScheduler
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

# A tick is told at most once in so many seconds.
TOLD_SECONDS = 4.0


class Clock(PersistentScheduler):  # type: ignore[misc]  # Celery has no type hints
    """The schedule in its file, as Celery keeps it."""

    _told = float("-inf")

    def tick(self, *args: Any, **more: Any) -> Any:
        """Do what is due, and tell that somebody looked."""
        if time.monotonic() - self._told >= TOLD_SECONDS:
            self._told = time.monotonic()
            try:
                self.app.runtime.stores.heartbeats.tick()
            except RedisError as error:
                log.warning("a tick is not told: %s", type(error).__name__)
        return super().tick(*args, **more)

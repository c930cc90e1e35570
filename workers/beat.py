"""Celery's beat scheduler, with a heartbeat."""

from __future__ import annotations

import logging
import time
from typing import Any

from celery.beat import PersistentScheduler
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

# Shortest interval between two heartbeats, in seconds.
HEARTBEAT_SECONDS = 4.0


class HeartbeatScheduler(PersistentScheduler):  # type: ignore[misc]  # Celery has no type hints
    """Celery's scheduler with a file, which also records a heartbeat."""

    _heartbeat_at = float("-inf")

    def tick(self, *args: Any, **more: Any) -> Any:
        """Send the tasks that are due, and a heartbeat."""
        if time.monotonic() - self._heartbeat_at >= HEARTBEAT_SECONDS:
            self._heartbeat_at = time.monotonic()
            try:
                self.app.runtime.stores.heartbeats.record_beat()
            except RedisError as error:
                log.warning("beat heartbeat failed: %s", type(error).__name__)
        return super().tick(*args, **more)

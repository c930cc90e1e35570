"""Locks across processes, in Redis."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis
from redis.exceptions import LockError

# Longer than a refresh can take (its own timeouts end sooner); a holder that dies frees it by then.
REFRESH_SECONDS = 15.0


class LockTimeout(Exception):
    """The lock was not free before the deadline."""


@contextmanager
def refresh_lock(redis: Redis, connection_id: str, *, deadline: float) -> Iterator[None]:
    """Hold the right to refresh one connection's tokens. ``deadline`` is of ``time.monotonic()``.

    :raise LockTimeout: when another holds it for too long
    """
    lock = redis.lock(f"lock:refresh:{connection_id}", timeout=REFRESH_SECONDS, sleep=0.02)
    if not lock.acquire(blocking_timeout=max(0.0, deadline - time.monotonic())):
        raise LockTimeout(connection_id)
    try:
        yield
    finally:
        # It may have run out while we held it: another holder re-reads the row first, so nothing is lost.
        with contextlib.suppress(LockError):
            lock.release()

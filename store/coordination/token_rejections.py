"""Since when a provider has rejected the new tokens of a connection. A successful read ends that."""

from __future__ import annotations

import time

from redis import Redis

KEPT_SECONDS = 30 * 86_400


def note(redis: Redis, connection_id: str) -> float:
    """Note a rejection; returns the seconds since the first one after the last successful read."""
    now = time.time()
    redis.set(key(connection_id), now, nx=True, ex=KEPT_SECONDS)
    first = redis.get(key(connection_id))
    return now - float(first) if isinstance(first, bytes | str) else 0.0


def key(connection_id: str) -> str:
    """The Redis key, which a successful read deletes."""
    return f"token-rejected:{connection_id}"

"""Which watched calendars requests ask for, so that only those are audited.

A request notes the calendars whose cached periods it uses although they are older than those of an unwatched
calendar may be. The notes are flushed to Redis in the background. If they are lost, the periods expire.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from cachetools import TTLCache
from redis import Redis
from redis.exceptions import RedisError

from store.cache.busy_cache import CachedBusy, CalendarKey

# The share of the highest age during which a process notes a calendar once.
ONCE_IN = 0.25
# Calendars that a process keeps in mind for that, about 0.2 kB each.
MAX_NOTED = 100_000


class AskedCalendars:
    """Thread-safe."""

    def __init__(self, redis: Redis, *, ttl_seconds: float, max_age_seconds: float) -> None:
        self._redis = redis
        self._ttl_ms = int(ttl_seconds * 1000)
        self._max_age_ms = int(max_age_seconds * 1000)
        self._lock = threading.Lock()
        self._noted: TTLCache[CalendarKey, None] = TTLCache(MAX_NOTED, max_age_seconds * ONCE_IN)
        self._pending: list[CalendarKey] = []

    def note(self, keys: Sequence[CalendarKey], used: CachedBusy) -> None:
        """Note which of the calendars of an answer are watched ones, by the age of what it uses of them."""
        old = used.read_at < time.time_ns() // 1_000_000 - self._ttl_ms
        if not old.any():
            return
        with self._lock:
            for index in old.nonzero()[0].tolist():
                if (key := keys[index]) not in self._noted:
                    self._noted[key] = None
                    self._pending.append(key)

    def flush(self) -> None:
        """Send the notes to Redis."""
        with self._lock:
            pending, self._pending = self._pending, []
        if not pending:
            return
        try:
            with self._redis.pipeline(transaction=False) as pipe:
                for key in pending:
                    pipe.set(asked_key(key), 1, px=self._max_age_ms)
                pipe.execute()
        except RedisError:
            # The next request notes them again.
            with self._lock:
                for key in pending:
                    self._noted.pop(key, None)
            raise

    def asked_for(self, keys: Sequence[CalendarKey]) -> list[bool]:
        """Whether requests have asked for each calendar since its last audit, in one round trip."""
        return (
            [value is not None for value in self._redis.mget([asked_key(key) for key in keys])]
            if keys
            else []
        )

    def forget(self, key: CalendarKey) -> None:
        """Forget the note of a calendar that is audited now. The next audit needs another request."""
        self._redis.delete(asked_key(key))


def asked_key(key: CalendarKey) -> str:
    """The name of the note that requests have asked for a calendar."""
    return f"watch-asked:{key.connection}:{key.calendar}"

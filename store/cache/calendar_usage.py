"""Which calendars are in use, and which of them are claimed for opening a channel.

A request also notes the watched calendars whose cached periods it uses although they are older than those
of an unwatched calendar may be, so that only those are audited. The notes are flushed to Redis in the
background.

All of it may be lost: a calendar then counts as unused, and its cached periods expire.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import cast

from cachetools import TTLCache
from redis import Redis
from redis.exceptions import RedisError

from store.cache.busy_cache import CachedBusy, CalendarKey, now_ms, watch_key

# A calendar that no request has read for this long is no longer watched.
USED_SECONDS = 7 * 86_400

# Exists while a requested round of upkeep is pending.
ROUND = "watch-round"


class ChannelUsage:
    """Short-lived flags in Redis, in addition to the watches of the busy cache."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def use(self, keys: Sequence[CalendarKey]) -> None:
        """Record that these calendars have been read."""
        with self._redis.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.set(_used(key), 1, ex=USED_SECONDS)
                pipe.sadd(_calendars(key.connection), key.calendar)
                pipe.expire(_calendars(key.connection), USED_SECONDS)
            pipe.execute()

    def used(self, keys: Sequence[CalendarKey]) -> list[bool]:
        """Whether each calendar is in use, in one round trip."""
        return [value is not None for value in self._redis.mget([_used(key) for key in keys])] if keys else []

    def claim(self, keys: Sequence[CalendarKey], seconds: float) -> list[CalendarKey]:
        """Claim calendars for ``seconds``; returns the ones that were not claimed before."""
        with self._redis.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.set(_claim(key), 1, px=int(seconds * 1000), nx=True)
            claimed = pipe.execute()
        return [key for key, mine in zip(keys, claimed, strict=True) if mine]

    def block_claims(self, key: CalendarKey, seconds: float) -> None:
        """Block claims of a calendar for ``seconds``."""
        self._redis.set(_claim(key), 1, px=max(1, int(seconds * 1000)))

    def release(self, key: CalendarKey) -> None:
        """Release the claim of a calendar."""
        self._redis.delete(_claim(key))

    def claim_round(self, seconds: float) -> bool:
        """Whether the caller is to start a round of upkeep: True at most once in ``seconds``."""
        return bool(self._redis.set(ROUND, 1, px=int(seconds * 1000), nx=True))

    def forget(self, connection_ids: Sequence[str]) -> None:
        """Delete every flag of the calendars of deleted connections, and their watches."""
        for connection in connection_ids:
            names = cast(set[bytes], self._redis.smembers(_calendars(connection)))
            keys = [CalendarKey(connection, name.decode()) for name in names]
            notes = [note(key) for key in keys for note in (_used, _claim, watch_key, asked_key)]
            self._redis.delete(_calendars(connection), *notes)


def _calendars(connection: str) -> str:
    return f"watch-of:{connection}"


def _used(key: CalendarKey) -> str:
    return f"watch-used:{key.connection}:{key.calendar}"


def _claim(key: CalendarKey) -> str:
    return f"watch-claim:{key.connection}:{key.calendar}"


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
        old = used.read_at < now_ms() - self._ttl_ms
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

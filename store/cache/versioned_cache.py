"""What a process remembers of the database: who calls, whose calendars there are.

A warm request should cost no SQL, and yet a key that is revoked, a member who leaves or a connection that
is deleted must count no more from that moment on. So Redis holds a stamp, a random text that every
transaction that changes something replaces before it commits and again after. A request reads the stamp
first; what is remembered counts only under the stamp that was read before it was loaded.

Before: what was loaded from the old picture while the transaction was under way goes with the stamp that
follows. After: by then the new picture is there to be loaded.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from cachetools import TTLCache
from redis import Redis
from redis.exceptions import RedisError

from store.cache.fast_redis import FastRedis

log = logging.getLogger(__name__)

VERSION_KEY = "directory"
VERSION_BYTES = 12

# Connections, about 0.5 kB each, that a process remembers at most.
MOST_REMEMBERED = 200_000

# A change that Redis could not be told of (it was down just then, or the writer was killed between commit
# and stamp) is seen after so long.
LONGEST_SECONDS = 60.0

Value = TypeVar("Value")


class CachedVersion:
    """What was loaded under one stamp; safe for threads."""

    def __init__(self, stamp: bytes | None = None) -> None:
        self.stamp = stamp
        self._lock = threading.Lock()
        self._known: TTLCache[Hashable, tuple[Any, int]] = TTLCache(
            MOST_REMEMBERED, LONGEST_SECONDS, getsizeof=lambda known: known[1]
        )

    def get_or_load(
        self, key: Hashable, load: Callable[[], Value], weight: Callable[[Value], int] = lambda _: 1
    ) -> Value:
        """What ``load`` answers, or answered before under this stamp. That there is nothing is not kept."""
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            return cast(Value, known[0])
        value = load()
        if value is not None and (size := weight(value)) <= MOST_REMEMBERED:
            with self._lock:
                self._known[key] = value, size
        return value


class VersionedCache:
    """The memory of this process, and word to all others when the database changes."""

    def __init__(self, redis: Redis, line: FastRedis) -> None:
        self._redis = redis
        self._line = line
        self._memory = CachedVersion()

    def recent(self) -> CachedVersion:
        """What counted a moment ago, and may not count any more."""
        return self._memory

    def current(self) -> CachedVersion:
        """What counts for a request that begins now; one round trip. Empty while Redis is down."""
        try:
            (stamp,) = self._line.mget([VERSION_KEY])
            return self.under(stamp or self._first_stamp())
        except RedisError as error:
            log.warning("nothing is remembered without Redis: %s", type(error).__name__)
            # Nor what was before: changes may be made while Redis cannot be told.
            self._memory = CachedVersion()
            return self._memory

    def under(self, stamp: bytes | None) -> CachedVersion:
        """What counts under a stamp that was read from Redis just now."""
        memory = self._memory
        if stamp is None or memory.stamp != stamp:
            memory = self._memory = CachedVersion(stamp)
        return memory

    def changing(self) -> None:
        """Called before a change is committed and after: what any process remembers counts no more."""
        try:
            self._redis.set(VERSION_KEY, secrets.token_bytes(VERSION_BYTES))
        except RedisError as error:
            log.warning("a change may be seen %.0f s late: %s", LONGEST_SECONDS, type(error).__name__)

    def _first_stamp(self) -> bytes | None:
        self._redis.set(VERSION_KEY, secrets.token_bytes(VERSION_BYTES), nx=True)
        return self._line.mget([VERSION_KEY])[0]

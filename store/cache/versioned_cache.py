"""A cache of database rows in each process (API keys, members, connections), invalidated by a version.

A warm request should cost no SQL. Yet a revoked key, a member who has left or a deleted connection must stop
counting at once. So Redis holds a version, random bytes that every transaction that changes cached rows
replaces before it commits and again after. A request reads the version first, and uses a cached row only
if that row was loaded under the same version. On routes with ``verifies_version``, a request reads the
version together with its busy periods. If it differs from that of the rows, the view runs again.

The replacement before the commit invalidates the rows that are cached by then. A request that runs between
this replacement and the commit still loads old rows; the replacement after the commit invalidates those.
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

# The key keeps its first name: during an upgrade, processes of the old and the new release share it.
VERSION_KEY = "directory"
VERSION_BYTES = 12

# Connections, about 0.5 kB each, that a process caches at most.
MAX_CACHED = 200_000

# Lifetime of a cached row. A change becomes visible after this time if its writer could not replace the
# version, because Redis was down or the writer was killed after its commit.
MAX_SECONDS = 60.0

Value = TypeVar("Value")


class CachedRows:
    """The rows that were loaded under one version; thread-safe."""

    def __init__(self, version: bytes | None = None) -> None:
        self.version = version
        self._lock = threading.Lock()
        self._known: TTLCache[Hashable, tuple[Any, int]] = TTLCache(
            MAX_CACHED, MAX_SECONDS, getsizeof=lambda known: known[1]
        )

    def get(self, key: Hashable) -> Any:
        """The cached result under this version; None if there is none."""
        with self._lock:
            known = self._known.get(key)
        return None if known is None else known[0]

    def get_or_load(
        self, key: Hashable, load: Callable[[], Value], weight: Callable[[Value], int] = lambda _: 1
    ) -> Value:
        """The cached result of ``load`` under this version, else a new one. None is not cached.

        ``weight`` is the number of connections in a result.
        """
        known = self.get(key)
        if known is not None:
            return cast(Value, known)
        value = load()
        if value is not None and (size := weight(value)) <= MAX_CACHED:
            with self._lock:
                self._known[key] = value, size
        return value


class VersionedCache:
    """The cache of this process, and the shared version that invalidates it in all processes."""

    def __init__(self, redis: Redis, fast_redis: FastRedis) -> None:
        self._redis = redis
        self._fast_redis = fast_redis
        self._memory = CachedRows()

    def recent(self) -> CachedRows:
        """The last cache used, without a round trip; it may be outdated."""
        return self._memory

    def current(self) -> CachedRows:
        """The cache for a request that begins now, in one round trip. It is empty while Redis is down."""
        try:
            (version,) = self._fast_redis.mget([VERSION_KEY])
            return self.switch_to(version or self._first_version())
        except RedisError as error:
            log.warning("database rows are not cached without Redis: %s", type(error).__name__)
            # Rows cached before are dropped too: writers cannot replace the version now.
            self._memory = CachedRows()
            return self._memory

    def switch_to(self, version: bytes | None) -> CachedRows:
        """Make the rows of this version the cache of the process; drops all others."""
        memory = self._memory
        if version is None or memory.version != version:
            memory = self._memory = CachedRows(version)
        return memory

    def bump_version(self) -> None:
        """Replace the version, which invalidates all processes' caches. Called before and after a commit."""
        try:
            self._redis.set(VERSION_KEY, secrets.token_bytes(VERSION_BYTES))
        except RedisError as error:
            log.warning(
                "cache version not replaced: other processes may see a change %.0f s late: %s",
                MAX_SECONDS,
                type(error).__name__,
            )

    def _first_version(self) -> bytes | None:
        self._redis.set(VERSION_KEY, secrets.token_bytes(VERSION_BYTES), nx=True)
        return self._fast_redis.mget([VERSION_KEY])[0]

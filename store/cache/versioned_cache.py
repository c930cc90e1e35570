"""Caches of each process, invalidated by versions in Redis: database rows, and the held time of users.

Database rows (API keys, members, connections): a warm request should cost no SQL. Yet a revoked key, a former
member or a deleted connection must stop counting at once. So Redis holds a version, random bytes that every
transaction that changes cached rows replaces before it commits and again after. A request reads the version
first, and uses a cached row only if that row was loaded under the same version. The warm path
(``app.api.fast_slots``) reads the version together with the busy periods, and leaves the request to the plain
path if it differs from that of the rows.

The replacement before the commit invalidates the rows that are cached by then. A request that runs between
this replacement and the commit still loads old rows; the replacement after the commit invalidates those.

Held time is cached under versions of the calendars and mailboxes that are held. A hold counts as soon as its
client has the answer, in every process: the versions of its names are replaced between the commit and the
answer, and a request reads the versions of its own names with its busy periods. So the holds of others cost
it nothing. A hold that expires needs no new version, because its expiry is cached with it. A version that is
missing in Redis is a version too: nothing has changed under that name for hours. If Redis lost its data, the
version of the database rows is lost as well, and what is cached goes with those rows.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple, TypeVar, cast

from cachetools import TTLCache
from redis import Redis
from redis.exceptions import RedisError

from store.cache.cache_tags import UserNames
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
        if value is not None:
            self.put(key, value, weight(value))
        return value

    def put(self, key: Hashable, value: object, weight: int = 1) -> None:
        """Cache a result under this version, if there is room for its weight."""
        if weight <= MAX_CACHED:
            with self._lock:
                self._known[key] = value, weight


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


class ActiveTime(NamedTuple):
    """Held time that counts as busy until ``expires_at``."""

    hold: str
    starts: int
    ends: int
    expires_at: int


# Held time by the names of a user, each hold once. Users without any are absent.
Held = Mapping[UserNames, Sequence[ActiveTime]]
Versions = Sequence[bytes | None]
# Loads the held time under some names that has not expired at a moment, in milliseconds.
LoadActive = Callable[[Collection[str], int], Mapping[str, Sequence[ActiveTime]]]

# Longer than any hold lasts, and much longer than anything is cached.
VERSION_SECONDS = 4 * 3600

# The versions under which the held time of a user was loaded, and that time.
_Entry = tuple[tuple[bytes | None, ...], Sequence[ActiveTime]]

# The place among the cached rows.
_HELD = "held time"


class HeldNames:
    """The names of each user of a request."""

    def __init__(self, of_users: Sequence[UserNames]) -> None:
        self.of_users = of_users
        self._versioned = list(dict.fromkeys(chain.from_iterable(each.versioned for each in of_users)))

    def version_keys(self) -> list[str]:
        """The Redis keys of the versions that show a change."""
        return [version_key(each) for each in self._versioned]

    def stamps(self, versions: Versions) -> list[tuple[bytes | None, ...]]:
        """For each user, the versions among the values read by ``version_keys``."""
        by_name = dict(zip(self._versioned, versions, strict=True))
        return [tuple([by_name[name] for name in each.versioned]) for each in self.of_users]


class HeldTimes:
    """Loads the held time of users, and caches it as long as the database rows of the process."""

    def __init__(self, load_active: LoadActive, redis: Redis, fast_redis: FastRedis) -> None:
        self._load_active = load_active
        self._redis = redis
        self._fast_redis = fast_redis

    def cached(self, rows: CachedRows, names: HeldNames, versions: Versions) -> Held | None:
        """The held time under versions that were just read; None if that of some user is not cached."""
        known = rows.get(_HELD)
        if known is None:
            return None if names.of_users else {}
        found: dict[UserNames, Sequence[ActiveTime]] = {}
        for each, stamp in zip(names.of_users, names.stamps(versions), strict=True):
            entry = known.get(each)
            if entry is None or entry[0] != stamp:
                return None
            if entry[1]:
                found[each] = entry[1]
        return found

    def load(self, rows: CachedRows, names: HeldNames, versions: Versions, now: int) -> tuple[Held, bool]:
        """The held time, in one statement for all users who are not cached.

        And whether the versions are still the current ones. If not, the busy periods that were read with the
        versions may be older than the held time.
        """
        known: dict[UserNames, _Entry] = rows.get_or_load(_HELD, dict)
        wanted = dict(zip(names.of_users, names.stamps(versions), strict=True))
        entries = {each: known.get(each) for each in wanted}
        missing = [each for each, entry in entries.items() if entry is None or entry[0] != wanted[each]]
        loaded = self._load_active({name for each in missing for name in each.all}, now)
        new = {each: (wanted[each], _of_user(each, loaded)) for each in missing}
        if len(known) + len(new) > MAX_CACHED:
            known.clear()
        known.update(new)
        found = {each: entry[1] for each, entry in (entries | new).items() if entry and entry[1]}
        keys = names.version_keys()
        return found, (self._fast_redis.mget(keys) if keys else []) == list(versions)

    def invalidate(self, names: Iterable[str]) -> None:
        """Have all processes load held time again, before the client of a new hold has its answer.

        :raise redis.RedisError: when Redis is down
        """
        version = secrets.token_bytes(VERSION_BYTES)
        with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.set(version_key(name), version, ex=VERSION_SECONDS)
            pipe.execute()

    @contextmanager
    def changing(self, names: Iterable[str]) -> Iterator[None]:
        """Invalidate before and after a change that ends held time, which the block commits.

        Before the commit too: a request that has read busy periods from before the event of a hold must not
        miss the hold and take its version for current. Other processes may see the change late if Redis is
        down.
        """
        distinct = set(names)
        self._invalidate_best_effort(distinct)
        try:
            yield
        finally:
            self._invalidate_best_effort(distinct)

    def _invalidate_best_effort(self, names: Iterable[str]) -> None:
        try:
            self.invalidate(names)
        except RedisError as error:
            log.warning("change of held time may be seen late: %s", type(error).__name__)


def _of_user(names: UserNames, held: Mapping[str, Sequence[ActiveTime]]) -> Sequence[ActiveTime]:
    times = {each for name in names.all for each in held.get(name, ())}
    return sorted(times, key=lambda each: (each.starts, each.ends, each.hold))


def version_key(name: str) -> str:
    """The Redis key of a name's version."""
    return f"held:{name}"

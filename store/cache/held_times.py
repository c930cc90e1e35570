"""Held time, cached in each process under a version of each user, calendar and mailbox that is held.

A hold counts as soon as its client has the answer, in every process: the versions of its names are replaced
between the commit and the answer, and a request reads the versions of its own names with its busy periods. So
the holds of others cost it nothing. A hold that expires needs no new version, because its expiry is
cached with it.

A version that is missing in Redis is a version too: nothing has changed under that name for hours. If Redis
lost its data, the version of the database rows is lost as well, and what is cached goes with those rows.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from redis import Redis
from redis.exceptions import RedisError

from store.cache.fast_redis import FastRedis
from store.cache.versioned_cache import MAX_CACHED, VERSION_BYTES, CachedRows
from store.sql.database import Database
from store.sql.queries import holds
from store.sql.queries.holds import ActiveTime

log = logging.getLogger(__name__)

# Held time by name. Names without any are absent.
Held = Mapping[str, Sequence[ActiveTime]]
Versions = Sequence[bytes | None]

# Longer than any hold lasts, and much longer than anything is cached.
VERSION_SECONDS = 4 * 3600

# The place among the cached rows.
_HELD = "held time"


class HeldTimes:
    """Loads held time by name, and caches it as long as the database rows of the process."""

    def __init__(self, database: Database, redis: Redis, fast_redis: FastRedis) -> None:
        self._database = database
        self._redis = redis
        self._fast_redis = fast_redis

    def cached(self, rows: CachedRows, names: Sequence[str], versions: Versions) -> Held | None:
        """The held time of ``names`` under versions that were just read; None if some is not cached."""
        known = rows.get(_HELD)
        if known is None:
            return None if names else {}
        found: dict[str, Sequence[ActiveTime]] = {}
        for name, version in zip(names, versions, strict=True):
            entry = known.get(name)
            if entry is None or entry[0] != version:
                return None
            if entry[1]:
                found[name] = entry[1]
        return found

    def load(self, rows: CachedRows, names: Sequence[str], versions: Versions, now: int) -> tuple[Held, bool]:
        """The held time of ``names``, in one statement for all names that are not cached.

        And whether the versions are still the current ones. If not, the busy periods that were read with the
        versions may be older than the held time.
        """
        known: dict[str, tuple[bytes | None, Sequence[ActiveTime]]] = rows.get_or_load(_HELD, dict)
        wanted = dict(zip(names, versions, strict=True))
        entries = {name: known.get(name) for name in wanted}
        missing = [n for n, entry in entries.items() if entry is None or entry[0] != wanted[n]]
        with self._database.reading() as session:
            loaded = holds.active(session, missing, now=now)
        if len(known) + len(missing) > MAX_CACHED:
            known.clear()
        new = {name: (wanted[name], loaded.get(name, ())) for name in missing}
        known.update(new)
        found = {name: entry[1] for name, entry in (entries | new).items() if entry and entry[1]}
        return found, self._read(names) == list(versions)

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

    def _read(self, names: Sequence[str]) -> list[bytes | None]:
        return self._fast_redis.mget([version_key(each) for each in names]) if names else []


def version_key(name: str) -> str:
    """The Redis key of a name's version."""
    return f"held:{name}"

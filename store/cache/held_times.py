"""The held time of all users, cached in each process under a version in Redis.

A hold counts as soon as its client has the answer, in every process: the version is replaced between the
commit and the answer, and a request reads the version with its busy periods. A hold that expires needs no new
version, because its expiry is part of what is cached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from store.cache.versioned_cache import VersionedCache
from store.sql.database import Database
from store.sql.queries import holds
from store.sql.queries.holds import ActiveTime

# Held time by user. Users without any are absent.
Held = Mapping[str, Sequence[ActiveTime]]

_ALL = "all"


class HeldTimes:
    """Loads and caches the held time of all users. There is little of it: a hold lasts an hour at most."""

    def __init__(self, database: Database, versions: VersionedCache) -> None:
        self._database = database
        self._versions = versions

    def cached(self, version: bytes | None) -> Held | None:
        """The held time under a version that was just read from Redis; None if it is not cached."""
        if version is None:
            return None
        found: Held | None = self._versions.switch_to(version).get(_ALL)
        return found

    def load(self, version: bytes | None, now: int) -> tuple[Held, bool]:
        """The held time from the database, and whether the version is still the current one.

        If it is not, the busy periods that were read with the version may be older than the held time.
        """
        if version is None:
            self._versions.current()
        held = self._versions.switch_to(version).get_or_load(_ALL, lambda: self._load(now))
        return held, version is not None and self._versions.current().version == version

    def invalidate(self) -> None:
        """Have all processes load held time again, before the client of a new hold has its answer.

        :raise redis.RedisError: when Redis is down
        """
        self._versions.replace_version()

    def invalidate_best_effort(self) -> None:
        """The same for time that is no longer held: other processes may see it late if Redis is down."""
        self._versions.bump_version()

    def _load(self, now: int) -> Held:
        held: dict[str, list[ActiveTime]] = {}
        with self._database.reading() as session:
            for each in holds.active(session, now=now):
                held.setdefault(each.user, []).append(each)
        return held

"""Held time, cached in each process under versions of the calendars and mailboxes that are held.

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
from itertools import chain

from redis import Redis
from redis.exceptions import RedisError

from store.cache.cache_tags import UserNames
from store.cache.fast_redis import FastRedis
from store.cache.versioned_cache import MAX_CACHED, VERSION_BYTES, CachedRows
from store.sql.database import Database
from store.sql.queries import holds
from store.sql.queries.holds import ActiveTime

log = logging.getLogger(__name__)

# Held time by the names of a user, each hold once. Users without any are absent.
Held = Mapping[UserNames, Sequence[ActiveTime]]
Versions = Sequence[bytes | None]

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

    def __init__(self, database: Database, redis: Redis, fast_redis: FastRedis) -> None:
        self._database = database
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
        with self._database.reading() as session:
            loaded = holds.active(session, {name for each in missing for name in each.all}, now=now)
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

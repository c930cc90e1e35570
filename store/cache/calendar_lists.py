"""Calendar lists of connections, cached in Redis for as long as busy periods of unwatched calendars are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import orjson
from redis import Redis
from redis.client import Pipeline

from store.cache.busy_cache import UNLIMITED, CalendarKey, now_ms
from store.cache.cache_tags import PRIMARY, Identified, has_global_ids

# Longer than any other cache entry of a calendar.
OWNERS_SECONDS = 30 * 86_400


@dataclass(frozen=True, slots=True)
class ListedCalendar:
    """A calendar on an account's list, as far as busy reads need it.

    ``unlisted``: the main calendar, which the provider's list does not have. It may not exist.
    """

    id: str
    primary: bool
    # The address of the other mailbox that shares it. Google calendars need none: their ids are global.
    owner: str = ""
    unlisted: bool = False

    @property
    def read_id(self) -> str:
        """The id under which it is read and cached: the alias for the main calendar, so it is cached once."""
        return PRIMARY if self.primary else self.id


@dataclass(frozen=True, slots=True)
class CalendarList:
    """The calendars of an account, as they were at ``read_at`` in milliseconds."""

    read_at: int
    calendars: tuple[ListedCalendar, ...]


class CalendarLists:
    """Calendar lists by connection id, kept for as long as the busy cache keeps busy periods.

    No list is kept for longer than ``max_age_seconds`` since it was read.
    """

    def __init__(
        self,
        redis: Redis,
        ttl_seconds: float,
        *,
        stale_seconds: float = 0.0,
        max_age_seconds: float = UNLIMITED,
    ) -> None:
        self._redis = redis
        self._fresh_ms = int(ttl_seconds * 1000)
        self._ttl_ms = self._fresh_ms and self._fresh_ms + int(stale_seconds * 1000)
        self._max_age_ms = int(max_age_seconds * 1000)

    def fresh(self, calendars: CalendarList, now: int) -> bool:
        """Whether a list is recent enough to be used without a new read."""
        return calendars.read_at >= now - self._fresh_ms

    def load(
        self, connection_ids: Sequence[str], *, newer_than: int | None = None
    ) -> dict[str, CalendarList]:
        """The cached lists, in one round trip; a list that was read before ``newer_than`` is left out."""
        if not connection_ids or not self._ttl_ms:
            return {}
        values = self._redis.mget([_key(connection_id) for connection_id in connection_ids])
        lists = {
            connection_id: _read(value)
            for connection_id, value in zip(connection_ids, values, strict=True)
            if value is not None
        }
        return {
            connection_id: each
            for connection_id, each in lists.items()
            if each is not None and (newer_than is None or each.read_at >= newer_than)
        }

    def store(self, pipe: Pipeline, connection_id: str, calendars: CalendarList) -> None:
        """Queue on ``pipe`` the storing of a list that was just read."""
        age = max(0, now_ms() - calendars.read_at)
        lifetime = min(self._ttl_ms, self._max_age_ms - age)
        if lifetime > 0:
            pipe.set(_key(connection_id), orjson.dumps(calendars), px=lifetime)

    def owners(self, connection_id: str, calendars: Sequence[str]) -> dict[str, str]:
        """The owners of calendars, ``""`` for the account itself; unknown calendars are left out."""
        if not calendars:
            return {}
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.hmget(_owners(connection_id), list(calendars))
            pipe.expire(_owners(connection_id), OWNERS_SECONDS)
            values, _ = pipe.execute()
        found = zip(calendars, values, strict=True)
        return {calendar: value.decode() for calendar, value in found if value is not None}

    def owner(self, of: Identified, key: CalendarKey) -> str:
        """The address of another mailbox that shares this calendar with the account, as far as known."""
        if has_global_ids(of.provider) or key.calendar in (PRIMARY, of.main_calendar_id):
            return ""
        return self.owners(key.connection, [key.calendar]).get(key.calendar, "")

    def store_owners(self, connection_id: str, owners: Mapping[str, str]) -> None:
        """Store the owners of calendars, for longer than the list: a calendar never changes its owner."""
        if owners:
            with self._redis.pipeline(transaction=False) as pipe:
                pipe.hset(_owners(connection_id), mapping=dict(owners.items()))
                pipe.expire(_owners(connection_id), OWNERS_SECONDS)
                pipe.execute()

    def forget(self, connection_ids: Sequence[str]) -> None:
        """Delete the lists of connections that were deleted."""
        if connection_ids:
            self._redis.delete(*(name(each) for each in connection_ids for name in (_key, _owners)))


def _owners(connection_id: str) -> str:
    return f"calendar-owners:{connection_id}"


def _key(connection_id: str) -> str:
    return f"calendars:{connection_id}"


def _read(value: bytes | str) -> CalendarList | None:
    """A stored list; None if it cannot be parsed, as another version stored it. It is then read again."""
    try:
        return msgspec.json.decode(value, type=CalendarList)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None

"""Which calendars a connection has, remembered in Redis for as long as busy periods are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import orjson
from redis import Redis
from redis.client import Pipeline

# Longer than anything that is cached of a calendar.
OWNERS_SECONDS = 30 * 86_400


@dataclass(frozen=True, slots=True)
class ListedCalendar:
    """A calendar on an account's list, as far as busy reads need it."""

    id: str
    primary: bool
    # The address of another mailbox that shares it. Google calendars need none: their ids are global.
    owner: str = ""

    @property
    def asked_as(self) -> str:
        """The id it is read and cached under: the main one by its alias, so that it is cached once."""
        return "primary" if self.primary else self.id


@dataclass(frozen=True, slots=True)
class CalendarList:
    """The calendars of an account, as they were at ``read_at`` in milliseconds."""

    read_at: int
    calendars: tuple[ListedCalendar, ...]


class CalendarLists:
    """Calendar lists by connection id, kept for as long as the busy cache keeps busy periods."""

    def __init__(self, redis: Redis, ttl_seconds: float, *, stale_seconds: float = 0.0) -> None:
        self._redis = redis
        self._fresh_ms = int(ttl_seconds * 1000)
        self._ttl_ms = self._fresh_ms and self._fresh_ms + int(stale_seconds * 1000)

    def fresh(self, calendars: CalendarList, now: int) -> bool:
        """Whether a list need not be read anew."""
        return calendars.read_at >= now - self._fresh_ms

    def load(
        self, connection_ids: Sequence[str], *, newer_than: int | None = None
    ) -> dict[str, CalendarList]:
        """The lists that are remembered, in one round trip; none that was read before ``newer_than``."""
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
        """Queue on ``pipe`` a list just read."""
        if self._ttl_ms:
            pipe.set(_key(connection_id), orjson.dumps(calendars), px=self._ttl_ms)

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

    def store_owners(self, connection_id: str, owners: Mapping[str, str]) -> None:
        """Keep the owners of calendars for longer than the list: a calendar never changes its owner."""
        if owners:
            with self._redis.pipeline(transaction=False) as pipe:
                pipe.hset(_owners(connection_id), mapping=dict(owners.items()))
                pipe.expire(_owners(connection_id), OWNERS_SECONDS)
                pipe.execute()

    def forget(self, connection_ids: Sequence[str]) -> None:
        """Drop the lists of connections that are gone."""
        if connection_ids:
            self._redis.delete(*(name(each) for each in connection_ids for name in (_key, _owners)))


def _owners(connection_id: str) -> str:
    return f"calendar-owners:{connection_id}"


def _key(connection_id: str) -> str:
    return f"calendars:{connection_id}"


def _read(value: bytes | str) -> CalendarList | None:
    """A list as it was kept; None for what another version has kept, or is none: it is read anew."""
    try:
        return msgspec.json.decode(value, type=CalendarList)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None

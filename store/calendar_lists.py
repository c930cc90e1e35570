"""Which calendars a connection has, remembered in Redis for as long as busy periods are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import orjson
from redis import Redis
from redis.client import Pipeline


@dataclass(frozen=True, slots=True)
class ListedCalendar:
    """A calendar on an account's list, as far as busy reads need it."""

    id: str
    primary: bool


class CalendarLists:
    """Calendar lists by connection id."""

    def __init__(self, redis: Redis, ttl_seconds: float) -> None:
        self._redis = redis
        self._ttl_ms = int(ttl_seconds * 1000)

    def load(self, connection_ids: Sequence[str]) -> dict[str, list[ListedCalendar]]:
        """The lists that are remembered, in one round trip."""
        if not connection_ids or not self._ttl_ms:
            return {}
        values = self._redis.mget([_key(connection_id) for connection_id in connection_ids])
        return {
            connection_id: [ListedCalendar(**entry) for entry in orjson.loads(value)]
            for connection_id, value in zip(connection_ids, values, strict=True)
            if value is not None
        }

    def store(self, pipe: Pipeline, connection_id: str, calendars: Sequence[ListedCalendar]) -> None:
        """Queue on ``pipe`` a list just read."""
        if self._ttl_ms:
            value = orjson.dumps([asdict(calendar) for calendar in calendars])
            pipe.set(_key(connection_id), value, px=self._ttl_ms)

    def forget(self, connection_ids: Sequence[str]) -> None:
        """Drop the lists of connections that are gone."""
        if connection_ids:
            self._redis.delete(*(_key(connection_id) for connection_id in connection_ids))


def _key(connection_id: str) -> str:
    return f"calendars:{connection_id}"

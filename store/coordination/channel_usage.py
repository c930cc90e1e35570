"""Which calendars are in use, and which of them are claimed for opening a channel.

All of it may be lost: a calendar then counts as unused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from redis import Redis

from store.cache.busy_cache import CalendarKey, watch_key
from store.coordination.asked_calendars import asked_key

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

"""Which calendars are in use, for which of them a channel is not to be opened, and which channels are heard.

All of it may be lost: a calendar then counts as not used, and its channel as not heard of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from redis import Redis

from store.cache.busy_cache import CalendarKey, watch_name

# A calendar that nobody has read for so long is not watched any longer.
USED_SECONDS = 7 * 86_400

# There while a round that was called for is expected.
ROUND = "watch-round"


class ChannelUsage:
    """Short notes in Redis, beside the watches of the busy cache."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def use(self, keys: Sequence[CalendarKey]) -> None:
        """Note that these calendars have been read."""
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
        """Those of the calendars that nobody has claimed; they are the caller's for so long."""
        with self._redis.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.set(_claim(key), 1, px=int(seconds * 1000), nx=True)
            claimed = pipe.execute()
        return [key for key, mine in zip(keys, claimed, strict=True) if mine]

    def hold(self, key: CalendarKey, seconds: float) -> None:
        """Let nobody claim a calendar for so long."""
        self._redis.set(_claim(key), 1, px=max(1, int(seconds * 1000)))

    def release(self, key: CalendarKey) -> None:
        """Let the next who reads a calendar claim it."""
        self._redis.delete(_claim(key))

    def hear(self, channel: str, seconds: float) -> None:
        """Note that a channel works: it counts as heard of for so long."""
        self._redis.set(_heard(channel), 1, px=int(seconds * 1000))

    def heard(self, channels: Sequence[str]) -> list[bool]:
        """Whether each channel is heard of, in one round trip."""
        if not channels:
            return []
        return [value is not None for value in self._redis.mget([_heard(each) for each in channels])]

    def call_round(self, seconds: float) -> bool:
        """Whether nobody has called for a round of upkeep in so long; who is told so is to do it."""
        return bool(self._redis.set(ROUND, 1, px=int(seconds * 1000), nx=True))

    def forget(self, connection_ids: Sequence[str]) -> None:
        """Drop every note on the calendars of connections that are gone, and their watches."""
        for connection in connection_ids:
            names = cast(set[bytes], self._redis.smembers(_calendars(connection)))
            keys = [CalendarKey(connection, name.decode()) for name in names]
            notes = [note(key) for key in keys for note in (_used, _claim, watch_name)]
            self._redis.delete(_calendars(connection), *notes)


def _calendars(connection: str) -> str:
    return f"watch-of:{connection}"


def _used(key: CalendarKey) -> str:
    return f"watch-used:{key.connection}:{key.calendar}"


def _claim(key: CalendarKey) -> str:
    return f"watch-claim:{key.connection}:{key.calendar}"


def _heard(channel: str) -> str:
    return f"watch-heard:{channel}"

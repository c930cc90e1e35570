"""Rate limiter of API keys: a number of requests per minute, counted in Redis and timed by its clock.

The window slides. Requests of the current minute count in full; those of the minute before count less as it
recedes. This takes two counters for each key, however large the limit, and never lets twice the limit pass at
the border of two minutes. The scripts are those of ``limits``; both are sent in one round trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from limits.storage import RedisStorage

from store.cache.fast_redis import FastRedis

WINDOW = 60
_MILLISECONDS = 1000 * WINDOW

_TAKE = RedisStorage.SCRIPT_ACQUIRE_SLIDING_WINDOW.decode()
_LOOK = RedisStorage.SCRIPT_SLIDING_WINDOW.decode()


Command = tuple[str | int, ...]


class Quota(NamedTuple):
    """The remaining quota of a key; ``reset`` is the number of seconds until it grows."""

    refused: bool
    limit: int
    remaining: int
    reset: int


class ApiRateLimiter:
    """``limit`` is the limit of each key, in requests per minute."""

    def __init__(self, fast_redis: FastRedis, limit: int) -> None:
        self._fast_redis = fast_redis
        self._limit = limit

    def take(self, key: int) -> Quota:
        """Count a request of the key with this id, unless it is over the limit.

        :raise redis.RedisError: when Redis is down
        """
        return self.quota(self._fast_redis.execute(*self.commands(key)))

    def commands(self, key: int) -> tuple[Command, ...]:
        """The commands of ``take``, for callers that send them with others."""
        counters = f"quota:{key}:before", f"quota:{key}:now"
        return ("EVAL", _TAKE, 2, *counters, self._limit, WINDOW, 1), ("EVAL", _LOOK, 2, *counters, WINDOW)

    def quota(self, replies: Sequence[Any]) -> Quota:
        """The quota that the replies to ``commands`` say."""
        taken, window = replies
        before, before_ends, now, now_ends = (max(0, int(each or 0)) for each in window)
        remaining = max(0, self._limit - now - before * before_ends // _MILLISECONDS)
        # Quota grows one by one as the previous minute recedes, or once this minute has become the previous.
        moments = [before_ends % (_MILLISECONDS / before)] if before else []
        moments += [now_ends - _MILLISECONDS] if now else []
        reset = max(1, -(-int(min(moments, default=0)) // 1000))
        return Quota(not taken, self._limit, remaining, reset)

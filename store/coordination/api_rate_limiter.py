"""How often each API key may still ask: so many requests a minute, counted in Redis and by its clock.

The minute slides: what was asked in the last one counts in full, what was asked in the one before counts for
less and less. It takes two counters for a key, however many requests it may make, and knows no border at
which twice as many pass. The scripts are those of ``limits``; both go in one round trip.
"""

from __future__ import annotations

from typing import NamedTuple

from limits.storage import RedisStorage

from store.cache.fast_redis import FastRedis

WINDOW = 60
_MILLISECONDS = 1000 * WINDOW

_TAKE = RedisStorage.SCRIPT_ACQUIRE_SLIDING_WINDOW.decode()
_LOOK = RedisStorage.SCRIPT_SLIDING_WINDOW.decode()


class Quota(NamedTuple):
    """What is left to a key; ``reset`` is the number of seconds until it is more."""

    refused: bool
    limit: int
    remaining: int
    reset: int


class ApiRateLimiter:
    """``limit`` is that of each key, in requests a minute."""

    def __init__(self, line: FastRedis, limit: int) -> None:
        self._line = line
        self._limit = limit

    def take(self, key: int) -> Quota:
        """Count a request of the key with this number, unless there is no room for it.

        :raise redis.RedisError: when Redis is down
        """
        counters = f"quota:{key}:before", f"quota:{key}:now"
        taken, window = self._line.ask(
            ("EVAL", _TAKE, 2, *counters, self._limit, WINDOW, 1), ("EVAL", _LOOK, 2, *counters, WINDOW)
        )
        before, before_ends, now, now_ends = (max(0, int(each or 0)) for each in window)
        remaining = max(0, self._limit - now - before * before_ends // _MILLISECONDS)
        # The older minute gives its requests back one by one; this one, once it has become the older.
        moments = [before_ends % (_MILLISECONDS / before)] if before else []
        moments += [now_ends - _MILLISECONDS] if now else []
        reset = max(1, -(-int(min(moments, default=0)) // 1000))
        return Quota(not taken, self._limit, remaining, reset)

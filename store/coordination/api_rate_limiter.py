"""Rate limiter of API keys and organizations: requests per minute, counted in Redis and timed by its clock.

The window slides. Requests of the current minute count in full; those of the minute before count less as it
recedes. This takes two counters for each key, however large the limit, and never lets twice the limit pass at
the border of two minutes. The functions that count are the scripts of ``limits``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from limits.storage import RedisStorage

from store.cache.fast_redis import FastRedis
from store.lua import Script

WINDOW = 60
_MILLISECONDS = 1000 * WINDOW

_FUNCTIONS = {
    "take": RedisStorage.SCRIPT_ACQUIRE_SLIDING_WINDOW,
    "look": RedisStorage.SCRIPT_SLIDING_WINDOW,
}
_TEXT = "".join(
    f"local function {name}(KEYS, ARGV)\n{text.decode()}\nend\n" for name, text in _FUNCTIONS.items()
)
_TEXT += Script("coordination/scripts/request_limits.lua").text


Command = tuple[str | int, ...]


class RemainingQuota(NamedTuple):
    """The remaining quota of a key or of its organization; ``reset`` is in how many seconds it grows."""

    refused: bool
    limit: int
    remaining: int
    reset: int
    of_organization: bool = False


class RequestLimit(NamedTuple):
    """The most requests a minute of a key, or of all keys of an organization.

    Its counters are named after ``name``.
    """

    name: str
    most: int
    of_organization: bool = False


Limits = tuple[RequestLimit, ...]


def take(fast_redis: FastRedis, limits: Limits) -> RemainingQuota:
    """Count a request, unless that exceeds one of the limits, of which there is at least one.

    :raise redis.RedisError: when Redis is down
    """
    (reply,) = fast_redis.execute(command(limits))
    return quota(reply, limits)


def command(limits: Limits) -> Command:
    """The command of ``take``, for callers that send it with others."""
    counters = [f"quota:{each.name}:{window}" for each in limits for window in ("before", "now")]
    return ("EVAL", _TEXT, len(counters), *counters, WINDOW, *(each.most for each in limits))


def quota(reply: Any, limits: Limits) -> RemainingQuota:
    """The quota that the reply to ``command`` says: the one that refuses, else the smallest."""
    refusing, *windows = reply
    found = [
        _quota(each, window, refused=number == refusing)
        for number, (each, window) in enumerate(zip(limits, windows, strict=True), start=1)
    ]
    return min(found, key=lambda each: (not each.refused, each.remaining))


def _quota(limit: RequestLimit, window: list[Any], *, refused: bool) -> RemainingQuota:
    before, before_ends, now, now_ends = (max(0, int(each or 0)) for each in window)
    remaining = max(0, limit.most - now - before * before_ends // _MILLISECONDS)
    # Quota grows one by one as the previous minute recedes, or once this minute has become the previous.
    moments = [before_ends % (_MILLISECONDS / before)] if before else []
    moments += [now_ends - _MILLISECONDS] if now else []
    reset = max(1, -(-int(min(moments, default=0)) // 1000))
    return RemainingQuota(refused, limit.most, remaining, reset, limit.of_organization)

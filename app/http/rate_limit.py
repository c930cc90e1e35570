"""Rate limit for each API key: 429 when it is used up, and ``RateLimit-*`` headers on every response."""

from __future__ import annotations

import logging

from flask import Flask, Response, g, request
from redis.exceptions import RedisError

from app.http.error_codes import Code
from app.http.errors import ApiError
from app.services import services
from store.cache.versioned_cache import CachedRows
from store.config.settings import Settings
from store.coordination.api_rate_limiter import Quota

log = logging.getLogger(__name__)

LIMIT, REMAINING, RESET = "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"

# In the scope of ASGI and the environment of WSGI: the quota of a request that is counted already.
COUNTED = "almanac.quota"


class TooMany(ApiError):
    """429: the key has used up its requests of this minute."""

    def __init__(self, quota: Quota) -> None:
        super().__init__(
            f"This API key is limited to {quota.limit} requests a minute; try again in {quota.reset} s",
            Code.KEY_RATE_LIMITED,
            retry_after=quota.reset,
        )


def install(app: Flask, settings: Settings) -> None:
    """Set the ``RateLimit-*`` headers, if the settings have a limit."""
    if settings.rate_limit:
        app.after_request(_set_headers)


def count(key: int, rows: CachedRows) -> None:
    """Count this request, unless it is counted already, for the key with this internal id.

    While Redis is down, requests are answered without being counted.

    :raise TooMany: if the limit is exceeded
    """
    limiter = services().stores.api_rate_limiter
    # Without a version, Redis was unreachable.
    if limiter is None or rows.version is None:
        return
    try:
        g.quota = request.environ.get(COUNTED) or limiter.take(key)
    except RedisError as error:
        log.warning("request not counted for the rate limit, Redis failed: %s", type(error).__name__)
        g.quota = None
    if g.quota is not None and g.quota.refused:
        raise TooMany(g.quota)


def headers(quota: Quota) -> dict[str, str]:
    """The headers of a response that report the quota."""
    return {LIMIT: str(quota.limit), REMAINING: str(quota.remaining), RESET: str(quota.reset)}


def _set_headers(response: Response) -> Response:
    quota: Quota | None = g.get("quota")
    if quota is not None:
        response.headers.update(headers(quota))
    return response

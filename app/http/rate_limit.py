"""The rate limit of each API key: refused with 429 when it is used up, told by headers of every answer."""

from __future__ import annotations

import logging

from flask import Flask, Response, g
from redis.exceptions import RedisError

from app.http.errors import ApiError
from app.services import services
from store.cache.versioned_cache import CachedVersion
from store.config.settings import Settings
from store.coordination.api_rate_limiter import Quota

log = logging.getLogger(__name__)

LIMIT, REMAINING, RESET = "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"


class TooMany(ApiError):
    """The key has made as many requests as it may."""

    status = 429

    def __init__(self, quota: Quota) -> None:
        super().__init__(
            f"This API key is limited to {quota.limit} requests a minute; try again in {quota.reset} s",
            beside={"retryAfter": quota.reset},
            headers={"Retry-After": str(quota.reset)},
        )


def install(app: Flask, settings: Settings) -> None:
    """Tell every answer to a key what is left to it, where there is a limit."""
    if settings.rate_limit:
        app.after_request(_tell)


def count(key: int, memory: CachedVersion) -> None:
    """Count this request, once, as one of the key with this number.

    Without Redis nothing is counted: what needs it is not answered anyway, the rest is better answered.

    :raise TooMany: when it is one too many
    """
    quotas = services().stores.api_rate_limiter
    # Without a stamp Redis was away, or nothing was asked of it yet: then this is called again.
    if quotas is None or memory.stamp is None or "quota" in g:
        return
    try:
        g.quota = quotas.take(key)
    except RedisError as error:
        log.warning("requests of keys are not counted without Redis: %s", type(error).__name__)
        g.quota = None
    if g.quota is not None and g.quota.refused:
        raise TooMany(g.quota)


def _tell(response: Response) -> Response:
    quota: Quota | None = g.get("quota")
    if quota is not None:
        response.headers[LIMIT] = str(quota.limit)
        response.headers[REMAINING] = str(quota.remaining)
        response.headers[RESET] = str(quota.reset)
    return response

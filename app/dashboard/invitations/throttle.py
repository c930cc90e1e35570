"""A limit on how often one address opens invitations, so that secrets cannot be guessed by the thousand."""

from __future__ import annotations

import logging

from flask import request
from limits import RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import FixedWindowRateLimiter
from redis.exceptions import RedisError

from app.services import services

log = logging.getLogger(__name__)

# A company's people may share one address, and each opens the page a few times.
PER_MINUTE = RateLimitItemPerMinute(120, 1, namespace="invitation")


def allowed() -> bool:
    """Count this request; whether its address is within the limit. Without Redis nothing is limited."""
    # The pool has the address; the URL only selects the kind of storage.
    pool = services().stores.redis.connection_pool
    limiter = FixedWindowRateLimiter(RedisStorage("redis://", connection_pool=pool))
    try:
        return limiter.hit(PER_MINUTE, request.remote_addr or "")
    except RedisError as error:
        log.warning("request not counted for the limit of invitations: %s", type(error).__name__)
        return True

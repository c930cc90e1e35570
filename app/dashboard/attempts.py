"""Attempts to sign in, counted in Redis: who guesses passwords has to wait."""

from __future__ import annotations

import hmac
import logging
import time
from ipaddress import IPv6Address, ip_address, ip_network

from flask import current_app, request
from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter

from app.services import services
from store.stores import Stores

log = logging.getLogger(__name__)

# Failures with one name from one address: a person who mistypes has enough, a program has not.
FROM_HERE = RateLimitItemPerMinute(5, 15, namespace="sign-in")
# With one name from anywhere, and from one address with any name.
BY_NAME = RateLimitItemPerHour(50, 1, namespace="sign-in-name")
BY_ADDRESS = RateLimitItemPerHour(50, 1, namespace="sign-in-address")

_EXTENSION = "almanac-attempts"


def wait(name: str) -> int:
    """Seconds until another attempt with this name is heard; 0 when it is heard now."""
    limiter = _limiter()
    ends = [
        limiter.get_window_stats(item, *key).reset_time
        for item, key in _counted(name)
        if not limiter.test(item, *key)
    ]
    return max(0, int(max(ends) - time.time()) + 1) if ends else 0


def note(name: str, *, known: bool) -> None:
    """Count and log an attempt that failed; ``known`` when an administrator has that name."""
    for item, key in _counted(name):
        _limiter().hit(item, *key)
    # People type their password where the name belongs.
    who = f"administrator {name}" if known else "nobody we know"
    log.warning("a sign-in as %s from %s failed", who, request.remote_addr)
    if seconds := wait(name):
        log.warning("sign-ins as %s from %s have to wait %d s", who, request.remote_addr, seconds)


def forget(name: str) -> None:
    """Somebody has signed in: what failed before, with that name from that address, was mistyped."""
    item, key = _counted(name)[0]
    _limiter().clear(item, *key)


def forget_everywhere(stores: Stores, name: str) -> None:
    """Forget what failed with a name, from whatever address.

    :raise redis.RedisError: when Redis is down
    """
    storage, digest = _storage(stores), _digest(stores, name)
    storage.clear(BY_NAME.key_for(digest))
    for key in stores.redis.scan_iter(storage.prefixed_key(FROM_HERE.key_for(digest, "*")), count=1000):
        stores.redis.delete(key)


def _counted(name: str) -> list[tuple[RateLimitItem, tuple[str, ...]]]:
    digest, network = _digest(services().stores, name), _network(request.remote_addr or "")
    return [(FROM_HERE, (digest, network)), (BY_NAME, (digest,)), (BY_ADDRESS, (network,))]


def _digest(stores: Stores, name: str) -> str:
    # With our key: whoever reads Redis cannot guess what was typed.
    return hmac.digest(stores.settings.secret_key.encode(), name.encode(), "sha256").hex()


def _network(address: str) -> str:
    """Whose address it is: of IPv6 everybody has 2 to the power of 64."""
    try:
        found = ip_address(address)
    except ValueError:
        # A Unix socket has none.
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or ip_network((int(found), 64), strict=False).network_address)


def _limiter() -> MovingWindowRateLimiter:
    limiter: MovingWindowRateLimiter | None = current_app.extensions.get(_EXTENSION)
    if limiter is None:
        limiter = MovingWindowRateLimiter(_storage(services().stores))
        current_app.extensions[_EXTENSION] = limiter
    return limiter


def _storage(stores: Stores) -> RedisStorage:
    # The pool knows the address; this one only names the kind of storage.
    return RedisStorage("redis://", connection_pool=stores.redis.connection_pool)

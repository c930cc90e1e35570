"""Limits on failed sign-ins of administrators, counted in Redis."""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address, ip_network

from flask import Response, current_app, request
from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter

from app.dashboard.sign_in import known_browsers
from app.http import hosts
from app.services import services
from store.stores import Stores

log = logging.getLogger(__name__)

# Failures with one name from one address, or in one known browser: enough for a person who mistypes.
FROM_HERE = RateLimitItemPerMinute(5, 15, namespace="sign-in")
# Failures with one name from any address, and from one address with any name.
BY_NAME = RateLimitItemPerHour(50, 1, namespace="sign-in-name")
BY_ADDRESS = RateLimitItemPerHour(50, 1, namespace="sign-in-address")
# Failures of an hour that the audit log records, as its records are never deleted; and one that says so.
RECORDED = RateLimitItemPerHour(500, 1, namespace="sign-in-recorded")
CUT_OFF = RateLimitItemPerHour(1, 1, namespace="sign-in-cut-off")

_EXTENSION = "almanac-attempts"

# Serializes the attempts of a process, so that each sees the failures of the ones before.
_attempt_lock = threading.Lock()
# At most this many attempts run or wait for the lock; more would hold threads that the API needs.
_attempt_slots = threading.BoundedSemaphore(4)


class MustWait(Exception):
    """An attempt is refused for some seconds; the message is fit for the page."""

    def __init__(self, seconds: int, sentence: str) -> None:
        super().__init__(sentence)
        self.seconds = seconds


@contextmanager
def attempt(name: str) -> Iterator[None]:
    """A context in which to check a password for this name. The caller reports a wrong one by ``note``.

    :raise MustWait: when too many attempts have failed, or too many run at this moment
    """
    if not _attempt_slots.acquire(blocking=False):
        raise MustWait(1, "Too many people sign in at this moment. Try again in a moment.")
    try:
        with _attempt_lock:
            if seconds := wait(name):
                raise MustWait(seconds, f"Too many attempts. Try again in {_minutes(seconds)}.")
            yield
    finally:
        _attempt_slots.release()


def wait(name: str) -> int:
    """Seconds until another attempt with this name is allowed; 0 when it is allowed now."""
    limiter = _limiter()
    ends = [
        limiter.get_window_stats(item, *key).reset_time
        for item, key in _counted(name)
        if not limiter.test(item, *key)
    ]
    return max(0, int(max(ends) - time.time()) + 1) if ends else 0


def note(name: str, *, known: bool, what: str = "sign-in") -> None:
    """Count and log a failed attempt; ``known`` is whether an administrator has that name.

    The log lines hold the client's address, so that an operator can block it.
    """
    for item, key in _counted(name):
        _limiter().hit(item, *key)
    # Unknown names are not logged: users sometimes type their password into the name field.
    who = f"administrator {name}" if known else "an unknown name"
    log.warning("%s failed: %s from %s", what, who, request.remote_addr)
    if seconds := wait(name):
        log.warning("%s throttled: %s from %s, wait %d s", what, who, request.remote_addr, seconds)
        _warn_of_undeclared_proxy()


def take(item: RateLimitItem, kind: str) -> bool:
    """Count one of a limited number; whether the limit permits it."""
    return _limiter().hit(item, kind)


def forget(name: str) -> None:
    """Reset this client's failures with a name, because its administrator has given the right password."""
    item, key = _counted(name)[0]
    _limiter().clear(item, *key)


def know_browser(name: str, response: Response) -> Response:
    """Mark the browser as known: its failures are counted separately from those of its address."""
    return known_browsers.mark(response, _digest(services().stores, name))


def forget_everywhere(stores: Stores, name: str) -> None:
    """Reset all failures with a name, and those of all addresses, as an address may be a shared proxy's.

    :raise redis.RedisError: when Redis is down
    """
    storage, digest = _storage(stores), _digest(stores, name)
    storage.clear(BY_NAME.key_for(digest))
    for item in (FROM_HERE.key_for(digest, "*"), BY_ADDRESS.key_for("*")):
        for key in stores.redis.scan_iter(storage.prefixed_key(item), count=1000):
            stores.redis.delete(key)


def _counted(name: str) -> list[tuple[RateLimitItem, tuple[str, ...]]]:
    """The counters that a failure with this name increments."""
    digest = _digest(services().stores, name)
    if browser := known_browsers.number(digest):
        return [(FROM_HERE, (digest, browser))]
    network = _network(request.remote_addr or "")
    return [(FROM_HERE, (digest, network)), (BY_NAME, (digest,)), (BY_ADDRESS, (network,))]


def _warn_of_undeclared_proxy() -> None:
    """Log a hint if clients may share the limited address because a proxy is not configured."""
    if services().settings.trusted_proxies or not hosts.forwarded():
        return
    log.warning(
        "sign-ins arrive through a proxy, and ALMANAC_TRUSTED_PROXIES is 0: all clients behind it count as "
        "%s; set ALMANAC_TRUSTED_PROXIES to the number of proxies",
        request.remote_addr,
    )


def _digest(stores: Stores, name: str) -> str:
    # Keyed, so that an attacker who can read Redis cannot guess the typed text from the digest.
    return hmac.digest(stores.settings.secret_key.encode(), name.encode(), "sha256").hex()


def _network(address: str) -> str:
    """The address to count by: for IPv6 the /64 network, as a client usually has all its addresses."""
    try:
        found = ip_address(address)
    except ValueError:
        # A client of a Unix socket has no address.
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or ip_network((int(found), 64), strict=False).network_address)


def _minutes(seconds: int) -> str:
    minutes = -(-seconds // 60)
    return "a minute" if minutes == 1 else f"{minutes} minutes"


def _limiter() -> MovingWindowRateLimiter:
    limiter: MovingWindowRateLimiter | None = current_app.extensions.get(_EXTENSION)
    if limiter is None:
        limiter = MovingWindowRateLimiter(_storage(services().stores))
        current_app.extensions[_EXTENSION] = limiter
    return limiter


def _storage(stores: Stores) -> RedisStorage:
    # The pool has the address; the URL only selects the kind of storage.
    return RedisStorage("redis://", connection_pool=stores.redis.connection_pool)

"""Failed checks of passwords and codes: limits, counted in Redis; records of them; and known browsers."""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import Enum
from ipaddress import IPv6Address, ip_address, ip_network

from flask import Response, current_app, request
from itsdangerous import BadSignature, URLSafeTimedSerializer
from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter

from app.dashboard.sign_in import sessions
from app.http import hosts
from app.http.authentication import known_caller
from app.services import services
from store.sql.queries import audit
from store.stores import Stores

log = logging.getLogger(__name__)

# Failures with one name from one address, or in one known browser: enough for a person who mistypes.
FROM_HERE = RateLimitItemPerMinute(5, 15, namespace="sign-in")
# Failures with one name from any address, and from one address with any name.
BY_NAME = RateLimitItemPerHour(50, 1, namespace="sign-in-name")
BY_ADDRESS = RateLimitItemPerHour(50, 1, namespace="sign-in-address")
# Failures of an hour that the audit log records, as its records are kept for long; and one that says so.
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


def network() -> str:
    """The network of the client of this request, by which its attempts are limited."""
    return _network(request.remote_addr or "")


def forget(name: str) -> None:
    """Reset this client's failures with a name, because its administrator has given the right password."""
    item, key = _counted(name)[0]
    _limiter().clear(item, *key)


def know_browser(name: str, response: Response) -> Response:
    """Mark the browser as known: its failures are counted separately from those of its address."""
    return _mark_browser(response, _digest(services().stores, name))


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
    if browser := _browser_number(digest):
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


COOKIE = "almanac_browser"
BROWSER_LIFETIME = timedelta(days=180)
# Only the sign-in and the account page read it.
BROWSER_PATH = "/dashboard"


def _mark_browser(response: Response, name_digest: str) -> Response:
    """Set the cookie that says that an administrator of this name has signed in with this browser."""
    response.set_cookie(
        COOKIE,
        _browser_cookie().dumps([name_digest, secrets.token_hex(16)]),
        max_age=BROWSER_LIFETIME,
        path=BROWSER_PATH,
        httponly=True,
        samesite="Lax",
        secure=bool(current_app.config["SESSION_COOKIE_SECURE"]),
    )
    return response


def _browser_number(name_digest: str) -> str | None:
    """The random number in the cookie; None unless this name has signed in with this browser."""
    try:
        kept = _browser_cookie().loads(
            request.cookies.get(COOKIE, ""), max_age=int(BROWSER_LIFETIME.total_seconds())
        )
    except BadSignature:
        return None
    marked_for, browser = kept
    return browser if hmac.compare_digest(marked_for, name_digest) else None


def _browser_cookie() -> URLSafeTimedSerializer:
    assert current_app.secret_key is not None, "an application has a secret key"
    return URLSafeTimedSerializer(current_app.secret_key, salt="known browser")


class FailedCheck(Enum):
    """The failed check: its words in the log of the service, and its action in the audit log."""

    SIGN_IN = "sign-in", "signInFailed"
    SECOND_FACTOR = "second factor", "secondFactorFailed"
    PASSWORD_CHANGE = "password change", "passwordChangeFailed"
    PASSWORD_CHECK = "password check", "passwordCheckFailed"


def note_failure(name: str, failure: FailedCheck = FailedCheck.SIGN_IN, *, known: bool = True) -> None:
    """Count, log and record a failed attempt; ``known`` is whether a person has that name.

    Unknown names are not recorded: users sometimes type their password into the field of the name.
    """
    what, action = failure.value
    note(name, known=known, what=what)
    kind = "known" if known else "unknown"
    if take(RECORDED, kind):
        who = name if known else "an unknown name"
        _record(action, f"{who} from {request.remote_addr}")
    elif take(CUT_OFF, kind):
        most = RECORDED.amount
        _record(
            action, f"more than {most} in an hour, of {kind} names: the log of the service has the others"
        )


def _record(action: str, subject: str) -> None:
    actor = audit.STRANGER if known_caller() is None else sessions.actor()
    with services().stores.database.writing() as session:
        audit.record(session, actor=actor, action=action, subject=subject)

"""Locks across processes, in Redis.

Those of provider accounts keep revocations of a grant and consents that renew it apart. Google revokes for an
account and an application: every token dies, even one that a consent has just obtained. So a revocation holds
the account's lock while it looks for other connections and revokes. A consent holds the lock while it stores
its connection. It is refused when the account was revoked after its code was exchanged.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from redis import Redis
from redis.exceptions import RedisError

from store.coordination import shares
from store.sql.queries.connections import ProviderAccount

log = logging.getLogger(__name__)

# Seconds that a holder may need after its deadline, to store an answer that came at the last moment.
MARGIN = 10.0


class LockTimeout(Exception):
    """The lock was not free in time."""


@contextmanager
def hold(redis: Redis, name: str, *, deadline: float, wait: float | None = None) -> Iterator[None]:
    """Hold a lock for work that ends by ``deadline``, a moment of ``time.monotonic()``.

    Waits ``wait`` seconds for it, or until the deadline.

    :raise LockTimeout: when it is not free in time
    """
    left = max(0.0, deadline - time.monotonic())
    # The lock outlasts its holder's work. A dead holder's lock expires then.
    lock = redis.lock(f"lock:{name}", timeout=left + MARGIN, sleep=0.02)
    if not lock.acquire(blocking=False):
        with shares.turn_paused():
            acquired = lock.acquire(blocking_timeout=left if wait is None else wait)
        if not acquired:
            raise LockTimeout(name)
    try:
        yield
    finally:
        try:
            lock.release()
        except RedisError as error:
            # The work is done: Redis lost the lock or is down, or this process was paused for too long.
            log.warning("lock not released, it expires by itself: %s", type(error).__name__)


# Longer than any exchange of a code takes.
REMEMBERED_SECONDS = 600


class AccountLocks:
    """Locks of provider accounts, and the times at which their grants were revoked."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def now(self) -> float:
        """The time by Redis's clock, which all machines share, in seconds."""
        seconds, microseconds = self._redis.time()
        return float(seconds + microseconds / 1e6)

    @contextmanager
    def exclusive(self, account: ProviderAccount, *, deadline: float) -> Iterator[None]:
        """Hold the lock of an account. ``deadline`` is of ``time.monotonic()``.

        :raise LockTimeout: when it is not free before the deadline
        """
        with ExitStack() as locks:
            for name in _names(account):
                locks.enter_context(hold(self._redis, f"account:{name}", deadline=deadline))
            yield

    def note_revocation(self, account: ProviderAccount) -> None:
        """Note that the grant of an account is revoked now."""
        moment = repr(self.now())
        for name in _names(account):
            self._redis.set(_revoked_key(name), moment, ex=REMEMBERED_SECONDS)

    def revoked_since(self, account: ProviderAccount, moment: float) -> bool:
        """Whether the grant of an account was revoked at or after ``moment``, a time of ``now()``."""
        names = _names(account)
        noted = self._redis.mget([_revoked_key(name) for name in names]) if names else []
        return any(value is not None and float(value) >= moment for value in noted)


def _names(account: ProviderAccount) -> list[str]:
    """The account by id and by address, sorted so that all take locks in one order.

    Two connections of an account may each know only one of the two.
    """
    known = (account.id and f"id:{account.id}", account.email and f"email:{account.email.lower()}")
    texts = (f"{account.provider}:{each}" for each in known if each)
    return sorted(hashlib.sha256(text.encode()).hexdigest() for text in texts)


def _revoked_key(name: str) -> str:
    return f"grant-revoked:{name}"

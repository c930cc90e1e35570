"""Mutual exclusion of revocations of a provider account's grant and consents that renew it.

Google revokes for an account and an application: every token dies, even one that a consent has just obtained.
So a revocation holds the account's lock while it looks for other connections and revokes. A consent holds the
lock while it stores its connection. It is refused when the account was revoked after its code was exchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from redis import Redis

from store.coordination.locks import account_lock
from store.sql.queries.connections import ProviderAccount

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
                locks.enter_context(account_lock(self._redis, name, deadline=deadline))
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

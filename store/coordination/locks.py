"""Locks across processes, in Redis."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

# Seconds that a holder may need after its deadline, to store an answer that came at the last moment.
MARGIN = 10.0


class LockTimeout(Exception):
    """The lock was not free in time."""


@contextmanager
def refresh_lock(redis: Redis, name: str, *, deadline: float) -> Iterator[None]:
    """Hold the lock for requesting new tokens of one owner. ``deadline`` is of ``time.monotonic()``.

    ``name`` is a connection's id, or the name of a grant's token.

    :raise LockTimeout: when it is not free before the deadline
    """
    # Concurrent refreshes would use one refresh token: if the provider rotates it, the grant could be lost.
    left = _left(deadline)
    with _held(redis, f"lock:refresh:{name}", timeout=left, lifetime=left + MARGIN):
        yield


@contextmanager
def account_lock(redis: Redis, account: str, *, deadline: float) -> Iterator[None]:
    """Hold the lock for storing or revoking the grant of one provider account.

    :raise LockTimeout: when it is not free before the deadline
    """
    left = _left(deadline)
    with _held(redis, f"lock:account:{account}", timeout=left, lifetime=left + MARGIN):
        yield


@contextmanager
def unified_lock(redis: Redis, user: str, meta_id: str, *, timeout: float, lifetime: float) -> Iterator[None]:
    """Hold the lock for creating one unified event of a user; both times are in seconds.

    :raise LockTimeout: when it is not free within ``timeout``
    """
    # Of two requests that create the same event at once, one could find the other's first copy and rely on
    # it, and the other could then undo it.
    with _held(redis, f"lock:unified:{user}:{meta_id}", timeout=timeout, lifetime=lifetime + MARGIN):
        yield


@contextmanager
def try_lock(redis: Redis, name: str, *, deadline: float) -> Iterator[None]:
    """Hold a lock without waiting for it: for a round of upkeep.

    The work under the lock ends by ``deadline``, a moment of ``time.monotonic()``.

    :raise LockTimeout: when another process holds the lock
    """
    with _held(redis, f"lock:round:{name}", timeout=0.0, lifetime=_left(deadline) + MARGIN):
        yield


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


@contextmanager
def _held(redis: Redis, name: str, *, timeout: float, lifetime: float) -> Iterator[None]:
    # The lock outlasts its holder's work. A dead holder's lock expires then.
    lock = redis.lock(name, timeout=lifetime, sleep=0.02)
    if not lock.acquire(blocking_timeout=timeout):
        raise LockTimeout(name)
    try:
        yield
    finally:
        try:
            lock.release()
        except RedisError as error:
            # The work is done: Redis lost the lock or is down, or this process was paused for too long.
            log.warning("lock not released, it expires by itself: %s", type(error).__name__)

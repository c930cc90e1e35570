"""Locks across processes, in Redis."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

# What a holder may need beyond its deadline: an answer that comes at the last moment has to be stored.
MARGIN = 10.0


class LockTimeout(Exception):
    """The lock was not free in time."""


@contextmanager
def refresh_lock(redis: Redis, connection_id: str, *, deadline: float) -> Iterator[None]:
    """Hold the right to refresh one connection's tokens. ``deadline`` is of ``time.monotonic()``.

    :raise LockTimeout: when another holds it for too long
    """
    # Two who refresh at once trade in the same refresh token: where it is rotated, the grant could be lost.
    left = _left(deadline)
    with _held(redis, f"lock:refresh:{connection_id}", waits=left, lasts=left + MARGIN):
        yield


@contextmanager
def account_lock(redis: Redis, account: str, *, deadline: float) -> Iterator[None]:
    """Hold the right to store or to revoke the grant of one provider account.

    :raise LockTimeout: when another holds it for too long
    """
    left = _left(deadline)
    with _held(redis, f"lock:account:{account}", waits=left, lasts=left + MARGIN):
        yield


@contextmanager
def unified_lock(redis: Redis, user: str, meta_id: str, *, waits: float, lasts: float) -> Iterator[None]:
    """Hold the right to create one unified event of a user; both times are in seconds.

    :raise LockTimeout: when another holds it for too long
    """
    # Of two who create the same at once, one could find the other's first copy, and lose it to its undoing.
    with _held(redis, f"lock:unified:{user}:{meta_id}", waits=waits, lasts=lasts + MARGIN):
        yield


@contextmanager
def round_lock(redis: Redis, name: str, *, deadline: float) -> Iterator[None]:
    """Hold the right to a round of upkeep that ends by ``deadline``; does not wait for it.

    :raise LockTimeout: while another round is under way
    """
    with _held(redis, f"lock:round:{name}", waits=0.0, lasts=_left(deadline) + MARGIN):
        yield


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


@contextmanager
def _held(redis: Redis, name: str, *, waits: float, lasts: float) -> Iterator[None]:
    # Nobody works for longer than it lasts: until then the lock holds, a dead holder's ends there.
    lock = redis.lock(name, timeout=lasts, sleep=0.02)
    if not lock.acquire(blocking_timeout=waits):
        raise LockTimeout(name)
    try:
        yield
    finally:
        try:
            lock.release()
        except RedisError as error:
            # Redis lost it, or is away, or this process stood still: what was done under it is done.
            log.warning("a lock was not there to be released: %s", type(error).__name__)

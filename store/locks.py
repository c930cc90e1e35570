"""Locks across processes, in Redis."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis
from redis.exceptions import LockError

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
    with _held(redis, f"lock:refresh:{connection_id}", deadline=deadline, waits=True):
        yield


@contextmanager
def round_lock(redis: Redis, name: str, *, deadline: float) -> Iterator[None]:
    """Hold the right to a round of upkeep that ends by ``deadline``; does not wait for it.

    :raise LockTimeout: while another round is under way
    """
    with _held(redis, f"lock:round:{name}", deadline=deadline, waits=False):
        yield


@contextmanager
def _held(redis: Redis, name: str, *, deadline: float, waits: bool) -> Iterator[None]:
    left = max(0.0, deadline - time.monotonic())
    # Nobody works beyond the deadline and the margin: until then the lock holds, a dead holder's ends there.
    lock = redis.lock(name, timeout=left + MARGIN, sleep=0.02)
    if not lock.acquire(blocking_timeout=left if waits else 0.0):
        raise LockTimeout(name)
    try:
        yield
    finally:
        # Gone when Redis lost it, or when this process stood still beyond the margin.
        with contextlib.suppress(LockError):
            lock.release()

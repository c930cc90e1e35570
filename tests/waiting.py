"""Waiting for what others do: it comes when it comes, and a busy machine may take its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from redis import Redis

# Seconds: a test with two such waits still says which of them was in vain.
PATIENCE = 50.0


def until(
    holds: Callable[[], Any], patience: float = PATIENCE, *, meanwhile: Callable[[], object] = lambda: None
) -> Any:
    """What ``holds`` answers as soon as it is true; fails when it never is."""
    give_up = time.monotonic() + patience
    while not (found := holds()):
        assert time.monotonic() < give_up, "it does not come to pass"
        meanwhile()
        time.sleep(0.05)
    return found


def no_read_is_under_way(redis: Redis) -> bool:
    """Whether every read that a request asked for is over.

    A read is first a task on the queue, then a job on a work list, and until it has landed a flight.
    """
    waiting = redis.llen("reads") or redis.keys("fanout:*:work")
    return not waiting and all(redis.hexists(key, "landed") for key in redis.keys("flight:*"))

"""Waiting for other processes, with patience for a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from redis import Redis

# Seconds: short enough that a test with two such waits reports which of them failed.
PATIENCE = 50.0


def until(
    holds: Callable[[], Any], patience: float = PATIENCE, *, meanwhile: Callable[[], object] = lambda: None
) -> Any:
    """The first true result of ``holds``; fails when there is none in time."""
    give_up = time.monotonic() + patience
    while not (found := holds()):
        assert time.monotonic() < give_up, f"the condition was not met within {patience:.0f} s"
        meanwhile()
        time.sleep(0.05)
    return found


def no_read_is_under_way(redis: Redis) -> bool:
    """Whether every read of the requests is over.

    A read is first a task on the queue, then a job on a work list, and then it has a lock until it ends.
    """
    return not (redis.llen("reads") or redis.keys("fanout:*:work") or redis.keys("read-lock:*"))

"""Runs scheduled work one round at a time, and its many small jobs a few at a time."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Generic, Protocol, TypeVar

from store.coordination import locks
from store.coordination.locks import LockTimeout
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# Threads that one batch takes at most, of those for upkeep: two scheduled batches can run at the same time.
AT_ONCE = 4
SECONDS_FOR_EACH = 10.0
PURGED_AT_ONCE = 1000

Item = TypeVar("Item")


class Round(Protocol):
    """Scheduled work that ends by ``deadline``, on ``time.monotonic()``; returns how many items succeeded."""

    def __call__(self, runtime: Runtime, *, deadline: float) -> int: ...


def one_at_a_time(name: str) -> Callable[[Round], Round]:
    """Decorate a round: it returns 0 at once while another worker, or an earlier task, runs the same."""

    def decorate(run: Round) -> Round:
        @wraps(run)
        def locked(runtime: Runtime, *, deadline: float) -> int:
            try:
                with locks.hold(runtime.stores.redis, f"round:{name}", deadline=deadline, wait=0.0):
                    return run(runtime, deadline=deadline)
            except LockTimeout:
                log.info("the previous round of %s has not ended", name)
                return 0

        return locked

    return decorate


class Batch(Generic[Item]):
    """Calls ``work`` for each item, in a few threads.

    No item begins in the last ten seconds before ``deadline``, so that each one has its full time. ``work``
    returns whether it succeeded. If all threads for upkeep are in use, a batch ``waits`` for one, or does not
    begin any item.
    """

    def __init__(
        self,
        runtime: Runtime,
        items: Iterable[Item],
        work: Callable[[Item], bool],
        deadline: float,
        *,
        waits: bool = True,
    ) -> None:
        self._runtime = runtime
        self._waits = waits
        self._waiting = deque(items)
        self._perform = work
        self._last_start = deadline - SECONDS_FOR_EACH

    @property
    def not_started(self) -> list[Item]:
        """The items that were not begun."""
        return list(self._waiting)

    def run(self) -> int:
        """Run until time is up or all items have ended. Returns how many succeeded."""
        reserved = self._reserve_threads()
        if not reserved:
            return 0
        try:
            with ThreadPoolExecutor(reserved, thread_name_prefix="upkeep") as threads:
                return sum(threads.map(lambda _: self._run(), range(reserved)))
        finally:
            self._runtime.upkeep.release(reserved)

    def _reserve_threads(self) -> int:
        """Take as many threads for upkeep as are free and useful. Waits for the first one only."""
        upkeep, most, reserved = self._runtime.upkeep, min(AT_ONCE, len(self._waiting)), 0
        timeout = max(0.0, self._last_start - time.monotonic()) if self._waits else 0.0
        while reserved < most and upkeep.acquire(timeout=0.0 if reserved else timeout):
            reserved += 1
        return reserved

    def _run(self) -> int:
        """Perform items in one thread, as long as time is left; returns how many succeeded."""
        done = 0
        while time.monotonic() < self._last_start:
            try:
                item = self._waiting.popleft()
            except IndexError:
                break
            try:
                done += self._perform(item)
            except Exception:
                log.exception("an upkeep job failed unexpectedly")
        return done


def purge(runtime: Runtime, delete: Callable[..., int]) -> int:
    """Call ``delete(session, limit=...)`` in small transactions until no rows are left; returns how many."""
    purged = 0
    while True:
        with runtime.stores.database.writing() as session:
            gone = delete(session, limit=PURGED_AT_ONCE)
        purged += gone
        if gone < PURGED_AT_ONCE:
            return purged

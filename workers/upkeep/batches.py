"""Runs many small upkeep jobs, a few at a time, in the thread pool of the process."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

from workers.fanout.pool import PoolShare
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# Threads that one batch takes at most, of those for upkeep: two scheduled batches can run at the same time.
AT_ONCE = 4
SECONDS_FOR_EACH = 10.0
PURGED_AT_ONCE = 1000

Item = TypeVar("Item")


class Batch(Generic[Item]):
    """Calls ``work`` for each item, in the threads of this process that are reserved for upkeep.

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
        self._in_flight = 0
        self._room = 0

    @property
    def not_started(self) -> list[Item]:
        """The items that were not begun."""
        return list(self._waiting)

    def run(self) -> int:
        """Run until time is up or all items have ended. Returns how many succeeded."""
        self._reserve_threads()
        self._share: PoolShare[bool] = self._runtime.pool.share()
        done = 0
        try:
            while self._in_flight or self._startable():
                self._share.request(self._startable())
                finished, granted = self._share.wait(None if self._in_flight else self._last_start)
                done += sum(finished)
                self._in_flight -= len(finished)
                self._start(granted)
        finally:
            self._share.close()
            if self._room:
                self._runtime.upkeep.release(self._room)
        return done

    def _reserve_threads(self) -> None:
        """Take as many threads for upkeep as are free and useful. Waits for the first one only."""
        upkeep, most = self._runtime.upkeep, min(AT_ONCE, len(self._waiting))
        timeout = max(0.0, self._last_start - time.monotonic()) if self._waits else 0.0
        while self._room < most and upkeep.acquire(timeout=0.0 if self._room else timeout):
            self._room += 1

    def _startable(self) -> int:
        """How many more items can begin now."""
        if time.monotonic() >= self._last_start:
            return 0
        return min(self._room - self._in_flight, len(self._waiting))

    def _start(self, places: int) -> None:
        in_time = time.monotonic() < self._last_start
        starting = min(places, len(self._waiting)) if in_time else 0
        for _ in range(starting):
            self._share.run(partial(self._work, self._waiting.popleft()))
        self._in_flight += starting
        self._share.release(places - starting)

    def _work(self, item: Item) -> bool:
        """Runs in a pool thread. Catches every exception, so that the item counts as finished."""
        try:
            return self._perform(item)
        except Exception:
            log.exception("an upkeep job failed unexpectedly")
            return False


def purge(runtime: Runtime, delete: Callable[..., int]) -> int:
    """Call ``delete(session, limit=...)`` in small transactions until no rows are left; returns how many."""
    purged = 0
    while True:
        with runtime.stores.database.writing() as session:
            gone = delete(session, limit=PURGED_AT_ONCE)
        purged += gone
        if gone < PURGED_AT_ONCE:
            return purged

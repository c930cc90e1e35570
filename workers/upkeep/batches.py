"""A round of upkeep: many small pieces of work for nobody in particular, a few at once."""

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

# Of the places that upkeep may hold, a round takes no more: two rounds of beat go on beside each other.
AT_ONCE = 4
SECONDS_FOR_EACH = 10.0
PURGED_AT_ONCE = 1000

Item = TypeVar("Item")


class Batch(Generic[Item]):
    """Work on each item, in the places of this process that are upkeep's.

    Nothing begins in the last ten seconds before ``deadline``: whatever is begun has its full time. ``work``
    tells whether it has done its piece. When all of upkeep's places are taken, a round ``waits`` for one, or
    leaves everything.
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
    def left(self) -> list[Item]:
        """What was not begun."""
        return list(self._waiting)

    def run(self) -> int:
        """Work until nothing waits or time is up, and everything started has ended; how many were done."""
        self._take_room()
        self._share: PoolShare[bool] = self._runtime.pool.share()
        done = 0
        try:
            while self._anything_left():
                finished, granted = self._share.wait(None if self._in_flight else self._last_start)
                done += sum(finished)
                self._in_flight -= len(finished)
                self._start(granted)
        finally:
            self._share.close()
            if self._room:
                self._runtime.upkeep.release(self._room)
        return done

    def _take_room(self) -> None:
        """Take as many of upkeep's places as are free and of use, the first after waiting for it."""
        upkeep, most = self._runtime.upkeep, min(AT_ONCE, len(self._waiting))
        patience = max(0.0, self._last_start - time.monotonic()) if self._waits else 0.0
        while self._room < most and upkeep.acquire(timeout=0.0 if self._room else patience):
            self._room += 1

    def _anything_left(self) -> bool:
        """Whether the round goes on; says how many places it can use."""
        in_time = time.monotonic() < self._last_start
        startable = min(self._room - self._in_flight, len(self._waiting)) if in_time else 0
        self._share.want(startable)
        return bool(self._in_flight or startable)

    def _start(self, places: int) -> None:
        in_time = time.monotonic() < self._last_start
        starting = min(places, len(self._waiting)) if in_time else 0
        for _ in range(starting):
            self._share.run(partial(self._work, self._waiting.popleft()))
        self._in_flight += starting
        self._share.give_back(places - starting)

    def _work(self, item: Item) -> bool:
        """Runs in a place. Whatever happens, the round learns that it is over."""
        try:
            return self._perform(item)
        except Exception:
            log.exception("a piece of upkeep failed unexpectedly")
            return False


def purge(runtime: Runtime, delete: Callable[..., int]) -> int:
    """Delete in transactions of moderate size what ``delete(session, limit=...)`` finds; returns how much."""
    purged = 0
    while True:
        with runtime.stores.database.writing() as session:
            gone = delete(session, limit=PURGED_AT_ONCE)
        purged += gone
        if gone < PURGED_AT_ONCE:
            return purged

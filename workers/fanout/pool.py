"""The inner pool: threads that wait on providers, shared fairly by every fan-out of a process."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar

log = logging.getLogger(__name__)

Result = TypeVar("Result")

# One place in so many comes on top, for whoever has none: a provider that hangs and holds all the others
# does not lock a newcomer out.
SPARE = 16


class FairPool:
    """``size`` threads, each a place for one read, and a few spare ones.

    Whoever has work opens a share and says how many places more it wants. A place that is free goes to the
    share that wants one and holds fewest, of equals to the one that has wanted for longest: a small request
    is served before a large one that has some already, large ones come to hold about as many, and a single
    one holds all. Most work that has no place yet stays on its Redis list, where another process can take it.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._spare = max(1, size // SPARE)
        self._threads = ThreadPoolExecutor(size + self._spare, thread_name_prefix="read")
        self.lock = threading.Lock()
        self._held = 0
        # In the order in which they began to want.
        self._wanting: dict[PoolShare[Any], None] = {}

    @property
    def size(self) -> int:
        """How many places there are, without the spare ones."""
        return self._size

    @property
    def used(self) -> int:
        """How many are held just now; with spare ones it can be more than there are."""
        return self._held

    def share(self) -> PoolShare[Any]:
        """A share that holds no place yet; to be closed by who opened it."""
        return PoolShare(self)

    def changed(self, share: PoolShare[Any], held: int) -> None:
        """Note that a share holds so many more places, or wants another number; the lock is held."""
        self._held += held
        if share.wants:
            self._wanting.setdefault(share)
        else:
            self._wanting.pop(share, None)
        while self._wanting:
            first = min(self._wanting, key=lambda each: each.holds)
            # Who holds fewest holds none, or nobody here is without.
            if self._held >= self._size + (0 if first.holds else self._spare):
                return
            self._held += 1
            if not first.grant():
                del self._wanting[first]

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work`` in a thread."""
        self._threads.submit(work)


class PoolShare(Generic[Result]):
    """The places of one piece of work, and what came of what ran in them. Used by one thread."""

    def __init__(self, places: FairPool) -> None:
        self._places = places
        self._news = threading.Condition(places.lock)
        self._granted = 0
        self._finished: list[Result] = []
        self._stock: deque[Callable[[], Result]] = deque()
        self._running = 0
        self.wants = 0
        self.holds = 0

    def want(self, places: int) -> None:
        """Say how many places it wants beyond those that it holds."""
        with self._places.lock:
            # What was granted and not yet seen is a part of it.
            self.wants = max(0, places - self._granted)
            self._places.changed(self, 0)

    def wait(self, until: float | None = None, *, gather: float = 0.0) -> tuple[list[Result], int]:
        """What has finished, and how many places were granted, since it was last asked.

        Waits for the first of either, or until a moment of ``time.monotonic()``. What has finished is joined
        by what does so within ``gather`` seconds.
        """
        with self._news:
            while not self._finished and not self._granted:
                left = None if until is None else until - time.monotonic()
                if (left is not None and left <= 0) or not self._news.wait(left):
                    break
            more = bool(self._finished)
        if more and gather:
            time.sleep(gather)
        with self._news:
            finished, self._finished = self._finished, []
            granted, self._granted = self._granted, 0
            return finished, granted

    def run(self, work: Callable[[], Result]) -> None:
        """Run ``work`` in a place that was granted; the place is given back when it ends."""
        work = partial(copy_context().run, work)
        with self._places.lock:
            self._begin(work)

    def prefetch(self, work: Callable[[], Result]) -> None:
        """Run ``work`` in the next place that is granted: the owner need not be awake for it."""
        # The thread that grants it the place may work for somebody else.
        work = partial(copy_context().run, work)
        with self._places.lock:
            self._stock.append(work)

    @property
    def prefetched(self) -> int:
        """How much work waits in stock."""
        return len(self._stock)

    def give_back(self, places: int) -> None:
        """Return places that were granted and not used."""
        with self._places.lock:
            self.holds -= places
            self._places.changed(self, -places)

    def close(self) -> None:
        """Want nothing more. What runs runs on, and gives its place back; what is in stock never runs."""
        with self._places.lock:
            self._stock.clear()
            unused = self.holds - self._running
            self.wants = self._granted = 0
            self.holds -= unused
            self._places.changed(self, -unused)

    def grant(self) -> bool:
        """Take one place more; whether another is wanted. The lock is held."""
        self.holds += 1
        self.wants -= 1
        if self._stock:
            self._begin(self._stock.popleft())
        else:
            self._granted += 1
            self._news.notify()
        return self.wants > 0

    def _begin(self, work: Callable[[], Result]) -> None:
        """Hand work to a thread; the lock is held."""
        self._running += 1
        self._places.submit(lambda: self._run(work))

    def _run(self, work: Callable[[], Result]) -> None:
        results: list[Result] = []
        try:
            results.append(work())
        except Exception:
            log.exception("work in a place failed")
        with self._places.lock:
            self._finished += results
            self._running -= 1
            self.holds -= 1
            self._news.notify()
            self._places.changed(self, -1)

"""The thread pool of a process, shared fairly by all its fan-outs."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar

from store.coordination.shares import UNBOUND

log = logging.getLogger(__name__)

Result = TypeVar("Result")

# One spare place for this many regular ones, for shares that hold none. A provider that hangs and holds all
# regular places does not lock out a new fan-out.
SPARE = 16
# The same for tenants that hold fewer than another: a tenant whose reads hang does not lock out the others.
SPARE_FOR_TENANTS = 8


class FairPool:
    """A pool of ``size`` threads, plus a few spare ones. A place is one thread for one piece of work.

    Each fan-out opens a share and requests places. A free place goes to the tenant with the fewest places,
    and of its shares to the one with the fewest; among equals, to the one that has waited longest. So a small
    request is served before a large one that has places already, large ones get about the same number, and a
    single one gets all. Most work without a place stays on its Redis list, where another process can take it.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._spare = max(1, size // SPARE)
        self._spare_for_tenants = max(1, size // SPARE_FOR_TENANTS)
        threads = size + self._spare + self._spare_for_tenants
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="job")
        self.lock = threading.Lock()
        self._held = 0
        self._held_by: Counter[int] = Counter()
        # The shares that request places, in order of their requests.
        self._wanting: dict[PoolShare[Any], None] = {}

    @property
    def size(self) -> int:
        """The number of places, without the spare ones."""
        return self._size

    @property
    def used(self) -> int:
        """How many places are held. This can exceed ``size``, because of the spare ones."""
        return self._held

    def share(self, tenant: int = UNBOUND) -> PoolShare[Any]:
        """Open a share without places. The caller must close it."""
        return PoolShare(self, tenant)

    def rebalance(self, share: PoolShare[Any], more: int) -> None:
        """Count ``more`` places in use, note whether ``share`` still wants places, and grant the free ones.

        The caller holds the lock.
        """
        self._count(share.tenant, more)
        if share.wants:
            self._wanting.setdefault(share)
        else:
            self._wanting.pop(share, None)
        while able := [each for each in self._wanting if self._held < self._limit(each)]:
            first = min(able, key=lambda each: (self._held_by[each.tenant], each.places_held))
            self._count(first.tenant, 1)
            if not first.grant():
                del self._wanting[first]

    def _count(self, tenant: int, more: int) -> None:
        self._held += more
        self._held_by[tenant] += more
        if not self._held_by[tenant]:
            del self._held_by[tenant]

    def _limit(self, share: PoolShare[Any]) -> int:
        """How many places may be held after the share has got one: spare ones are for those that hold few."""
        held = self._held_by[share.tenant]
        if held < max(self._held_by.values(), default=0):
            return (
                self._size + self._spare + (self._spare_for_tenants if held < self._spare_for_tenants else 0)
            )
        return self._size + (0 if share.places_held else self._spare)

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work`` in a thread."""
        self._threads.submit(work)


class PoolShare(Generic[Result]):
    """The places of one fan-out, and the results of the work in them. Used by one thread."""

    def __init__(self, pool: FairPool, tenant: int) -> None:
        self._pool = pool
        self.tenant = tenant
        self._news = threading.Condition(pool.lock)
        self._granted = 0
        self._finished: list[Result] = []
        self._prefetched: deque[Callable[[], Result]] = deque()
        self._running = 0
        self.wants = 0
        self.places_held = 0

    def request(self, places: int) -> None:
        """Request this many places in addition to the ones it holds."""
        with self._pool.lock:
            # Places that were granted, but not yet returned by ``wait``, are included.
            self.wants = max(0, places - self._granted)
            self._pool.rebalance(self, 0)

    def wait(self, until: float | None = None, *, linger: float = 0.0) -> tuple[list[Result], int]:
        """The results, and the number of places granted, since the last call.

        Waits for the first of either, or until a moment of ``time.monotonic()``. After a result it waits
        another ``linger`` seconds, to collect more results.
        """
        with self._news:
            while not self._finished and not self._granted:
                left = None if until is None else until - time.monotonic()
                if (left is not None and left <= 0) or not self._news.wait(left):
                    break
            any_finished = bool(self._finished)
        if any_finished and linger:
            time.sleep(linger)
        with self._news:
            finished, self._finished = self._finished, []
            granted, self._granted = self._granted, 0
            return finished, granted

    def run(self, work: Callable[[], Result]) -> None:
        """Run ``work`` in a granted place, which is released when the work ends."""
        work = partial(copy_context().run, work)
        with self._pool.lock:
            self._begin(work)

    def prefetch(self, work: Callable[[], Result]) -> None:
        """Run ``work`` in the next place that is granted, without waiting for the owner's thread."""
        # The thread that grants the place may belong to another share and have its context.
        work = partial(copy_context().run, work)
        with self._pool.lock:
            self._prefetched.append(work)

    @property
    def prefetched(self) -> int:
        """How much prefetched work waits for a place."""
        return len(self._prefetched)

    def release(self, places: int) -> None:
        """Release places that were granted and not used."""
        with self._pool.lock:
            self.places_held -= places
            self._pool.rebalance(self, -places)

    def close(self) -> None:
        """Request no more places. Running work continues; prefetched work is dropped."""
        with self._pool.lock:
            self._prefetched.clear()
            unused = self.places_held - self._running
            self.wants = self._granted = 0
            self.places_held -= unused
            self._pool.rebalance(self, -unused)

    def grant(self) -> bool:
        """Add one place; returns whether the share requests another. The lock is held."""
        self.places_held += 1
        self.wants -= 1
        if self._prefetched:
            self._begin(self._prefetched.popleft())
        else:
            self._granted += 1
            self._news.notify()
        return self.wants > 0

    def _begin(self, work: Callable[[], Result]) -> None:
        """Hand work to a thread; the lock is held."""
        self._running += 1
        self._pool.submit(lambda: self._run(work))

    def _run(self, work: Callable[[], Result]) -> None:
        results: list[Result] = []
        try:
            results.append(work())
        except Exception:
            log.exception("work in the thread pool failed")
        with self._pool.lock:
            self._finished += results
            self._running -= 1
            self.places_held -= 1
            self._news.notify()
            self._pool.rebalance(self, -1)

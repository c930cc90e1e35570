"""The threads of a process that perform the jobs of all its requests.

The queue of the executor is first in, first out. A step that has ended submits itself again, at the end of
the queue. So the requests share the threads fairly. The steps of one tenant never have all threads: reads
that hang leave some to the other tenants.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from store.coordination.shares import UNBOUND
from store.stores import Stores
from workers.fanout.reports import Reporter
from workers.fanout.waiting import ReadLocks, Timer

log = logging.getLogger(__name__)

# One thread more for this many reads in flight: while some steps take jobs, the others still read.
SPARE = 8
# The same, for tenants that have fewer than another.
SPARE_FOR_TENANTS = 8
# The most tasks of a tenant that wait until its steps have threads.
MAX_WAITING_TASKS = 8
# The same of all tenants: Celery has sixteen threads that webhooks cannot take.
MAX_WAITING_IN_ALL = 12
# Seconds between two looks whether a worker that ends has finished.
FINISH_SECONDS = 0.05


Step = Callable[[], None]


class UnderWay(Protocol):
    """The steps of one task."""

    @property
    def busy(self) -> bool:
        """Whether a job is under way or waits."""

    def leave(self, provider: str) -> None:
        """Answer the reads of a provider that this worker cannot reach."""


class StepPool:
    """Threads for ``size`` reads in flight, and the timer, reporter and read locks that they share."""

    def __init__(self, size: int, stores: Stores) -> None:
        self.size = size
        self.timer = Timer()
        self.locks = ReadLocks(stores.single_flight, self.timer)
        self.reporter = Reporter(stores, self.locks)
        self._share = size + max(1, size // SPARE)
        threads = self._share + max(1, size // SPARE_FOR_TENANTS)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="step")
        self._changed = threading.Condition()
        self._running = 0
        # The steps of each tenant that the executor has, and further steps that wait for the end of one.
        self._given: Counter[int] = Counter()
        self._held_back: defaultdict[int, deque[Step]] = defaultdict(deque)
        self._tasks_waiting: Counter[int] = Counter()
        self._under_way: dict[UnderWay, None] = {}

    @property
    def used(self) -> int:
        """How many threads are in use."""
        return self._running

    def submit(self, step: Step, tenant: int = UNBOUND) -> None:
        """Run a step as soon as a thread is free for its tenant and the steps before it have begun."""
        with self._changed:
            if self._given[tenant] >= self._share:
                self._held_back[tenant].append(step)
                return
            self._given[tenant] += 1
        self._give(step, tenant)

    def _give(self, step: Step, tenant: int) -> None:
        try:
            self._threads.submit(self._run, step, tenant)
        except RuntimeError:
            # The process ends.
            with self._changed:
                self._given[tenant] -= 1
            raise

    def add(self, steps: UnderWay) -> None:
        """Note steps that have started."""
        self._under_way[steps] = None

    def remove(self, steps: UnderWay) -> None:
        """Forget steps whose deadline has passed."""
        self._under_way.pop(steps, None)

    def leave(self, provider: str) -> None:
        """Answer the reads of a provider that this worker cannot reach."""
        for each in list(self._under_way):
            each.leave(provider)

    def finish(self, seconds: float) -> None:
        """Wait until all jobs that were taken have been reported."""
        until = time.monotonic() + seconds
        while self._is_busy() and time.monotonic() < until:
            time.sleep(FINISH_SECONDS)
        self.close()
        self.reporter.join(max(0.0, until - time.monotonic()))

    def _is_busy(self) -> bool:
        return self._given.total() > 0 or any(each.busy for each in list(self._under_way))

    def wait_for_room(self, seconds: float, tenant: int = UNBOUND) -> None:
        """Wait until a tenant has no more steps than it may have threads: another process may have some free.

        Only a few tasks of a tenant wait: each holds a thread of Celery, which the tasks of others need.
        """
        with self._changed:
            waiting = self._tasks_waiting
            if waiting[tenant] >= MAX_WAITING_TASKS or waiting.total() >= MAX_WAITING_IN_ALL:
                return
            self._tasks_waiting[tenant] += 1
            try:
                self._changed.wait_for(lambda: self._has_room(tenant), seconds)
            finally:
                self._tasks_waiting[tenant] -= 1
                if not self._tasks_waiting[tenant]:
                    del self._tasks_waiting[tenant]

    def _has_room(self, tenant: int) -> bool:
        return len(self._held_back.get(tenant, ())) <= self._share

    def close(self) -> None:
        """End the threads, once their steps have ended."""
        self.timer.stop()
        self._threads.shutdown(wait=False)
        self.reporter.stop()

    def _run(self, step: Step, tenant: int) -> None:
        with self._changed:
            self._running += 1
        try:
            step()
        except Exception:
            log.exception("a step failed unexpectedly")
        finally:
            with self._changed:
                self._running -= 1
                following = self._next_of(tenant)
            if following is not None:
                self._give(following, tenant)

    def _next_of(self, tenant: int) -> Step | None:
        """The step of a tenant that follows one that has ended. The lock is held."""
        if waiting := self._held_back.get(tenant):
            step = waiting.popleft()
            if not waiting:
                del self._held_back[tenant]
            if self._has_room(tenant):
                self._changed.notify_all()
            return step
        self._given[tenant] -= 1
        if not self._given[tenant]:
            del self._given[tenant]
        return None

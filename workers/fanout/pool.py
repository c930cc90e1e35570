"""The threads of a process that perform the jobs of all its requests.

A step that has ended submits itself again, behind the other steps of its tenant. So the requests of a tenant
share its threads fairly. The tenants that have steps never have all threads: reads that hang leave some to
others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol
from weakref import WeakSet

from store.coordination.shares import UNBOUND
from store.stores import Stores
from workers.fanout.reports import Reporter
from workers.fanout.waiting import ReadLocks, Timer

log = logging.getLogger(__name__)

# Further threads, as a share of the reads in flight: while some steps take jobs, the others still read.
SPARE = 0.4
# A tenant may have this many threads for each one that is free, beside the last. So tenants whose reads hang
# leave some to others: of 89 threads one such tenant has 71, a second one 14 more, and a third one 3 more.
SHARE = 4
# The most tasks of a tenant that wait until its steps have threads.
MAX_WAITING_TASKS = 8
# The same of all tenants: Celery has sixteen threads that webhooks cannot take.
MAX_WAITING_IN_ALL = 12
# Seconds between two looks whether a worker that ends has finished.
FINISH_SECONDS = 0.05


Step = Callable[[], None]


class Task(Protocol):
    """The steps of one task of a request."""

    @property
    def busy(self) -> bool:
        """Whether a job is under way or waits."""


class StepPool:
    """Threads for ``size`` reads in flight, and the timer, reporter and read locks that they share."""

    def __init__(self, size: int, stores: Stores) -> None:
        self.size = size
        self.timer = Timer()
        self.locks = ReadLocks(stores.single_flight, self.timer)
        self.reporter = Reporter(stores, self.locks)
        # The tasks whose steps may be under way.
        self.tasks: WeakSet[Task] = WeakSet()
        self._all = self._free = size + max(2, int(size * SPARE))
        self._threads = ThreadPoolExecutor(self._all, thread_name_prefix="step")
        self._changed = threading.Condition()
        # The threads of each tenant, and its steps that wait for one.
        self._used: Counter[int] = Counter()
        self._held_back: defaultdict[int, deque[Step]] = defaultdict(deque)
        self._tasks_waiting: Counter[int] = Counter()

    @property
    def used(self) -> int:
        """How many threads are in use."""
        return self._all - self._free

    def submit(self, step: Step, tenant: int = UNBOUND) -> None:
        """Run a step as soon as its tenant may have a thread and the steps before it have begun."""
        with self._changed:
            self._held_back[tenant].append(step)
            self._begin_steps()

    def _begin_steps(self) -> None:
        """Give free threads to the tenants that have the fewest and may have one. The lock is held."""
        while self._held_back:
            tenant = min(self._held_back, key=self._used.__getitem__)
            if self._used[tenant] > SHARE * (self._free - 1):
                return
            step = self._held_back[tenant].popleft()
            if not self._held_back[tenant]:
                del self._held_back[tenant]
            self._threads.submit(self._run, step, tenant)
            self._used[tenant] += 1
            self._free -= 1

    def finish(self, seconds: float) -> None:
        """Wait until all jobs that were taken have been reported."""
        until = time.monotonic() + seconds
        while self._is_busy() and time.monotonic() < until:
            time.sleep(FINISH_SECONDS)
        self.close()
        self.reporter.join(max(0.0, until - time.monotonic()))

    def _is_busy(self) -> bool:
        return self.used > 0 or any(each.busy for each in list(self.tasks))

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
        return len(self._held_back.get(tenant, ())) <= self.size

    def close(self) -> None:
        """End the threads, once their steps have ended."""
        self.timer.stop()
        self._threads.shutdown(wait=False)
        self.reporter.stop()

    def _run(self, step: Step, tenant: int) -> None:
        try:
            step()
        except Exception:
            log.exception("a step failed unexpectedly")
        finally:
            with self._changed:
                self._used[tenant] -= 1
                if not self._used[tenant]:
                    del self._used[tenant]
                self._free += 1
                self._changed.notify_all()
                self._begin_steps()

"""What jobs wait for without a thread: a moment, or the end of the read of another job.

The process renews the locks of its reads each second, until the read ends or should have ended long ago. A
job that waits for a read of this process is resumed as soon as that read has ended. For a read of another
process, or one that hangs, one job looks again at short intervals, and the others that wait for it are
resumed with it.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable

from redis.exceptions import RedisError

from store.coordination.single_flight import ReadLock, SingleFlight

log = logging.getLogger(__name__)


class Timer:
    """Calls functions at moments of ``time.monotonic()``. They must not block, or other calls are late."""

    def __init__(self) -> None:
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._started = self._stopped = False

    def call_at(self, when: float, function: Callable[[], None]) -> None:
        """Call ``function`` at ``when``, or now if that has passed."""
        with self._changed:
            if not self._started:
                threading.Thread(target=self._run, name="timer", daemon=True).start()
                self._started = True
            heapq.heappush(self._calls, (when, next(self._numbers), function))
            if self._calls[0][0] == when:
                self._changed.notify()

    def stop(self) -> None:
        """Make no further calls."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _run(self) -> None:
        while (function := self._next()) is not None:
            try:
                function()
            except Exception:
                # If this thread ended, no job would be resumed any more.
                log.exception("a timed call failed")

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._stopped:
                left = self._calls[0][0] - time.monotonic() if self._calls else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._calls)[2]
                self._changed.wait(left)
        return None


# Seconds between two renewals; several within the lifetime of a lock.
RENEW_SECONDS = 1.0
# Seconds between two looks at the read of another process.
LOOK_SECONDS = 0.05

Resume = Callable[[], None]


class ReadLocks:
    """Locks and waiting jobs of one process; thread-safe."""

    def __init__(self, flights: SingleFlight, timer: Timer) -> None:
        self._flights = flights
        self._timer = timer
        self._lock = threading.Lock()
        # The moment from which on a lock is not renewed, because the read should have ended.
        self._held: dict[ReadLock, float] = {}
        self._waiting: dict[ReadLock, list[Resume]] = {}
        self._renews = self._looks = False

    def hold(self, locks: Iterable[ReadLock], until: float) -> None:
        """Renew these locks until they are dropped, or ``until`` (``time.monotonic()``)."""
        with self._lock:
            self._held |= dict.fromkeys(locks, until)
            if self._held and not self._renews:
                self._renews = True
                self._timer.call_at(time.monotonic() + RENEW_SECONDS, self._renew)

    def drop(self, locks: Iterable[ReadLock]) -> None:
        """Stop the renewal of locks that were released, and resume the jobs that wait for them.

        They may be locks of another process, whose reads have ended.
        """
        resumed: list[Resume] = []
        with self._lock:
            for each in locks:
                self._held.pop(each, None)
                resumed += self._waiting.pop(each, ())
        for resume in resumed:
            resume()

    def wait(self, lock: ReadLock, resume: Resume) -> None:
        """Call ``resume``, which must not block, when the read under this lock may have ended."""
        with self._lock:
            self._waiting.setdefault(lock, []).append(resume)
            if not self._looks:
                self._looks = True
                self._timer.call_at(time.monotonic() + LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Resume a job for each read of another process. It waits again if the read has not ended."""
        resumed: list[Resume] = []
        with self._lock:
            renewed = set(self._renewed())
            for lock in [each for each in self._waiting if each not in renewed]:
                resumed.append(self._waiting[lock].pop(0))
                if not self._waiting[lock]:
                    del self._waiting[lock]
            self._looks = bool(self._waiting)
            if self._looks:
                self._timer.call_at(time.monotonic() + LOOK_SECONDS, self._look)
        for resume in resumed:
            resume()

    def _renewed(self) -> list[ReadLock]:
        """The locks that this process renews. The lock of this object is held."""
        now = time.monotonic()
        return [each for each, until in self._held.items() if until > now]

    def _renew(self) -> None:
        with self._lock:
            renewed = self._renewed()
            self._renews = bool(self._held)
        if not self._renews:
            return
        try:
            self._flights.renew(renewed)
        except RedisError as error:
            log.warning("read locks not renewed: %s", type(error).__name__)
        finally:
            self._timer.call_at(time.monotonic() + RENEW_SECONDS, self._renew)

"""One thread in each process that calls functions at their time. Jobs that wait for it hold no thread."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

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

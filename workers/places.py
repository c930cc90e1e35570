"""The inner pool: threads that wait on providers, shared by every fan-out of a process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


class Places:
    """``size`` threads, each a place for one read.

    A fan-out claims places before it takes work, so work that no place is free for stays on its Redis
    list, where another process can take it, and a small request waits for one place only.
    """

    def __init__(self, size: int) -> None:
        self._free = threading.Semaphore(size)
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="read")

    def claim(self, most: int, *, until: float) -> int:
        """Claim one place, and up to ``most`` when more are free; waits for the first one.

        Returns 0 when none was free by ``until``, a moment of ``time.monotonic()``.
        """
        if not self._free.acquire(timeout=max(0.0, until - time.monotonic())):
            return 0
        claimed = 1
        while claimed < most and self._free.acquire(blocking=False):
            claimed += 1
        return claimed

    def give_back(self, places: int) -> None:
        """Return places that were claimed and not used."""
        if places:
            self._free.release(places)

    def run(self, work: Callable[[], None]) -> None:
        """Run ``work`` in a place claimed before; the place is given back when it ends."""
        self._threads.submit(self._run, work)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            self._free.release()

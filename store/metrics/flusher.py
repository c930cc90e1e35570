"""A thread that flushes every few seconds, for example counters from memory to Redis."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

SECONDS = 5.0


class Flusher:
    """Calls each of ``flushes`` periodically, and a last time when the process ends.

    Start it in the process that counts, after any fork: threads do not survive a fork.
    """

    def __init__(self, flushes: Sequence[Callable[[], None]], *, seconds: float = SECONDS) -> None:
        self._flushes = list(flushes)
        self._seconds = seconds
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, flush: Callable[[], None]) -> None:
        """Call this function too."""
        self._flushes.append(flush)

    def start(self) -> None:
        """Start the thread; a second call has no effect."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="flusher", daemon=True)
            self._thread.start()
            atexit.register(self.close)

    def close(self) -> None:
        """Flush a last time and stop the thread."""
        atexit.unregister(self.close)
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._flush()

    def _run(self) -> None:
        while not self._over.wait(self._seconds):
            self._flush()

    def _flush(self) -> None:
        for flush in self._flushes:
            try:
                flush()
            except Exception:
                # Any error: the next flush may succeed, and the other functions must still be called.
                log.exception("flush failed")

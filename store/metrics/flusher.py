"""A thread that writes down, every few seconds, what requests only note in memory."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

SECONDS = 5.0


class Flusher:
    """Calls each of ``flushes`` again and again, and a last time when the process ends.

    It is started by the process that counts: a thread does not outlive a fork.
    """

    def __init__(self, flushes: Sequence[Callable[[], None]], *, seconds: float = SECONDS) -> None:
        self._flushes = list(flushes)
        self._seconds = seconds
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, flush: Callable[[], None]) -> None:
        """Call this too, the last time included."""
        self._flushes.append(flush)

    def start(self) -> None:
        """Begin; a second time changes nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="flusher", daemon=True)
            self._thread.start()
            atexit.register(self.close)

    def close(self) -> None:
        """Flush a last time, and end."""
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
                # Whatever it is: the next time may do, and the others have nothing to do with it.
                log.exception("what was noted could not be written down")

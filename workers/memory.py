"""A ceiling for the memory of a worker: one that has grown above it becomes a new one.

Threads share one process, so that Celery's own ceilings, which end processes of a pool, do not apply. The
worker waits for a moment in which it does nothing, ends as if it had been told to, and at its very end starts
its own command in its place: the process id stays, so that whatever started it has nothing to do.
"""

from __future__ import annotations

import atexit
import logging
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery.signals import worker_shutting_down
from celery.worker import state
from redis.exceptions import RedisError

from store.coordination.heartbeats import Heartbeats
from workers.runtime import Runtime

log = logging.getLogger(__name__)

MEBIBYTE = 2**20

# Seconds between two looks at the memory, and at whether it is quiet once there is too much.
LOOK, LOOK_FOR_QUIET = 5.0, 0.1

# Seconds after which a worker goes that is never quiet: longer than any round of upkeep. What it has begun is
# finished all the same, but until then it takes nothing new.
PATIENCE = 300.0

_STATM = Path("/proc/self/statm")


def resident() -> int:
    """Bytes of memory that this process holds; where the system does not say, the most that it ever held."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


class Ceiling:
    """Waits until this worker, ``name``, holds more than ``limit`` bytes, and then for a moment to ``leave``.

    ``quiet`` says whether it does nothing just now. Of several workers one leaves at a time.
    """

    def __init__(
        self,
        name: str,
        limit: int,
        presence: Heartbeats,
        quiet: Callable[[], bool],
        leave: Callable[[], None],
    ) -> None:
        self._name = name
        self._limit = limit
        self._presence = presence
        self._quiet = quiet
        self._leave = leave

    def watch(self) -> None:
        """Return once it has left."""
        while resident() <= self._limit:
            time.sleep(LOOK)
        log.warning(
            "%d MiB are more than ALMANAC_WORKER_MEMORY: this worker starts anew", resident() // MEBIBYTE
        )
        give_up = time.monotonic() + PATIENCE
        while not (self._quiet() or time.monotonic() > give_up) or not self._first():
            time.sleep(LOOK_FOR_QUIET)
        self._leave()

    def _first(self) -> bool:
        """Whether no other worker is away for the same reason."""
        try:
            return self._presence.step_out(self._name)
        except RedisError:
            # Whoever cannot be told of work has none.
            return True


def watch(runtime: Runtime, name: str) -> None:
    """Keep this worker below the ceiling of the settings, if there is one.

    Called before anything that has to be closed at the end is opened.
    """
    if not (limit := runtime.settings.worker_memory * MEBIBYTE):
        return
    replacement = _Replacement()
    ceiling = Ceiling(
        name,
        limit,
        runtime.stores.heartbeats,
        # Tasks that it has taken, and reads for the cache that outlast theirs.
        quiet=lambda: not state.reserved_requests and not runtime.pool.used,
        leave=replacement.begin,
    )
    threading.Thread(target=ceiling.watch, name="memory", daemon=True).start()


class _Replacement:
    """The end of this process as a worker, and its beginning as another."""

    def __init__(self) -> None:
        self._begun = False
        # Last of all, as it is the first: by then all is written down, and all threads are over.
        atexit.register(self._start_anew)
        # Whoever tells the worker to end means it, also when it is about to start anew.
        worker_shutting_down.connect(self._told_to_end, weak=False)

    def begin(self) -> None:
        """What SIGTERM does, without the signal: one that comes from outside is told apart."""
        if state.should_stop is None:
            self._begun = True
            state.should_stop = os.EX_OK

    def _told_to_end(self, **_: Any) -> None:
        self._begun = False

    def _start_anew(self) -> None:
        if self._begun:
            sys.stdout.flush()
            sys.stderr.flush()
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

"""A memory limit for workers: a worker that exceeds it restarts itself.

Celery's own limits end processes of a prefork pool; they do not apply to a pool of threads. The worker waits
until it is idle, shuts down, and as its last step executes its own command again. The process id stays the
same, so that a supervisor does not notice.
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

# Seconds between two checks of the memory and, above the limit, of whether the worker is idle.
CHECK, CHECK_IDLE = 5.0, 0.1

# Seconds after which a worker that is never idle shuts down all the same: longer than any upkeep task.
# It takes no new tasks from then on, and finishes the tasks that it has begun.
PATIENCE = 300.0

_STATM = Path("/proc/self/statm")


def resident() -> int:
    """Resident memory of this process in bytes; its peak on systems that do not report the current value."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


class Ceiling:
    """Waits until worker ``name`` uses more than ``limit`` bytes and is idle, then calls ``leave``.

    ``quiet`` returns whether the worker is idle. Several workers leave one after the other.
    """

    def __init__(
        self,
        name: str,
        limit: int,
        heartbeats: Heartbeats,
        quiet: Callable[[], bool],
        leave: Callable[[], None],
    ) -> None:
        self._name = name
        self._limit = limit
        self._heartbeats = heartbeats
        self._quiet = quiet
        self._leave = leave

    def watch(self) -> None:
        """Block until the worker has left."""
        while resident() <= self._limit:
            time.sleep(CHECK)
        log.warning(
            "%d MiB are more than ALMANAC_WORKER_MEMORY: this worker restarts", resident() // MEBIBYTE
        )
        give_up = time.monotonic() + PATIENCE
        while not (self._quiet() or time.monotonic() > give_up) or not self._first():
            time.sleep(CHECK_IDLE)
        self._leave()

    def _first(self) -> bool:
        """Whether no other worker is away for the same reason."""
        try:
            return self._heartbeats.step_out(self._name)
        except RedisError:
            # Without Redis a worker gets no jobs, so that it can leave.
            return True


def watch(runtime: Runtime, name: str) -> None:
    """Restart this worker when it exceeds the memory limit of the settings, if there is one.

    Call this before anything registers an exit handler: exit handlers run in reverse order.
    """
    if not (limit := runtime.settings.worker_memory * MEBIBYTE):
        return
    replacement = _Replacement()
    ceiling = Ceiling(
        name,
        limit,
        runtime.stores.heartbeats,
        # Tasks that it has taken, and reads that continue after their task.
        quiet=lambda: not state.reserved_requests and not runtime.pool.used,
        leave=replacement.begin,
    )
    threading.Thread(target=ceiling.watch, name="memory", daemon=True).start()


class _Replacement:
    """Shuts this worker down and starts its command again in the same process."""

    def __init__(self) -> None:
        self._begun = False
        # The first handler registered runs last: when all data is written and all threads have ended.
        atexit.register(self._restart)
        # A shutdown from outside cancels the restart.
        worker_shutting_down.connect(self._cancel, weak=False)

    def begin(self) -> None:
        """Shut down as on SIGTERM, but without a signal, so that a signal from outside can be recognized."""
        if state.should_stop is None:
            self._begun = True
            state.should_stop = os.EX_OK

    def _cancel(self, **_: Any) -> None:
        self._begun = False

    def _restart(self) -> None:
        if self._begun:
            sys.stdout.flush()
            sys.stderr.flush()
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

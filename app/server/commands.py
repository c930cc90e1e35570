"""The command lines of an installation's processes."""

from __future__ import annotations

import os
import sys

from store.config.settings import Settings
from workers.fanout.admission import MAX_PER_PROCESS
from workers.queues import MAX_WEBHOOK_ENDPOINTS, Queue

# A request that waits for workers holds a thread that sleeps. Admission limits their number; the other
# threads serve requests that need no worker.
WEB_THREADS = sum(MAX_PER_PROCESS.values()) + 16

# The tasks that one worker runs at once: those of webhooks, whose endpoints may hang, and a few others.
TASKS_AT_ONCE = MAX_WEBHOOK_ENDPOINTS + 16

# The number of tasks that Flower keeps, a few KiB each: ten minutes of a busy installation.
FLOWER_TASKS = 10_000

# Celery warns root users about pickled messages; Almanac's workers decode only JSON.
_QUIET = ["-W", "ignore:You're running the worker with superuser privileges"]
_PROGRAM = [*_QUIET, "-m", "workers.celery_command", "--quiet", "-A"]
_CELERY = [*_PROGRAM, "workers.main"]

# Without the current folder on the path for imports: a folder ``app`` in it would be taken for ours.
_PYTHON = [sys.executable, "-P"]

# By default, glibc has up to eight heaps for each processor and a cache of freed memory for each thread, to
# avoid lock contention. Python's own lock makes that useless here. Memory that is free in one heap or cache
# cannot be used by the other hundred threads, so the process kept growing.
MALLOC = "GLIBC_TUNABLES"
FEW_HEAPS_NO_CACHES = "glibc.malloc.arena_max=2:glibc.malloc.tcache_count=0"


def _with_threads() -> list[str]:
    """Python with malloc settings for many threads, unless the operator has set ``GLIBC_TUNABLES``."""
    if MALLOC in os.environ:
        return _PYTHON
    return ["/usr/bin/env", f"{MALLOC}={FEW_HEAPS_NO_CACHES}", *_PYTHON]


def web(host: str, port: int, processes: int, target: str = "app.asgi:app") -> list[str]:
    """The web server; ``target`` is the ASGI application."""
    command = [*_with_threads(), "-m", "app.server.web", "--host", host, "--port", str(port)]
    return [*command, "--processes", str(processes), target]


def worker(settings: Settings, name: str, queues: tuple[Queue, ...] = tuple(Queue)) -> list[str]:
    """A Celery worker on threads: its tasks wait for providers, and share one connection pool."""
    command = [*_with_threads(), *_CELERY, "worker", "--pool", "threads"]
    # A task of reads or writes only starts steps in other threads. Webhooks and upkeep take up to this many.
    command += ["--concurrency", str(TASKS_AT_ONCE), "--queues", ",".join(queues)]
    command += ["--hostname", f"{name}@%h", "--without-gossip", "--without-mingle"]
    return command


def beat(settings: Settings) -> list[str]:
    """Celery beat, the scheduler of upkeep."""
    schedule = settings.data_dir / "beat-schedule"
    return [*_PYTHON, *_CELERY, "beat", "--schedule", str(schedule)]


def flower(host: str, port: int, prefix: str) -> list[str]:
    """Flower, read-only. Its credentials are in its environment."""
    command = [
        *_PYTHON,
        *_PROGRAM,
        "workers.flower_app",
        "flower",
        f"--address={host}",
        f"--port={port}",
        f"--url_prefix={prefix}",
    ]
    # Flower must neither stop workers nor send tasks. It reads no configuration file.
    command += ["--read_only=true", "--persistent=false", f"--conf={os.devnull}"]
    command += [f"--max_tasks={FLOWER_TASKS}", "--logging=warning"]
    return command


def sandbox(host: str, port: int) -> list[str]:
    """The provider sandbox."""
    return [*_PYTHON, "-m", "providers.sandbox", "--host", host, "--port", str(port)]

"""The processes of an installation, as commands: for the command line, and for `almanac up`."""

from __future__ import annotations

import os
import sys

from store.config.settings import Settings
from workers.fanout.admission import MOST_HERE
from workers.queues import Queue

# Requests wait on workers: a process holds many of them, each in a thread that sleeps. A few threads are for
# what waits for no worker, however many others do.
WEB_THREADS = sum(MOST_HERE.values()) + 16

# In bytes: two identifiers of 2 048 characters, twelve bytes each when escaped, and what a query may hold.
LONGEST_REQUEST_LINE = 65_536

# Proxies add a few, and tokens of a few KiB. gunicorn's own limits, said here because errors tell them.
MOST_HEADERS, LONGEST_HEADER = 100, 8190

# Tasks that Flower remembers, a few KiB each: the last ten minutes of a busy installation.
FLOWER_TASKS = 10_000

# Celery warns root of pickled messages; ours are JSON and nothing else is decoded.
_QUIET = ["-W", "ignore:You're running the worker with superuser privileges"]
_PROGRAM = [*_QUIET, "-m", "celery", "--quiet", "-A"]
_CELERY = [*_PROGRAM, "workers.main"]

# glibc gives threads up to eight heaps for each processor, and each a cache of what it has freed, so that
# none has to wait for another; ours wait for Python's own lock anyway. What lies free in one heap or cache is
# of no use to the other threads, of which there are a hundred: it grew for as long as they took turns.
MALLOC = "GLIBC_TUNABLES"
FEW_HEAPS_NO_CACHES = "glibc.malloc.arena_max=2:glibc.malloc.tcache_count=0"


def _with_threads() -> list[str]:
    """Python for a process with many threads; an operator who has chosen for glibc is heard."""
    if MALLOC in os.environ:
        return [sys.executable]
    return ["/usr/bin/env", f"{MALLOC}={FEW_HEAPS_NO_CACHES}", sys.executable]


def web(host: str, port: int, processes: int) -> list[str]:
    """Gunicorn with threads."""
    # Loaded once, before the processes part; nothing connects until the first request.
    command = [*_with_threads(), "-m", "gunicorn", "app.wsgi:app", "--preload", "--bind", f"{host}:{port}"]
    command += [
        "--worker-class",
        "app.server.gunicorn_worker.Worker",
        "--logger-class",
        "app.server.gunicorn_worker.Log",
    ]
    command += ["--workers", str(processes), "--threads", str(WEB_THREADS)]
    command += ["--limit-request-line", str(LONGEST_REQUEST_LINE)]
    command += ["--limit-request-fields", str(MOST_HEADERS)]
    command += ["--limit-request-field_size", str(LONGEST_HEADER)]
    # Which proxies are believed is a setting of ours; gunicorn would believe whoever is on this machine.
    command += ["--forwarded-allow-ips", ""]
    # Not the kernel's way to send a file, which knows no limit of time: see app/server/client_socket.py.
    command += ["--no-sendfile"]
    # Another door to stop the server by, in a place that all installations of one user share.
    command += ["--no-control-socket"]
    # A request may wait for the fan-out's deadline; a worker that says nothing for longer is stuck.
    command += ["--timeout", "60", "--graceful-timeout", "15", "--keep-alive", "15"]
    return command


def worker(settings: Settings, name: str, queues: tuple[Queue, ...] = tuple(Queue)) -> list[str]:
    """A Celery worker on threads: its tasks wait on providers, and share one pool of connections."""
    command = [*_with_threads(), *_CELERY, "worker", "--pool", "threads"]
    # A task holds a thread for as long as its fan-out has reads in flight here; one that comes while a
    # provider hangs must find a thread before it can have a place.
    command += ["--concurrency", str(2 * settings.reads_in_flight), "--queues", ",".join(queues)]
    command += ["--hostname", f"{name}@%h", "--without-gossip", "--without-mingle"]
    return command


def beat(settings: Settings) -> list[str]:
    """Celery's clock."""
    schedule = settings.data_dir / "beat-schedule"
    return [sys.executable, *_CELERY, "beat", "--schedule", str(schedule)]


def flower(host: str, port: int, prefix: str) -> list[str]:
    """Flower, which looks and changes nothing; who may look is in its environment."""
    command = [
        sys.executable,
        *_PROGRAM,
        "workers.flower_app",
        "flower",
        f"--address={host}",
        f"--port={port}",
        f"--url_prefix={prefix}",
    ]
    # It must neither stop workers nor send tasks of its own; no file of settings is looked for.
    command += ["--read_only=true", "--persistent=false", f"--conf={os.devnull}"]
    command += [f"--max_tasks={FLOWER_TASKS}", "--logging=warning"]
    return command


def sandbox(port: int) -> list[str]:
    """The provider sandbox."""
    return [sys.executable, "-m", "providers.sandbox", "--port", str(port)]

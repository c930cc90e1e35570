"""The processes of an installation: how tests start them, when they are ready, and how they end."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import requests

from app.server import commands
from store.config import embedded_redis
from store.config.settings import Settings
from workers.celery_app import create_celery
from workers.queues import Queue

# The time that a busy machine may need to start or to end a process.
START_SECONDS = STOP_SECONDS = 90.0


Process = subprocess.Popen[bytes]


def free_port() -> int:
    """A port that no server listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def ready(url: str) -> bool:
    """Whether the web server at a URL answers that everything it needs is there, workers included."""
    with requests.Session() as session:
        session.trust_env = False
        try:
            return session.get(f"{url}/readyz", timeout=10).ok
        except requests.RequestException:
            return False


def listens(port: int) -> bool:
    """Whether a server listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(
    ready: Callable[[], object],
    processes: Iterable[subprocess.Popen[Any]],
    *,
    patience: float = START_SECONDS,
    output: Callable[[], str] = str,
) -> None:
    """Wait until the processes are ready; fails with their output when one ends or the time is over."""
    watched = list(processes)
    give_up = time.monotonic() + patience
    while not ready():
        for process in watched:
            assert process.poll() is None, f"{process.args!r} ended by itself\n{output()}"
        assert time.monotonic() < give_up, f"not ready after {patience:.0f} s\n{output()}"
        time.sleep(0.05)


def stop(processes: Iterable[subprocess.Popen[Any]], patience: float = STOP_SECONDS) -> None:
    """Send SIGTERM to all, then wait for each. A process that does not end in time is killed: an error."""
    ending = list(processes)
    for process in ending:
        process.terminate()
    give_up = time.monotonic() + patience
    try:
        for process in ending:
            process.wait(timeout=max(give_up - time.monotonic(), 0.0))
    finally:
        for process in ending:
            process.kill()
            process.wait()


def family(pid: int) -> list[int]:
    """A process and everything it has started, parents first."""
    found = [pid]
    for each in found:
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            # A thread may end between the listing and the read. Its children then belong to another one.
            with suppress(FileNotFoundError, ProcessLookupError):
                found += [int(child) for child in task.read_text().split()]
    return found


@contextmanager
def running(
    command: Sequence[str],
    environment: Mapping[str, str],
    output: IO[bytes] | int | None = None,
    folder: Path | None = None,
) -> Iterator[Process]:
    """A process that is stopped at the end."""
    process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=folder)
    try:
        yield process
    finally:
        stop([process])


@contextmanager
def running_redis(folder: Path, socket: Path) -> Iterator[Process]:
    """An embedded Redis with its files in a folder."""
    process = embedded_redis.start(folder, socket)
    try:
        yield process
    finally:
        stop([process])


@contextmanager
def running_worker(
    settings: Settings,
    environment: Mapping[str, str],
    name: str,
    *,
    queues: Sequence[Queue] = tuple(Queue),
    command: Sequence[str] | None = None,
    output: IO[bytes] | int | None = None,
) -> Iterator[Process]:
    """A worker, as production runs it, that takes tasks."""
    with running(command or commands.worker(settings, name, tuple(queues)), environment, output) as process:
        wait_for_workers(settings, [process])
        yield process


def wait_for_workers(settings: Settings, processes: Sequence[Process]) -> None:
    """Wait until as many workers answer as there are processes."""
    with create_celery(settings) as celery:
        count = len(processes)
        wait_until(lambda: len(celery.control.ping(timeout=0.5, limit=count) or ()) >= count, processes)


@contextmanager
def web_server(
    environment: Mapping[str, str], *, count: int = 1, target: str = "app.asgi:app", port: int | None = None
) -> Iterator[int]:
    """A web server with ``count`` processes, on a free port unless one is given; yields its port."""
    port = port or free_port()
    command = commands.web("127.0.0.1", port, count, target)
    with running(command, {**environment, "PATH": os.environ["PATH"]}) as process:
        wait_until(lambda: listens(port), [process])
        yield port

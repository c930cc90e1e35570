"""Processes under measurement: start, children, memory, processor time, and end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

START_SECONDS = 60.0
STOP_SECONDS = 10.0
LOG_LINES = 30
TICKS = os.sysconf("SC_CLK_TCK")


class NotReady(Exception):
    """A part did not start."""


class Process:
    """A command that runs until the block ends; its children are those it has just then."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._command, self._environment = command, environment
        # Its output is shown only after a failure.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process

    def __enter__(self) -> Process:
        self._popen = subprocess.Popen(
            self._command,
            env=self._environment,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.terminate()
        try:
            self._popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        if isinstance(error, Exception) and (said := self._said()):
            print(f"{' '.join(self._command)} said:\n{said}", file=sys.stderr)
        self._log.close()

    def terminate(self) -> None:
        """Send it SIGTERM, without waiting for it."""
        self._popen.terminate()

    def _said(self) -> str:
        self._log.seek(0)
        return "".join(self._log.readlines()[-LOG_LINES:])

    def ids(self) -> list[int]:
        """This process and everything it has started, parents first."""
        found = [self._popen.pid]
        for each in found:
            for task in Path(f"/proc/{each}/task").glob("*/children"):
                found += [int(child) for child in task.read_text().split()]
        return found

    def wait_for(self, port: int) -> Process:
        """Return once something listens there."""
        give_up = time.monotonic() + START_SECONDS
        while not _listens(port):
            if self._popen.poll() is not None or time.monotonic() > give_up:
                raise NotReady(f"{' '.join(self._command)} does not listen")
            time.sleep(0.02)
        return self


def cpu_seconds(processes: Iterable[Process]) -> float | None:
    """Processor time that processes and their living children have used; None where /proc is missing."""
    try:
        return sum(_ticks(each) for process in processes for each in process.ids()) / TICKS
    except OSError:
        return None


def memory(process: int) -> dict[str, int] | None:
    """``Rss`` and ``Pss`` of one process in bytes; None where the system does not tell."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return None
    sizes = {line.partition(":")[0]: line.partition(":")[2] for line in lines}
    return {name: int(sizes[name].split()[0]) * 1024 for name in ("Rss", "Pss")}


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def all_of(stack: ExitStack, processes: Iterable[Process]) -> list[Process]:
    """Start processes; on exit of the stack all of them get SIGTERM before any is waited for."""
    started = [stack.enter_context(process) for process in processes]
    for process in started:
        stack.callback(process.terminate)
    return started


def _ticks(process: int) -> int:
    # The name in brackets may hold spaces; user and system time are the 14th and 15th field.
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

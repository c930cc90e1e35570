"""Processes and Redis over time: their size, and whether it grows."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen

from redis import Redis

from tests.installation.processes import family

MIB = 2**20
PAUSE = 2.0
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sample:
    """One sample of a process; ``worked`` is its processor time in seconds."""

    at: float
    memory: int
    files: int
    threads: int
    worked: float


def look(process: int, at: float) -> Sample | None:
    """A sample of a process; None when it has ended, or the system does not show it."""
    folder = Path(f"/proc/{process}")
    try:
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        files = len(list((folder / "fd").iterdir()))
        # Behind the name of its program, which may hold anything.
        user, system = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return None
    worked = (int(user) + int(system)) / TICKS
    return Sample(at, int(status["VmRSS"].split()[0]) * 1024, files, int(status["Threads"]), worked)


@dataclass
class Measures:
    """Takes a sample of everything every other second, from a thread of its own; a context."""

    parts: Mapping[str, Popen[bytes]]
    redis: Redis
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    # Moment, bytes, keys, clients.
    kept: list[tuple[float, int, int, int]] = field(default_factory=list)

    def __enter__(self) -> Measures:
        self.began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(PAUSE):
            self.take()

    def take(self) -> None:
        """Take one sample."""
        at = time.monotonic() - self.began
        for part, process in self.parts.items():
            for number, each in enumerate(family(process.pid)):
                if (sample := look(each, at)) is not None:
                    self.samples.setdefault(f"{part}.{number}" if number else part, []).append(sample)
        about = self.redis.info()
        self.kept.append((at, about["used_memory"], self.redis.dbsize(), about["connected_clients"]))

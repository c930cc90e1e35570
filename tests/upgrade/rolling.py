"""An installation whose processes are replaced one after the other by those of a newer release."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from store.coordination.heartbeats import Heartbeats
from store.stores import Stores
from tests.conftest import settings_of
from tests.installation import processes
from tests.installation.processes import Process
from tests.upgrade.balancer import Balancer
from tests.waiting import until

NEW = Path(sys.executable).parent / "almanac"

# Seconds that a process may need to start beside the load.
PATIENCE = 120.0


@dataclass
class Rolling:
    """``old`` and ``new`` are the commands ``almanac`` of both releases; ``parts`` the processes by name."""

    old: Path
    new: Path
    folder: Path
    environment: dict[str, str]
    balancer: Balancer
    heartbeats: Heartbeats
    parts: dict[str, Process] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    def run(self, almanac: Path, *arguments: str) -> str:
        """Run a command, and return its output."""
        done = subprocess.run(
            [almanac, *arguments], env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def start_web(self, almanac: Path, name: str) -> None:
        """Start a web process at a port of its own; it gets requests once it is ready."""
        port = self.ports[name] = processes.free_port()
        self._start(name, almanac, "serve", "--port", str(port), "--processes", "1")
        self._until(name, lambda: processes.ready(f"http://127.0.0.1:{port}"))
        self.balancer.servers.append(port)

    def stop_web(self, name: str) -> None:
        """Take a web process out of the balancer and stop it; requests that it has are answered."""
        self.balancer.remove(self.ports.pop(name))
        self._stop(name)

    def start_worker(self, almanac: Path, name: str) -> None:
        """Start a worker, and wait until it takes tasks."""
        self._start(name, almanac, "worker", "--name", name)
        self._until(
            name, lambda: any(each.startswith(name) for each in self.heartbeats.live_processes().workers)
        )

    def stop_worker(self, name: str) -> None:
        self._stop(name)

    def start_beat(self, almanac: Path, name: str) -> None:
        self._start(name, almanac, "beat")

    def stop_beat(self, name: str) -> None:
        self._stop(name)

    def output(self, name: str) -> str:
        """The log of a process."""
        return (self.folder / f"{name}.log").read_text()

    def _start(self, name: str, almanac: Path, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.parts[name] = subprocess.Popen(
                [almanac, *arguments], env=self.environment, stdout=log, stderr=log, cwd=self.folder
            )

    def _until(self, name: str, ready: Callable[[], object]) -> None:
        processes.wait_until(
            ready,
            [self.parts[name]],
            patience=PATIENCE,
            output=lambda: self.output(name),
        )

    def _stop(self, name: str) -> None:
        process = self.parts.pop(name)
        process.terminate()
        status = process.wait(timeout=processes.STOP_SECONDS)
        assert status == 0, f"{name} ended with status {status}\n{self.output(name)}"


@contextmanager
def running(old: Path, environment: Mapping[str, str], folder: Path) -> Iterator[Rolling]:
    """The old release with a migrated database, two web processes, two workers and beat."""
    ours = {**environment, "ALMANAC_DATA_DIR": str(folder), "PATH": os.environ["PATH"]}
    with Balancer([]) as balancer, Stores(settings_of(ours)) as stores:
        made = Rolling(old, NEW, folder, ours, balancer, stores.heartbeats)
        try:
            made.run(old, "db", "upgrade")
            for number in (1, 2):
                made.start_worker(old, f"old-worker{number}")
            for number in (1, 2):
                made.start_web(old, f"old-web{number}")
            made.start_beat(old, "old-beat")
            until(lambda: processes.ready(f"http://127.0.0.1:{balancer.port}"))
            yield made
        finally:
            processes.stop(made.parts.values())

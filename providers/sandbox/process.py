"""A sandbox in its own process, for the duration of a ``with`` block."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SAYING = "Sandbox on "


@contextmanager
def running(port: int = 0) -> Iterator[str]:
    """Start a sandbox, wait until it listens, and yield its URL.

    :raise RuntimeError: if it does not start
    """
    command = [sys.executable, "-m", "providers.sandbox", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith(SAYING):
                raise RuntimeError("the sandbox did not start")
            yield line.removeprefix(SAYING).strip()
        finally:
            process.terminate()

"""A sandbox over a real socket: one process for the session, forgotten before each test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from providers.sandbox.client import Sandbox


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[str]:
    """The URL of a sandbox of its own process."""
    command = [sys.executable, "-m", "providers.sandbox", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Sandbox on "), "the sandbox did not start"
        yield line.removeprefix("Sandbox on ").strip()
        process.terminate()
        assert process.wait(timeout=5) == 0


@pytest.fixture
def sandbox(sandbox_process: str) -> Sandbox:
    """Controls an empty sandbox; ``.url`` is where it is."""
    sandbox = Sandbox(sandbox_process)
    sandbox.reset()
    return sandbox

"""A sandbox over a real socket: one process for the session, forgotten before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from providers.sandbox.client import Sandbox
from providers.sandbox.process import running


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[str]:
    """The URL of a sandbox of its own process."""
    with running() as url:
        yield url


@pytest.fixture
def sandbox(sandbox_process: str) -> Sandbox:
    """Controls an empty sandbox; ``.url`` is where it is."""
    sandbox = Sandbox(sandbox_process)
    sandbox.reset()
    return sandbox

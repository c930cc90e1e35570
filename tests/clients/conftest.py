"""The official clients of both vendors against the sandbox: ``make test-clients`` installs them.

Without them these files are passed over, unless they are what was asked for: then a missing client fails.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from providers.sandbox.client import Sandbox
from providers.sandbox.process import running

INSTALLED = all(importlib.util.find_spec(name) for name in ("googleapiclient", "msgraph"))


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Pass over what cannot be imported, when it would not be run anyway."""
    wanted = config.option.markexpr.replace("not clients", "")
    return True if not INSTALLED and "clients" not in wanted else None


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

"""Fixtures of the properties of this folder, and the count of tried cases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from providers.microsoft import busy, events
from providers.sandbox.client import Sandbox
from tests.fuzz import counting
from tests.fuzz.conversations import NAMES, Recorded, record
from tests.fuzz.operations import OPERATIONS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report the number of tried cases of this process."""
    for what, number in sorted(counting.tried.items()):
        terminalreporter.write_line(f"fuzzing: {number} {what}")


@contextmanager
def short_pages() -> Iterator[None]:
    """Graph's pages are short, so that there are some."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(busy, "EVENTS_PER_PAGE", 3)
        patch.setattr(events, "EVENTS_PER_PAGE", 3)
        yield


@pytest.fixture(scope="session", params=NAMES)
def recorded(request: pytest.FixtureRequest, sandbox_process: str) -> Recorded:
    """The answers of a provider to every operation."""
    sandbox = Sandbox(sandbox_process)
    sandbox.reset()
    with short_pages():
        return record(sandbox, request.param, OPERATIONS)


@pytest.fixture(autouse=True)
def paged() -> Iterator[None]:
    """Recorded lists are requested in the same pages. Other tests in this process have theirs."""
    with short_pages():
        yield

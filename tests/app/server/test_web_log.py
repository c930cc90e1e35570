"""The level of the web server's own log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.server import commands
from tests.installation.processes import free_port, listens, running, wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("level", "logged"), [("warning", False), ("info", True)])
def test_a_start_is_logged_at_the_level_info(level: str, logged: bool, tmp_path: Path):
    port = free_port()
    command = commands.web("127.0.0.1", port, 1, "tests.benchmarks.bare:asgi")
    log = tmp_path / "log"
    with log.open("wb") as output, running(command, os.environ | {"ALMANAC_LOG_LEVEL": level}, output) as web:
        wait_until(lambda: listens(port), [web])

    assert (" INFO _granian: " in log.read_text()) == logged

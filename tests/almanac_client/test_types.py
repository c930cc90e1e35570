"""Type checkers know the results of both clients, although each method is written once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_mypy_knows_what_each_client_returns():
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "tests/almanac_client/typed_calls.py"],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": "clients/python"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout

"""Every property of this folder once more, with 10 000 examples."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(file.name for file in HERE.glob("test_*.py") if file != Path(__file__))


# In a separate process: hypothesis fixes the number of examples when a property is defined.
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("file", FILES)
def test_ten_thousand_examples(file):
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(HERE / file),
        "--hypothesis-show-statistics",
        "--timeout=1800",
    ]
    run = subprocess.run(
        command,
        cwd=HERE.parents[1],
        env=os.environ | {"ALMANAC_EXAMPLES": "10000"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    # Checks that the number of examples was applied: otherwise the test would pass without meaning.
    stops = [line for line in run.stdout.splitlines() if "Stopped because" in line]
    assert stops
    assert all("max_examples=10000" in stop or "nothing left to do" in stop for stop in stops), stops

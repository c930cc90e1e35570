"""The units of deploy/systemd, by systemd itself where it is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.files import ROOT

FOLDER = ROOT / "deploy/systemd"
PROGRAM = "/opt/almanac/bin/almanac"
UNITS = sorted(FOLDER.glob("*.service"))
TIMERS = sorted(FOLDER.glob("*.timer"))


@pytest.fixture
def installed(tmp_path: Path) -> list[str]:
    """Copies whose program is the one of this environment, with an instance of each template."""
    almanac = str(Path(sys.executable).parent / "almanac")
    for unit in (*UNITS, *TIMERS, FOLDER / "almanac.target"):
        (tmp_path / unit.name).write_text(unit.read_text().replace(PROGRAM, almanac))
    return [str(tmp_path / unit.name.replace("@", "@1")) for unit in UNITS]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")
def test_systemd_finds_no_fault(installed):
    timers = [str(Path(installed[0]).parent / unit.name.replace("@", "@1")) for unit in TIMERS]
    command = ["systemd-analyze", "verify", "--recursive-errors=yes", *installed, *timers]
    found = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")
def test_every_unit_is_hardened(installed):
    for unit in installed:
        # In tenths: 2.0 of 10.
        command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout[-300:]

"""The units of deploy/systemd, by systemd itself where it is."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import secrets
from tests.packaging.files import ROOT, procfile
from tests.packaging.test_compose import parse

FOLDER = ROOT / "deploy/systemd"
PROGRAM = "/opt/almanac/bin/almanac"
UNITS = sorted(FOLDER.glob("*.service"))
PARTS = {"almanac-migrate": "release", "almanac-worker@": "worker"}


def lines(unit: Path, name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", unit.read_text(), re.MULTILINE)


@pytest.fixture
def installed(tmp_path: Path) -> list[str]:
    """Copies whose program is the one of this environment, with an instance of each template."""
    almanac = str(Path(sys.executable).parent / "almanac")
    for unit in (*UNITS, FOLDER / "almanac.target"):
        (tmp_path / unit.name).write_text(unit.read_text().replace(PROGRAM, almanac))
    return [str(tmp_path / unit.name.replace("@", "@1")) for unit in UNITS]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")
def test_systemd_finds_no_fault(installed):
    command = ["systemd-analyze", "verify", "--recursive-errors=yes", *installed]
    found = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")
def test_every_unit_is_hardened(installed):
    for unit in installed:
        # In tenths: 2.0 of 10.
        command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout[-300:]


def test_they_are_the_parts_of_the_procfile():
    parts = {PARTS.get(unit.stem, unit.stem.removeprefix("almanac-")) for unit in UNITS}

    assert parts == set(procfile())
    for unit in UNITS:
        (start,) = lines(unit, "ExecStart")
        program, *words = start.replace("%i", "1").split()
        assert program == PROGRAM
        parse(words)


def test_each_secret_is_handed_over_as_a_file(tmp_path):
    made = set(secrets.write(tmp_path / "secrets")) | {"redis_url"}
    for unit in UNITS:
        handed = {each.split(":")[0] for each in lines(unit, "LoadCredential")}
        asked = set(re.findall(r"_FILE=%d/(\w+)", unit.read_text()))
        assert asked == handed <= made
    assert set(lines(FOLDER / "almanac-flower.service", "LoadCredential")) == {
        f"{name}:/etc/almanac/secrets/{name}" for name in ("redis_url", "flower_password")
    }


def test_the_database_is_migrated_before_the_others_start():
    for unit in UNITS:
        config = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=")
        config.optionxform = str
        config.read_string(unit.read_text())
        waits = config["Unit"].get("Requires") == "almanac-migrate.service"
        # Flower does not use the database.
        assert waits == (unit.stem not in ("almanac-migrate", "almanac-flower"))

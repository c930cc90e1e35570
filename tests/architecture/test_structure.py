"""The structure of the project, held by tests rather than by a reviewer's memory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from app.cli.main import main
from store.config.declaration import SETTINGS

ROOT = Path(__file__).parents[2]

# Variables of the assistants' server, which is a client of the API.
OF_CLIENTS = {"ALMANAC_API_KEY", "ALMANAC_URL"}


def test_packages_import_only_what_they_may():
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"

    linted = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert linted.returncode == 0, linted.stdout


def test_code_names_no_other_variables_than_declared_settings():
    declared = [setting.name for setting in SETTINGS]
    code = "".join(
        file.read_text() for package in ("app", "workers", "store") for file in (ROOT / package).rglob("*.py")
    )

    named = set(re.findall(r"\bALMANAC_[A-Z_]+[A-Z]\b", code))

    assert len(set(declared)) == len(declared)
    assert {name.removesuffix("_FILE") for name in named} - OF_CLIENTS <= set(declared)


def test_plain_make_lists_every_command():
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    testing = ("", "-browser", "-clients", "-generators", "-long", "-security", "-typescript")
    tests = [f"test{name}" for name in testing]
    for command in (
        "setup",
        "demo",
        *tests,
        "client-types",
        "screenshots",
        "check",
        "audit",
        "bench",
        "fix",
        "lock",
    ):
        assert re.search(rf"^ +make {command} ", listed, re.MULTILINE), command


def test_contributing_names_every_ci_command():
    ci = (ROOT / ".ci/run").read_text()
    told = (ROOT / "CONTRIBUTING.md").read_text()

    for command in re.findall(r"^make (\S+)$", ci, re.MULTILINE):
        assert f"make {command}" in told


@pytest.mark.parametrize("package", ["app", "workers", "scheduling", "providers", "store"])
def test_every_module_has_a_docstring(package):
    for file in (ROOT / package).rglob("*.py"):
        assert file.read_text().lstrip().startswith('"""'), file


def test_the_procfile_starts_each_part_by_a_command_that_exists():
    lines = (ROOT / "Procfile").read_text().splitlines()
    processes = dict(line.split(": ", 1) for line in lines)

    assert list(processes) == ["release", "web", "worker", "beat", "flower"]
    for command in processes.values():
        words = command.split()
        assert words[0] == "almanac"
        found = main
        for word in words[1:]:
            if isinstance(found, click.Group):
                found = found.commands[word]
        assert not isinstance(found, click.Group)


def test_lua_is_in_files_of_its_own():
    this = Path(__file__)
    for package in ("app", "workers", "scheduling", "providers", "store", "tests"):
        for file in (ROOT / package).rglob("*.py"):
            assert file == this or "redis.call" not in file.read_text(), file

"""The wheel: installs into a clean environment, runs there, and notices packages that are not its own."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import almanac_start
from tests.packaging import rehearsal
from tests.packaging.files import ROOT
from tests.packaging.rehearsal import run

TOP = {*almanac_start.PACKAGES, "almanac_start.py"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rehearsal.build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment, with the packages of the lock file."""
    # As `pipx install` does: the versions are chosen by pip; here they are those of the lock file.
    return rehearsal.install(
        wheel, tmp_path_factory.mktemp("installed"), "-c", str(ROOT / "requirements/runtime.txt")
    )


@pytest.mark.slow
def test_the_start_names_every_package_of_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()

    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == TOP
    assert not [name for name in names if "tests/" in name or name.endswith(".pyc")]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_it_runs_in_a_folder_with_packages_of_the_same_names(installed, tmp_path):
    for name in almanac_start.PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the other package')")

    told = run(str(installed), "db", "upgrade", folder=tmp_path)
    assert (told.returncode, told.stdout) == (0, "The database is up to date\n"), told.stderr
    # Celery, which looks into the current folder: without a broker the worker ends by itself.
    command = [str(installed), "worker"]
    elsewhere = {"ALMANAC_REDIS_URL": "redis://127.0.0.1:1", "ALMANAC_SECRET_KEY": "s" * 32}
    elsewhere["ALMANAC_ENCRYPTION_KEYS"] = "A" * 43 + "="
    told = run(*command, folder=tmp_path, **elsewhere)
    assert "127.0.0.1:1// cannot be reached" in told.stderr, told.stderr


@pytest.mark.long
@pytest.mark.timeout(600)
def test_packages_of_another_project_are_named(installed, tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app/__init__.py").touch()

    told = run(str(installed), "--help", folder=tmp_path, PYTHONPATH=str(tmp_path))

    assert told.returncode == 1
    (line,) = told.stderr.splitlines()
    assert f"Python would import {tmp_path / 'app/__init__.py'}" in line


def test_this_environment_has_no_such_package():
    assert list(almanac_start.collisions()) == []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_demo_of_the_wheel_answers_with_slots_without_the_repository(installed, tmp_path):
    """The limit of a minute is that of the rehearsal of a release."""
    rehearsal.first_slots(installed, tmp_path)

    assert [file.name for file in tmp_path.iterdir()] == ["demo.log"]

"""The version of a build, and the files that name it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.packaging.files import ROOT, dockerfile, of

CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
# The words of Keep a Changelog, and what an operator has to do.
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Upgrading"]


@pytest.fixture(scope="module")
def ours() -> ModuleType:
    spec = spec_from_file_location("almanac_version", ROOT / "deploy/wheel/version.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A repository in a folder of its own."""
    monkeypatch.delenv("RELEASE_VERSION", raising=False)

    def call(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    call("init")
    call("commit", "--allow-empty", "--message", "first")
    return call


def test_a_commit_with_a_tag_has_its_version_and_the_next_commit_has_not(ours, git, tmp_path):
    assert ours.version(tmp_path) == f"{ours.NEXT}.dev0"
    git("tag", "v2.3.4")
    git("tag", "tested")
    assert ours.version(tmp_path) == "2.3.4"
    git("commit", "--allow-empty", "--message", "second")
    assert ours.version(tmp_path) == f"{ours.NEXT}.dev0"


def test_a_source_archive_inside_another_repository_does_not_take_its_version(ours, git, tmp_path):
    git("tag", "v9.9.9")
    (tmp_path / "almanac").mkdir()

    assert ours.version(tmp_path / "almanac") == f"{ours.NEXT}.dev0"


@pytest.mark.parametrize("name", ["2.3.4", "v2.3.4"])
def test_a_build_without_a_repository_takes_the_version_that_it_is_given(ours, tmp_path, monkeypatch, name):
    monkeypatch.setenv("RELEASE_VERSION", name)

    assert ours.version(tmp_path) == "2.3.4"


def test_the_chart_and_the_image_have_the_version_that_is_being_worked_on(ours):
    chart = yaml.safe_load((ROOT / "deploy/helm/almanac/Chart.yaml").read_text())
    bake = json.loads((ROOT / "deploy/docker-bake.json").read_text())

    assert chart["appVersion"] == f"{ours.NEXT}.dev0"
    assert chart["version"] == f"{ours.NEXT}-dev0"
    assert bake["variable"]["VERSION"]["default"] == f"{ours.NEXT}.dev0"
    assert f"VERSION={ours.NEXT}.dev0" in of(dockerfile()[0], "ARG")


def test_the_version_that_is_being_worked_on_follows_those_of_the_changelog(ours):
    released = [
        tuple(map(int, found.split("."))) for found in re.findall(r"^## \[(\d+\.\d+\.\d+)\]", CHANGELOG, re.M)
    ]

    assert released == sorted(released, reverse=True)
    assert tuple(map(int, ours.NEXT.split("."))) > released[0]


def test_the_changelog_has_one_list_for_each_kind_of_change():
    first, *others = re.split(r"^## ", CHANGELOG, flags=re.M)[1:]
    assert first.startswith("[Unreleased]\n")
    for version in (first, *others):
        kinds = re.findall(r"^### (.*)$", version, re.M)
        assert kinds == [kind for kind in KINDS if kind in kinds]
        for part in re.split(r"^### .*\n", version, flags=re.M)[1:]:
            # A list may follow one paragraph.
            assert len(re.split(r"\n\n(?=- )", part.strip())) <= 2, part[:80]

"""An earlier release of Almanac, installed from the repository's history into an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from tests.packaging.files import ROOT

# The last commit of version 0.1, before the migrations 0011 to 0013. The variable names another one.
BEFORE = os.environ.get("ALMANAC_UPGRADE_FROM", "914d98d11f509e1dad4209c1e75ecbdd43228e15")

UV = str(Path(sys.executable).parent / "uv")


def install(folder: Path, commit: str = BEFORE) -> Path:
    """Install the release of a commit with the packages of its lock file, and return its ``almanac``."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        reason = f"the history of this clone lacks {commit}: {archive.stderr.decode().strip()}"
        if _has_whole_history():
            pytest.fail(reason)
        # A shallow clone has no release to upgrade from.
        pytest.skip(reason)
    source, environment = folder / "source", folder / "environment"
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(source, filter="data")
    python = str(environment / "bin/python")
    pip = [UV, "pip", "install", "--quiet", "--python", python]
    for command in (
        [UV, "venv", "--quiet", "--python", sys.executable, str(environment)],
        [*pip, "--require-hashes", "-r", str(source / "requirements/runtime.txt")],
        [*pip, "--no-deps", str(source)],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return environment / "bin/almanac"


def _has_whole_history() -> bool:
    """Whether this is a clone with its whole history."""
    shallow = subprocess.run(
        ["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return shallow.stdout.strip() == "false"

"""The built TypeScript client, and a real server: ``make test-typescript`` installs what npm needs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.almanac_typescript.types import PACKAGE
from tests.installation.processes import web_server


def run(*command: str | Path, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    """The output of a command that must succeed."""
    ended = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="session")
def base_url(environment: dict[str, str], database: object, worker: None) -> Iterator[str]:
    """The URL of the server."""
    with web_server(environment, count=1) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def package() -> Path:
    """The folder of the package, compiled, with its tests."""
    tsc = PACKAGE / "node_modules/.bin/tsc"
    run(tsc, "-p", "tsconfig.json", cwd=PACKAGE)
    run(tsc, "-p", "tests", cwd=PACKAGE)
    return PACKAGE

"""Third-party client generators: ``make test-generators`` installs them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from providers.sandbox.client import Sandbox
from tests.app.days import meeting
from tests.installation.processes import web_server

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def base_url(environment: dict[str, str], database: object, worker: None) -> Iterator[str]:
    """A real server."""
    with web_server(environment, count=1) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def ada(sandbox: Sandbox, new_user: Callable[..., str]) -> str:
    """A user who is busy from 9:00 to 10:00."""
    return new_user(sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")]))


@pytest.fixture
def document(app, tmp_path: Path) -> Path:
    """The OpenAPI document in a file."""
    file = tmp_path / "openapi.json"
    file.write_bytes(app.test_client().get("/v1/openapi.json").data)
    return file


def generate_python(document: Path, folder: Path) -> None:
    """Generate a Python client into ``folder/generated``."""
    tools = Path(sys.executable).parent
    said = run(
        *("env", f"PATH={tools}:/usr/bin:/bin", tools / "openapi-python-client", "generate"),
        *("--path", document, "--meta", "none", "--output-path", "generated"),
        cwd=folder,
    )
    # The generator only warns of schemas that it cannot convert, and exits successfully.
    assert "arning" not in said, said


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command that must succeed."""
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr

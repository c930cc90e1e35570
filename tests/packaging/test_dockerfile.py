"""The Dockerfile: its steps install a service that works without the source tree, and nothing beside it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.files import ROOT, dockerfile, of

BEFORE, BUILD, FINAL = dockerfile()

# Templates and static files, below their package.
FOLDERS = [
    *("app/templates", "app/static"),
    *("app/dashboard/templates", "app/dashboard/static", "app/openapi/templates"),
]


def test_no_secret_and_no_data_gets_into_the_build():
    sent = {str(path.relative_to(ROOT)) for path in context()}

    assert {
        "pyproject.toml",
        "LICENSE",
        "README.md",
        "app/cli/main.py",
        "store/sql/migrations/env.py",
    } <= sent
    for name in (".env", "secrets/secret_key", ".git", ".almanac/secrets", "tests/conftest.py", "Dockerfile"):
        assert name not in sent
    assert not [name for name in sent if "__pycache__" in name]


def context() -> Iterator[Path]:
    """The files that .dockerignore leaves in: the exceptions from "nothing"."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    for line in lines:
        if line.startswith("!"):
            path = ROOT / line[1:]
            yield from (
                [path]
                if path.is_file()
                else [each for each in path.rglob("*") if each.is_file() and "__pycache__" not in each.parts]
            )


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in the place of the image's root, after the install steps of the Dockerfile."""
    root = tmp_path_factory.mktemp("image")
    (root / "opt").mkdir()
    for file in context():
        copy = root / "build" / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    for step in of(BUILD, "RUN"):
        command = re.sub(r"--mount=\S+\s*", "", step).replace("/opt/", f"{root}/opt/")
        done = subprocess.run(
            command, shell=True, cwd=root / "build", env=environment(), capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stderr[-2000:]}"
    # It has to run without its source tree.
    shutil.rmtree(root / "build")
    shutil.rmtree(root / "opt/build")
    return root


def environment(**ours: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("ALMANAC_", "VIRTUAL_"))
    }
    return kept | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **ours}


def run(image: Path, *words: str, data: Path) -> subprocess.CompletedProcess[str]:
    command = [str(image / "opt/almanac/bin" / words[0]), *words[1:]]
    ours = environment(ALMANAC_DATA_DIR=str(data))
    return subprocess.run(command, cwd=data, env=ours, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_almanac_runs_from_the_image_without_the_source_tree(image, tmp_path):
    told = run(image, "almanac", "--help", data=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "doctor" in told.stdout

    where = run(image, "python", "-c", "import app; print(app.__file__)", data=tmp_path)
    assert where.stdout.startswith(str(image))

    # The migrations are installed.
    migrated = run(image, "almanac", "db", "upgrade", data=tmp_path)
    assert (migrated.returncode, migrated.stdout) == (0, "The database is up to date\n"), migrated.stderr


@pytest.mark.long
@pytest.mark.timeout(600)
def test_image_has_page_assets_and_no_other_project_files(image, tmp_path):
    (packages,) = (image / "opt/almanac/lib").glob("python3.*/site-packages")

    for package in ("app", "workers", "scheduling", "providers", "store"):
        ours = {path.relative_to(ROOT) for path in context() if path.is_relative_to(ROOT / package)}
        assert ours
        assert not [path for path in ours if not (packages / path).is_file()]
    # The documents for users and operators are pages of the site.
    site = packages / "app/docs_site/site"
    documents = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    served = [path for path in documents if path.parts[0] != "engineering" and path.name != "index.md"]
    assert [path for path in served if not (site / path.with_suffix("") / "index.html").is_file()] == []
    assert len(served) > 20
    assert not (site / "engineering").exists()
    # The demo's booking page.
    example = packages / "app/cli/examples/booking"
    assert (example / "index.html").is_file()
    assert (example / "almanac-client/index.js").is_file()
    for folder in FOLDERS:
        assert any((packages / folder).iterdir())
    for absent in (
        "tests",
        "docs",
        "requirements",
        "pytest",
        "uv",
        "pip",
        "hatchling",
    ):
        assert not (packages / absent).exists(), absent
    page = (
        "from app.web import create_app; from workers.settings import read_settings as r; c = create_app(r())"
    )
    shown = run(
        image, "python", "-c", f"{page}; print(c.test_client().get('/v1/docs').status)", data=tmp_path
    )
    assert shown.stdout == "200 OK\n", shown.stderr

"""Clients generated from the OpenAPI document compile under the strictest rules, and work."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.generators.conftest import HERE, generate_python, run

pytestmark = pytest.mark.generators

Program = Callable[[str, str, str], dict[str, object]]


@pytest.fixture
def typescript(document: Path, tmp_path: Path) -> Program:
    """The TypeScript program, compiled against the types of openapi-typescript."""
    modules = HERE / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules)
    for name in ("slots.ts", "tsconfig.json", "package.json"):
        shutil.copy(HERE / name, tmp_path)
    run(modules / ".bin/openapi-typescript", document, "-o", "almanac.d.ts", cwd=tmp_path)
    run(modules / ".bin/tsc", "-p", "tsconfig.json", cwd=tmp_path)
    return lambda *words: json.loads(run("node", "build/slots.js", *words, cwd=tmp_path))


@pytest.fixture
def python(document: Path, tmp_path: Path) -> Program:
    """The Python program, using the client of openapi-python-client, both checked by mypy."""
    generate_python(document, tmp_path)
    shutil.copy(HERE / "slots.py", tmp_path)
    # Its session template is the same for every document, and not strictly typed.
    rules = "[mypy]\nstrict = true\n[mypy-generated.client]\nignore_errors = true\n"
    (tmp_path / "mypy.ini").write_text(rules)
    run(Path(sys.executable).parent / "mypy", "slots.py", "generated", cwd=tmp_path)
    return lambda *words: json.loads(run(sys.executable, "slots.py", *words, cwd=tmp_path))


@pytest.mark.parametrize("language", ["typescript", "python"])
def test_a_generated_client_is_answered(language, request, base_url, api, ada, sandbox):
    program: Program = request.getfixturevalue(language)

    told = program(base_url, api.key, ada)

    assert [start[11:16] for start in told["starts"]] == ["10:00", "11:00"]
    assert told["unread"] == []
    assert told["refused"] == "User not found"


@pytest.mark.usefixtures("python")
def test_no_generated_name_is_a_makeshift(tmp_path: Path):
    models = {file.stem for file in (tmp_path / "generated/models").iterdir()} - {"__init__", "__pycache__"}
    methods = {file.stem for file in (tmp_path / "generated/api").glob("*/*.py")} - {"__init__"}

    assert {"provider", "failure_reason", "user_slots_answer", "meeting_url"} <= models
    # A generator numbers unnamed schemas, and names them after their location.
    assert [name for name in models if re.search(r"\d|_item|_type_", name)] == []
    assert {"list_user_slots", "list_users", "create_event"} <= methods
    assert [name for name in methods if re.search(r"\d|_by_", name)] == []

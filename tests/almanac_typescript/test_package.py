"""The TypeScript client: its own tests, its generated types, and what it needs."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from providers.sandbox.client import Sandbox
from tests.almanac_typescript import booking
from tests.almanac_typescript.conftest import run
from tests.almanac_typescript.types import PACKAGE, TYPES, document, generate
from tests.conftest import Api

pytestmark = pytest.mark.typescript

ROOT = PACKAGE.parents[1]
SUITES = sorted(file.name for file in (PACKAGE / "tests").glob("*.test.ts"))


def test_the_generated_types_are_those_of_the_document(tmp_path):
    """After a change of the API, `make client-types` writes them again."""
    generate(document(), tmp_path / "openapi.ts")

    assert TYPES.read_text() == (tmp_path / "openapi.ts").read_text()


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.usefixtures("no_webhook_endpoints")
def test_its_own_tests_pass(
    suite: str, package: Path, base_url: str, sandbox: Sandbox, new_api: Callable[..., Api]
):
    environment = {
        "ALMANAC_URL": base_url,
        "ALMANAC_API_KEY": new_api(shows_tokens=True).key,
        "READ_ONLY_KEY": new_api(read_only=True).key,
        "SANDBOX_URL": sandbox.url,
    }

    said = run("node", "--test", f"build/tests/tests/{suite[:-3]}.js", cwd=package, environment=environment)

    assert re.search(r"^\S+ pass [1-9]", said, re.MULTILINE)


def test_the_client_runs_where_node_is_not(package):
    """Its modules, except the check of webhooks, import nothing but each other."""
    for file in (package / "dist").glob("*.js"):
        imported = set(re.findall(r'from "([^"]+)"', file.read_text()))
        others = {name for name in imported if not name.startswith("./")}
        assert others == ({"standardwebhooks"} if file.name == "webhooks.js" else set()), file.name


def test_the_client_of_the_booking_page_is_this_one():
    """After a change of the client, `make client-types` compiles it again."""
    committed = {file.name: file.read_text() for file in booking.TARGET.iterdir()}

    assert committed == booking.modules()


def test_both_clients_have_one_version():
    described = json.loads((PACKAGE / "package.json").read_text())
    locked = json.loads((PACKAGE / "package-lock.json").read_text())
    python = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]["version"]

    # npm spells 0.3.0.dev0 with a hyphen.
    ours = python.replace(".dev", "-dev")
    assert described["version"] == locked["version"] == ours
    assert f'VERSION = "{ours}"' in (PACKAGE / "src/version.ts").read_text()

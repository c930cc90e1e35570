"""Which code may read the state of a request: the routes and what surrounds them, and nothing below."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Code below the routes: it gets the caller, the freshness, the idempotency key and the like as parameters.
BELOW = ("app/accounts", "app/availability", "app/events")

STATE = {
    "current_app",
    "g",
    "has_app_context",
    "has_request_context",
    "request",
    "session",
    "stream_with_context",
}

# The modules of ``app.http`` without request state. The others hide it behind functions.
STATELESS = {"error_codes", "errors", "provider_failures"}
# A type that the routes pass down.
PASSED = "app.http.authentication.Authentication"


def reads_of_state(code: str) -> Iterator[str]:
    """The imports of a module that give it the state of a request, directly or behind a function."""
    for each in ast.walk(ast.parse(code)):
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names if alias.name.split(".")[0] == "flask")
        if not isinstance(each, ast.ImportFrom) or each.module is None:
            continue
        for alias in each.names:
            name = f"{each.module}.{alias.name}"
            if each.module.split(".")[0] == "flask" and (
                alias.name in STATE or each.module == "flask.globals"
            ):
                yield name
            if name.startswith("app.http.") and name != PASSED and name.split(".")[2] not in STATELESS:
                yield name


@pytest.mark.parametrize("folder", BELOW)
def test_code_below_the_routes_reads_no_state_of_the_request(folder):
    modules = list((ROOT / folder).rglob("*.py"))
    found = {str(file.relative_to(ROOT)): list(reads_of_state(file.read_text())) for file in modules}

    assert modules
    assert {file: names for file, names in found.items() if names} == {}

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
STATELESS = {"authentication", "error_codes", "errors", "provider_failures"}


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
            if name.startswith("app.http.") and name.split(".")[2] not in STATELESS:
                yield name


@pytest.mark.parametrize("folder", BELOW)
def test_code_below_the_routes_reads_no_state_of_the_request(folder):
    modules = list((ROOT / folder).rglob("*.py"))
    found = {str(file.relative_to(ROOT)): list(reads_of_state(file.read_text())) for file in modules}

    assert modules
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "from flask import Response, request",
        "import flask",
        "from flask.globals import request_ctx",
        "from app.http.api_key_hook import caller",
        "from app.http import api_key_hook",
        "def f():\n    from app.http.idempotency import key",
    ],
)
def test_each_way_to_the_state_is_found(code):
    assert list(reads_of_state(code))


def test_only_one_accessor_reads_the_application():
    """``app.services:services`` is the way to the objects of a process; outside it only ``app.http`` and the
    dashboard's sign-in, which read the application's own configuration, read the application."""
    users = {
        str(file.relative_to(ROOT).parent)
        for file in (ROOT / "app").rglob("*.py")
        if any(
            alias.name in ("current_app", "current_application")
            for each in ast.walk(ast.parse(file.read_text()))
            if isinstance(each, ast.ImportFrom)
            for alias in each.names
        )
    }

    assert users == {"app", "app/http", "app/dashboard/sign_in"}

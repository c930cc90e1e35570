"""The table of docs/operate/access.md: every route by API keys and by roles, as other tests try them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from flask import Flask

from app.docs_site.tables import with_table
from app.http.routes import RouteFacts, declared_facts
from store.sql.models import Role
from tests.dashboard import routes
from tests.security.keys import Kind
from tests.security.matrix import ROWS, Row

PAGE = Path(__file__).parents[2] / "docs/operate/access.md"
HEADING = "Routes"
# `make access` sets it.
RECORDING = "ALMANAC_RECORD_ACCESS" in os.environ

COLUMNS = (
    *("route", "key that reads", "key that writes", "that shows tokens", "that manages keys"),
    *("of the organization", "of another organization", *map(str, Role)),
)
UNBOUND = (Kind(read_only=True), Kind(), Kind(shows_tokens=True), Kind(manages_keys=True))
BOUND = Kind(bound=True)
NOT_HERE = "-"


def of_key(row: Row) -> Iterator[str]:
    """The cells of a route of the API."""
    yield f"`{row.method} /v1{row.path}`"
    for kind in UNBOUND:
        yield str(row.status if kind.may(row.kind) else 403)
    yield str((row.bound or row.status) if BOUND.may(row.kind) else 403)
    if BOUND.may(row.kind):
        yield str(row.foreign) if row.names else NOT_HERE
    else:
        yield "403"
    yield from NOT_HERE * len(Role)


def of_roles(app: Flask) -> Iterator[tuple[str, ...]]:
    """The rows of the dashboard."""
    for method in ("GET", "POST"):
        for rule in routes.rules(app, method):
            facts = declared_facts(app, rule.endpoint, method) or RouteFacts()
            needed = facts.role_for(method)
            cells = ("yes" if role.includes(needed) else "no" for role in Role)
            permitted = cells if facts.needs_sign_in else ("without sign-in",) * len(Role)
            shown = re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)
            yield (f"`{method} {shown}`", *NOT_HERE * (len(COLUMNS) - 1 - len(Role)), *permitted)


def table(app: Flask) -> str:
    """The table in Markdown: the routes of the API in the order of the matrix, then the dashboard by path."""
    head = (COLUMNS, ("---",) * len(COLUMNS))
    rows = [
        *head,
        *map(tuple, map(of_key, ROWS)),
        *sorted(of_roles(app), key=_place),
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _place(row: tuple[str, ...]) -> tuple[str, str]:
    """The path of a route, then its method."""
    method, path = row[0].strip("`").split()
    return path, method


def test_the_table_has_what_the_tests_try(app):
    text = PAGE.read_text()
    made = with_table(text, HEADING, table(app))
    if RECORDING:
        PAGE.write_text(made)

    assert made.count("\n| `") >= len(ROWS) + 100
    assert RECORDING or made == text, "`make access` writes the table again"

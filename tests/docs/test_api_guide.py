"""The API guide has an example for every route of the OpenAPI document, under a heading of its own."""

from __future__ import annotations

import re

import pytest
from flask import Flask

from tests.app.routes import METHODS
from tests.docs.fences import ROOT

GUIDE = (ROOT / "docs/reference/api.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", GUIDE, flags=re.MULTILINE)[1:]}
SHARED = ["Before you start", "Conventions"]


@pytest.fixture(scope="module")
def routes_of(app: Flask) -> dict[str, set[str]]:
    """The routes of each tag of the document, like ``GET /v1/users``."""
    document = app.test_client().get("/v1/openapi.json").json
    assert document is not None
    found: dict[str, set[str]] = {tag["name"]: set() for tag in document["tags"]}
    for path, item in document["paths"].items():
        for method in item.keys() & {each.lower() for each in METHODS}:
            found[item[method]["tags"][0]].add(f"{method.upper()} {path}")
    return found


def headed(section: str) -> dict[str, str]:
    """The text below each route's heading."""
    parts = re.split(r"^### ", section, flags=re.MULTILINE)[1:]
    return {title: text for title, _, text in (part.partition("\n") for part in parts)}


def calls(text: str) -> set[tuple[str, str]]:
    """Method and path of each call, without the query."""
    found = set()
    for call in re.split(r"\bcurl ", text.replace("\\\n", " "))[1:]:
        method = re.search(r"-X ([A-Z]+)", call)
        if path := re.search(r"\$URL(/v1/[^?\" ]*)", call):
            found.add((method[1] if method else "GET", path[1]))
    return found


def test_the_sections_are_those_of_the_document(routes_of: dict[str, set[str]]):
    assert list(SECTIONS) == SHARED + list(routes_of)


def test_every_route_has_a_heading_in_its_section(routes_of: dict[str, set[str]]):
    for tag, routes in routes_of.items():
        assert headed(SECTIONS[tag]).keys() == routes, tag


def test_below_its_heading_every_route_is_called(routes_of: dict[str, set[str]]):
    for tag, routes in routes_of.items():
        for route in routes:
            method, _, path = route.partition(" ")
            pattern = re.sub(r"\{\w+\}", "[^/]+", path)
            text = headed(SECTIONS[tag])[route]
            assert any(m == method and re.fullmatch(pattern, p) for m, p in calls(text)), route


def test_every_header_of_an_answer_is_named(app: Flask):
    document = app.test_client().get("/v1/openapi.json").json
    assert document is not None
    answers = [
        answer
        for item in document["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict)
        for answer in operation["responses"].values()
    ]
    headers = {name for answer in answers for name in answer["headers"]}

    assert {"X-Failed-Calendars", "X-Failed-Calendars-Count", "Retry-After"} <= headers
    assert {name for name in headers if f"`{name}`" not in GUIDE and f"{name}:" not in GUIDE} == set()

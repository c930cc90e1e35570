"""The OpenAPI document and its page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31

from app.http.route_facts import declared_facts
from app.openapi.enums import WORDS
from tests.app.routes import METHODS, facts_of, open_endpoints, routes

ROOT = Path(__file__).parents[3]


def in_braces(rule: str) -> str:
    """A rule of Flask as a path of OpenAPI."""
    return re.sub(r"<(?:[^:>]*:)?([^>]+)>", r"{\1}", rule)


@pytest.fixture(scope="module")
def document(app) -> dict[str, Any]:
    answer = app.test_client().get("/v1/openapi.json")
    assert answer.status_code == 200
    assert answer.mimetype == "application/json"
    return answer.json


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each operation with its name, like ``GET /v1/users``."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method.upper() in METHODS:
                yield f"{method.upper()} {path}", operation


def test_the_document_is_valid_openapi_3_1(document):
    assert document["openapi"] == "3.1.0"
    jsonschema.Draft202012Validator(OPENAPI_31).validate(document)


def test_every_schema_in_it_is_a_valid_json_schema(document):
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for _, operation in operations(document):
        for parameter in operation.get("parameters", ()):
            jsonschema.Draft202012Validator.check_schema(parameter["schema"])


def test_every_reference_leads_somewhere(document):
    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            for child in node.values():
                yield from references(child)
        elif isinstance(node, list):
            for child in node:
                yield from references(child)

    found = set(references(document))

    assert len(found) > 30
    for reference in found:
        node: Any = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


def test_every_route_is_in_the_document_and_nothing_else(app, document):
    served = {
        f"{method} {in_braces(rule.rule)}"
        for rule in app.url_map.iter_rules()
        # Providers have a contract of their own with "push".
        if rule.rule.startswith("/v1/") and rule.endpoint.partition(".")[0] not in ("api-docs", "push")
        for method in rule.methods & set(METHODS)
    }

    assert {name for name, _ in operations(document)} == served


def test_every_operation_has_what_a_reader_looks_for(document):
    tags = {tag["name"] for tag in document["tags"]}
    ids = []
    for name, operation in operations(document):
        ids.append(operation["operationId"])
        assert 5 < len(operation["summary"]) <= 60, name
        assert not operation["summary"].endswith("."), name
        assert set(operation["tags"]) <= tags, name
        assert operation["responses"].keys() >= {"503", "default"}, name
        # One route is for browsers, which send no key and are answered with pages.
        for_people = operation["operationId"] == "getCallback"
        assert ("401" in operation["responses"]) != for_people, name
        assert (operation.get("security") == []) == for_people, name
        success = operation["responses"].get("200") or operation["responses"]["201"]
        if for_people:
            assert success["content"].keys() == {"text/html"}
        else:
            schema = success["content"]["application/json"]["schema"]
            # The event list has two forms.
            assert "$ref" in schema.get("anyOf", [schema])[0], name
        if "requestBody" in operation:
            assert operation["requestBody"]["required"] is True, name
            assert operation["responses"].keys() >= {"400", "413", "415"}, name
        if "{" in name:
            assert "404" in operation["responses"], name
    assert len(ids) == len(set(ids))


def test_every_error_has_the_envelope(document):
    for response in document["components"]["responses"].values():
        schema = response["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/Error"}
    error = document["components"]["schemas"]["Error"]
    assert error["required"] == ["data", "error"]
    assert error["properties"]["data"] == {"type": "null"}


def test_every_operation_with_a_key_may_be_one_too_many(document):
    refused = document["components"]["responses"]["Error429"]
    assert refused["headers"].keys() == {
        "Retry-After",
        "RateLimit-Limit",
        "RateLimit-Remaining",
        "RateLimit-Reset",
    }
    for name, operation in operations(document):
        if operation.get("security") != []:
            documented = operation["responses"]["429"]
            # The list of events tells it by a bare string too, and in words of its own.
            headers = refused["headers"] if "$ref" in documented else documented["headers"]
            assert headers == refused["headers"], name


def test_path_parameters_tell_their_shape(document):
    shapes = {
        parameter["name"]: parameter["schema"]
        for item in document["paths"].values()
        for parameter in item.get("parameters", ())
    }

    assert shapes["userId"]["pattern"] == "^[A-Za-z0-9][A-Za-z0-9._-]{2,127}$"
    assert shapes["orgSlug"]["pattern"] == "^[a-z0-9][a-z0-9_-]{2,127}$"
    assert shapes["provider"] == {"$ref": "#/components/schemas/Provider"}


def test_bodies_may_hold_more_than_we_know_and_answers_do_not(document):
    schemas = document["components"]["schemas"]
    taken = {name for name in schemas if name.endswith("Body")} | {"Window", "WantedUser", "MeetingUrl"}

    for name, schema in schemas.items():
        if schema["type"] == "object":
            assert ("additionalProperties" in schema) == (name not in taken), name


def test_every_closed_set_of_words_has_one_name(document):
    def inline(node: Any, path: str) -> Iterator[str]:
        if isinstance(node, dict):
            if "enum" in node:
                yield path
            for key, child in node.items():
                yield from inline(child, f"{path}/{key}")
        elif isinstance(node, list):
            for child in node:
                yield from inline(child, path)

    assert set(inline(document, "")) == {f"/components/schemas/{name}" for name in WORDS}
    sets = [frozenset(document["components"]["schemas"][name]["enum"]) for name in WORDS]
    assert len(sets) == len(set(sets))


def test_operations_are_called_as_a_method_of_a_client_would_be(document):
    verbs = "list|get|create|change|rename|delete|add|remove|store|post|replay"
    ids = {operation["operationId"] for _, operation in operations(document)}

    assert {name for name in ids if not re.fullmatch(rf"(?:{verbs})[A-Z][A-Za-z]+", name)} == {
        "authorize",
        "verify",
    }


def test_every_route_of_the_document_has_an_operation_id_of_its_own(app, document):
    ids = [operation["operationId"] for _, operation in operations(document)]
    declared = {facts_of(app, route).operation_id for route in routes(app)}

    assert len(ids) == len(set(ids))
    assert set(ids) == declared - {None}


def test_every_route_declares_its_facts(app):
    for route in routes(app):
        assert declared_facts(app, route.endpoint, route.method) is not None, route


def test_no_module_lists_endpoints(app):
    """Facts of a route are declared on the route, so no module needs to name endpoints."""
    endpoints = {route.endpoint for route in routes(app)}
    found = [
        (file.name, node.value)
        for file in (ROOT / "app").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in endpoints
    ]

    assert found == []


def test_numbers_and_truths_of_a_query_have_their_types(document):
    item = document["paths"]["/v1/users/{userId}/scheduling"]["get"]
    schemas = {each["name"]: each["schema"] for each in item["parameters"]}
    busy = document["paths"]["/v1/users/{userId}/calendar/busy"]["get"]["parameters"]

    assert schemas["slotDuration"] == {"type": "integer", "minimum": 1, "maximum": 10_080, "default": 30}
    assert {"name": "primaryOnly", "type": "boolean"} in [
        {"name": each["name"], "type": each["schema"].get("type")} for each in busy
    ]


def test_the_page_takes_everything_from_our_own_host(app):
    client = app.test_client()
    page = client.get("/v1/docs")

    assert page.status_code == 200
    assert page.mimetype == "text/html"
    sources = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(sources) >= 3
    assert "http" not in re.sub(r"https?://www\.w3\.org\S*", "", page.text)
    for source in sources:
        assert source.startswith("/static/")
        with client.get(source) as answer:
            assert answer.status_code == 200
            assert len(answer.data) > 1000
    assert '"/v1/openapi.json"' in page.text


def test_every_route_but_the_open_ones_requires_a_key(app):
    found = list(routes(app))
    protected = [route for route in found if facts_of(app, route).needs_key]

    assert {
        "api-docs.openapi_json",
        "api-docs.openapi_swagger_ui",
        "authorization.Callback",
        # Proven by the secret of a channel, see test_push.
        "push.google_push",
        "push.microsoft_push",
    } == open_endpoints(app)
    assert len(found) - len(protected) == len(open_endpoints(app))
    for method, path, _ in protected:
        answer = app.test_client().open(f"/v1{path}", method=method)
        assert answer.status_code == 401, (method, path)


def test_no_other_route_is_open_but_those_that_tell_how_the_service_is(app):
    # The dashboard requires a sign-in; the documentation is public.
    ours = ("/v1/", "/dashboard/", "/docs/")
    outside = {rule.rule for rule in app.url_map.iter_rules() if not rule.rule.startswith(ours)}

    assert outside == {"/docs", "/healthz", "/readyz", "/metrics", "/static/<path:filename>"}


def test_read_only_keys_may_use_three_routes_by_post(app):
    posts = [route for route in routes(app) if route.method == "POST"]

    assert {route.endpoint for route in posts if facts_of(app, route).writes is False} == {
        "scheduling.UserScheduling",
        "scheduling.UsersScheduling",
        "explain.UserExplanation",
    }

"""The OpenAPI document and its page."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import jsonschema
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31

from app.openapi.schemas import ENUMERATIONS
from app.schemas.error_codes import Code
from app.schemas.webhooks import SENT_EVENTS
from tests.app.routes import METHODS

# The document itself, and the page that shows it.
OWN_PAGES = ("api-docs", "reference")


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


@pytest.mark.slow
def test_the_document_is_valid_openapi_3_1(document):
    assert document["openapi"] == "3.1.0"
    jsonschema.Draft202012Validator(OPENAPI_31).validate(document)


def test_every_schema_in_it_is_a_valid_json_schema(document):
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for _, operation in operations(document):
        for parameter in operation.get("parameters", ()):
            jsonschema.Draft202012Validator.check_schema(parameter["schema"])


def test_every_route_is_in_the_document_and_nothing_else(app, document):
    served = {
        f"{method} {in_braces(rule.rule)}"
        for rule in app.url_map.iter_rules()
        # Providers have a contract of their own with "push".
        if rule.rule.startswith("/v1/") and rule.endpoint.partition(".")[0] not in (*OWN_PAGES, "push")
        for method in rule.methods & set(METHODS)
    }

    assert {name for name, _ in operations(document)} == served - {"GET /v1/oauth/{provider}/callback"}


def test_every_operation_has_summary_tags_and_error_responses(document):
    tags = {tag["name"] for tag in document["tags"]}
    ids = []
    for name, operation in operations(document):
        ids.append(operation["operationId"])
        assert 5 < len(operation["summary"]) <= 60, name
        assert not operation["summary"].endswith("."), name
        assert set(operation["tags"]) <= tags, name
        assert operation["responses"].keys() >= {"503", "default"}, name
        assert "401" in operation["responses"], name
        assert "security" not in operation, name
        success = operation["responses"].get("200") or operation["responses"]["201"]
        schema = success["content"]["application/json"]["schema"]
        # The event list has two forms.
        assert "$ref" in schema.get("anyOf", [schema])[0], name
        if "requestBody" in operation:
            assert operation["requestBody"]["required"] is True, name
            assert operation["responses"].keys() >= {"400", "413", "415"}, name
        if "{" in name:
            assert "404" in operation["responses"], name
    assert len(ids) == len(set(ids))


def errors_of(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The error responses of an operation, by status."""
    for status, response in operation["responses"].items():
        if not status.startswith(("2", "3")):
            yield status, response


def test_every_error_has_the_envelope_with_a_code_of_its_operation(document):
    schemas = document["components"]["schemas"]
    for name, operation in operations(document):
        own = f"{operation['operationId'][0].upper()}{operation['operationId'][1:]}Error"
        reference = {"$ref": f"#/components/schemas/{own}"}
        for status, response in errors_of(operation):
            if "application/json" in response["content"]:
                schema = response["content"]["application/json"]["schema"]
                # The event list has two forms.
                assert schema.get("anyOf", [schema])[0] == reference, (name, status)
        envelope, narrower = schemas[own]["allOf"]
        assert envelope == {"$ref": "#/components/schemas/Error"}
        assert narrower["properties"] == {"code": {"$ref": f"#/components/schemas/{own}Code"}}
        assert set(schemas[f"{own}Code"]["enum"]) < set(schemas["ErrorCode"]["enum"]), name
    error = schemas["Error"]
    assert set(error["required"]) == {"data", "error", "code"}
    assert error["properties"]["data"]["type"] == "null"


def test_the_codes_of_an_operation_are_those_of_its_statuses(document):
    schemas = document["components"]["schemas"]
    for name, operation in operations(document):
        enum = f"{operation['operationId'][0].upper()}{operation['operationId'][1:]}ErrorCode"
        codes = {Code(word) for word in schemas[enum]["enum"]}
        documented = dict(errors_of(operation))
        for status, response in documented.items():
            named = re.findall(r"`(\w+)`", response["description"].partition(" `code` is ")[2])
            assert named == [code for code in Code if code in codes and str(code.status) == status], name
        undocumented = {str(code.status) for code in codes} - documented.keys()
        assert undocumented <= {"408", "500"}, name


def test_every_code_is_one_of_an_operation_or_of_no_operation_at_all(document):
    schemas = document["components"]["schemas"]
    found = {word for name, each in schemas.items() if name.endswith("ErrorCode") for word in each["enum"]}
    of_operations = {
        word
        for _, operation in operations(document)
        for name in [f"{operation['operationId'][0].upper()}{operation['operationId'][1:]}ErrorCode"]
        for word in schemas[name]["enum"]
    }

    assert found == set(Code)
    assert found - of_operations == {
        *("channelNotFound", "metricsForbidden", "metricsTokenInvalid"),
        *("methodNotAllowed", "pathNotFound"),
    }


QUOTA = {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}


def test_every_answer_lists_the_headers_that_it_has(document):
    for name, operation in operations(document):
        for status, response in operation["responses"].items():
            headers = response["headers"].keys()
            success = status.startswith("2")
            assert headers >= {"X-Request-Id", *QUOTA}, (name, status)
            assert ("Link" in headers) != success, (name, status)
            assert ("Retry-After" in headers) == retried(operation, status), (name, status)
            cached = any(word in name for word in ("/busy", "/scheduling"))
            assert ("Age" in headers) == (success and cached), (name, status)
            secret = any(
                word in name for word in ("/webhooks", "/keys", "/{userId}/oauth", "/connections", "/grants")
            ) and not any(word in name for word in ("/link", "/authorize"))
            assert ("Cache-Control" in headers) == secret, (name, status)


def retried(operation: dict[str, Any], status: str) -> bool:
    takes_key = any(each["name"] == "Idempotency-Key" for each in operation.get("parameters", ()))
    return status in ("429", "502", "503") or (status == "409" and takes_key)


def test_requests_for_cached_data_take_cache_control(document):
    taking = {
        operation["operationId"]
        for _, operation in operations(document)
        if any(each["name"] == "Cache-Control" for each in operation.get("parameters", ()))
    }
    telling = {
        operation["operationId"]
        for _, operation in operations(document)
        if "Age" in operation["responses"].get("200", {}).get("headers", {})
    }

    assert taking == telling | {"listEvents", "listChanges"}


def test_the_old_form_of_the_event_list_is_deprecated(document):
    deprecated = {
        (name, parameter["name"])
        for name, operation in operations(document)
        for parameter in operation.get("parameters", ())
        if parameter.get("deprecated")
    }

    route = "GET /v1/users/{userId}/calendar/events"
    assert deprecated == {(route, name) for name in ("minDate", "maxDate", "timeZone")}


def test_an_entry_of_several_users_is_chosen_by_its_status(document):
    schemas = document["components"]["schemas"]
    entry = schemas["UserEntry"]
    mapping = entry["discriminator"]["mapping"]

    assert entry["discriminator"]["propertyName"] == "status"
    assert entry["oneOf"] == [{"$ref": reference} for reference in mapping.values()]
    for word, reference in mapping.items():
        chosen = schemas[reference.rpartition("/")[2]]
        assert chosen["properties"]["status"]["const"] == word
        assert "status" in chosen["required"]
    assert "availableSlots" in schemas["SlotsEntry"]["required"]
    assert "availableSlots" not in schemas["FailedEntry"]["properties"]


def test_every_event_of_webhooks_has_its_request(document):
    assert document["webhooks"].keys() == set(SENT_EVENTS)
    for name, item in document["webhooks"].items():
        request = item["post"]["requestBody"]["content"]["application/json"]
        assert request["example"]["type"] == name
        schema = {"components": document["components"], **request["schema"]}
        jsonschema.Draft202012Validator(schema).validate(request["example"])
        assert {each["name"] for each in item["post"]["parameters"]} == {
            "webhook-id",
            "webhook-timestamp",
            "webhook-signature",
        }


def test_the_document_names_its_version_and_its_server(app, new_app):
    client = app.test_client()
    found = client.get("/v1/openapi.json", base_url="http://localhost:8080").json
    assert found["info"]["version"] == metadata.version("almanac")
    assert found["servers"][0]["url"] == "http://localhost:8080"
    # A host in a request is not trusted.
    found = client.get("/v1/openapi.json", base_url="https://evil.example").json
    assert found["servers"][0]["url"] == "/"
    public = new_app(public_url="https://almanac.example")
    found = public.test_client().get("/v1/openapi.json", base_url="https://evil.example").json
    assert found["servers"][0]["url"] == "https://almanac.example"
    assert found["externalDocs"]["url"] == "https://almanac.example/docs"


def test_path_parameters_have_patterns(document):
    shapes = {
        parameter["name"]: parameter["schema"]
        for item in document["paths"].values()
        for parameter in item.get("parameters", ())
    }

    assert shapes["userId"]["pattern"] == "^[A-Za-z0-9][A-Za-z0-9._-]{2,127}$"
    assert shapes["orgSlug"]["pattern"] == "^[a-z0-9][a-z0-9_-]{2,127}$"
    assert shapes["provider"] == {"$ref": "#/components/schemas/Provider"}


def test_objects_are_open_for_additions(document):
    def closed(node: Any) -> bool:
        if isinstance(node, list):
            return any(map(closed, node))
        if not isinstance(node, dict):
            return False
        return node.get("additionalProperties") is False or any(map(closed, node.values()))

    assert not closed(document)


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

    of_operations = {name for name in document["components"]["schemas"] if name.endswith("ErrorCode")}
    names = ENUMERATIONS.keys() | of_operations
    assert set(inline(document, "")) == {f"/components/schemas/{name}" for name in names}
    sets = [frozenset(document["components"]["schemas"][name]["enum"]) for name in ENUMERATIONS]
    assert len(sets) == len(set(sets))


def test_operations_are_called_as_a_method_of_a_client_would_be(document):
    verbs = "list|get|create|update|rename|delete|add|remove|store|replay|respond|explain|verify|rotate"
    ids = {operation["operationId"] for _, operation in operations(document)}

    assert [
        name for name in ids if not re.fullmatch(rf"(?:{verbs}|test|import|export)[A-Z][A-Za-z]+", name)
    ] == []


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
    assert len(sources) >= 6
    assert "http" not in re.sub(r"https?://www\.w3\.org\S*", "", page.text)
    assert {"/docs/", "/dashboard/"} <= set(sources)
    for source in sources:
        assert re.match("/(?!/)", source)
        with client.get(source) as answer:
            assert answer.status_code in (200, 302, 303)
    assert '"/v1/openapi.json"' in page.text


def test_the_renderer_is_sent_compressed_and_kept(app):
    with app.test_client().get("/v1/docs/swagger-ui.js") as answer:
        script = gzip.decompress(answer.data)
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Cache-Control"] == "max-age=31536000"
        assert answer.mimetype == "text/javascript"
    assert b"SwaggerUIBundle" in script
    assert len(answer.data) < len(script) // 3


def test_only_health_and_static_routes_are_open(app):
    # The dashboard requires a sign-in, and an invitation its secret; the documentation is public.
    ours = ("/v1/", "/dashboard/", "/docs/", "/invitation/<secret>")
    outside = {rule.rule for rule in app.url_map.iter_rules() if not rule.rule.startswith(ours)}

    assert outside == {"/docs", "/favicon.ico", "/healthz", "/readyz", "/metrics", "/static/<path:filename>"}


def test_who_may_choose_connections_learns_of_an_unknown_one(document):
    schemas = document["components"]["schemas"]
    lacking = [
        name
        for operations in document["paths"].values()
        for operation in operations.values()
        if isinstance(operation, dict)
        and "connection" in {each.get("name") for each in operation.get("parameters", ())}
        for name in [operation["operationId"][0].upper() + operation["operationId"][1:]]
        if "connectionNotFound" not in schemas[f"{name}ErrorCode"]["enum"]
    ]
    assert lacking == []

"""The Python client against the OpenAPI document: every operation, parameter and field, by name and type."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict
from urllib.parse import parse_qs, unquote, urlsplit

import jsonschema
import pytest
import requests
from flask import Flask
from requests.adapters import BaseAdapter

from almanac_client import Almanac, Answer, records
from almanac_client.parameters import camel
from app.openapi.enums import WORDS
from tests.almanac_client.calls import calls
from tests.almanac_client.forms import of_hint, of_schema, parameters, takes

BASE = "http://almanac.test"
# A redirect target for browsers, which no program calls.
FOR_BROWSERS = {"getCallback"}
# The same list with the parameters of older clients, and the older name of a field.
OTHER_FORMS = {"listEvents": {"minDate", "maxDate"}, "renameUser": {"id"}}
# The client sends the equivalent header.
ZONE_IN_QUERY = {"timeZone"}
# The client paginates by itself.
PAGED = {"limit", "cursor"}
# Schemas that hold one value, which the client unwraps.
UNWRAPPED = {"AccessToken", "Link", "Success", "Error", "Original"}


@pytest.fixture(scope="module")
def document(app: Flask) -> dict[str, Any]:
    found: dict[str, Any] = app.test_client().get("/v1/openapi.json").json
    return found


@pytest.fixture(scope="module")
def schemas(document) -> dict[str, Any]:
    found: dict[str, Any] = document["components"]["schemas"]
    return found


@pytest.fixture(scope="module")
def operations(document) -> dict[str, dict[str, Any]]:
    """Each operation by its id, with its ``path``, ``method`` and all its ``parameters``."""
    return {
        operation["operationId"]: {
            **operation,
            "path": path,
            "method": method.upper(),
            "parameters": [*item.get("parameters", ()), *operation.get("parameters", ())],
        }
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }


class Recorder(BaseAdapter):
    """Replaces the server: records requests, and answers each with a minimal body."""

    def __init__(self, *, several: bool) -> None:
        super().__init__()
        self.several = several
        self.requests: list[requests.PreparedRequest] = []

    def send(self, request, **_):
        self.requests.append(request)
        asked = parse_qs(urlsplit(request.url).query)
        first = "limit" in asked and "cursor" not in asked
        body = {"data": [] if self.several else {"link": "", "accessToken": ""}}
        answer = requests.Response()
        answer.status_code, answer.url, answer.request = 200, request.url, request
        answer._content = json.dumps(body | {"nextCursor": "next" if first else None}).encode()
        return answer

    def close(self) -> None:
        pass


def answered(operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema of ``data`` in an operation's successful answer."""
    success = operation["responses"].get("200") or operation["responses"]["201"]
    schema = success["content"]["application/json"]["schema"]
    schema = schema.get("anyOf", [schema])[0]
    data: dict[str, Any] = schemas[schema["$ref"].rpartition("/")[2]]["properties"]["data"]
    return data


def recorded(name: str, operation: dict[str, Any], schemas: dict[str, Any]) -> list[requests.PreparedRequest]:
    """The request that the client sends for an operation."""
    recorder = Recorder(several=answered(operation, schemas).get("type") == "array")
    session = requests.Session()
    session.mount(BASE, recorder)
    call = calls(Almanac(BASE, "alm_key", session=session))[name]
    made = call.method(*call.args, **call.named)
    if isinstance(made, Iterator):
        list(made)
    return recorder.requests


def body_schema(operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any] | None:
    if "requestBody" not in operation:
        return None
    reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    found: dict[str, Any] = schemas[reference.rpartition("/")[2]]
    return found


def test_every_operation_has_a_method(operations):
    assert set(calls(Almanac(BASE, "key"))) == set(operations) - FOR_BROWSERS


def test_every_method_belongs_to_an_operation():
    almanac = Almanac(BASE, "key")
    reached = {call.method.__func__ for call in calls(almanac).values()}
    resources = [
        each for each in vars(almanac).values() if type(each).__module__.startswith("almanac_client.")
    ]
    methods = {
        method
        for each in resources
        for name, method in inspect.getmembers(type(each), inspect.isfunction)
        if not name.startswith("_")
    }
    whole_lists = {type(almanac.calendars).list, type(almanac.events).list}

    assert len(resources) == 11
    assert methods - reached == whole_lists
    for method in methods:
        assert ">>> " in method.__doc__, method


def test_all_that_an_operation_takes_is_sent_by_its_name(operations, schemas):
    for name, operation in operations.items():
        if name in FOR_BROWSERS:
            continue
        sent = recorded(name, operation, schemas)
        other = OTHER_FORMS.get(name, set()) | ZONE_IN_QUERY
        for place, names in (("query", in_queries(sent)), ("header", in_headers(sent, operation))):
            wanted = {each["name"] for each in operation["parameters"] if each["in"] == place} - other
            assert names == wanted, (name, place)
        shape = re.sub(r"\\\{[^}]+\\\}", "[^/]+", re.escape(operation["path"]))
        for request in sent:
            assert request.method == operation["method"], name
            assert re.fullmatch(shape, unquote(urlsplit(request.url).path)), name
            assert request.headers["Authorization"] == "Bearer alm_key"
        body = body_schema(operation, schemas)
        assert (sent[0].body is None) == (body is None), name
        if body is not None:
            fields = json.loads(sent[0].body)
            assert set(fields) == set(body["properties"]) - other, name
            jsonschema.validate(fields, {**body, "components": {"schemas": schemas}})


def in_queries(sent: list[requests.PreparedRequest]) -> set[str]:
    return {name for request in sent for name in parse_qs(urlsplit(request.url).query)}


def in_headers(sent: list[requests.PreparedRequest], operation: dict[str, Any]) -> set[str]:
    return {name for name in ("X-Timezone", "Idempotency-Key") if name in sent[0].headers}


def test_all_that_an_operation_takes_has_its_type(operations, schemas):
    for name, call in calls(Almanac(BASE, "key")).items():
        operation = operations[name]
        hints = {camel(taken): hint for taken, hint in parameters(call.method).items()}
        wanted = {each["name"]: each["schema"] for each in operation["parameters"] if each["in"] == "query"}
        wanted |= (body_schema(operation, schemas) or {}).get("properties", {})
        # The path and a rename's body both have a ``userId``; members' ids are not JSON of their own.
        for field in set(wanted) - PAGED - OTHER_FORMS.get(name, set()) - ZONE_IN_QUERY - {"userId"}:
            documented = of_schema(wanted[field], schemas) - {"null"}
            assert takes(of_hint(hints[field]), documented), (name, field)


def test_every_method_answers_with_what_its_operation_answers(operations, schemas):
    compared = 0
    for name, call in calls(Almanac(BASE, "key")).items():
        returned = get_type_hints(call.method)["return"]
        if returned in (str, type(None)):
            continue
        # An answer, or pages of answers with the same data.
        if "Answer[" in str(returned):
            while get_origin(returned) in (Iterator, Answer):
                (returned,) = get_args(returned)
        assert of_hint(returned) == of_schema(answered(operations[name], schemas), schemas), name
        compared += 1
    assert compared > 30


def test_every_record_has_the_fields_of_its_schema(schemas):
    known = {name: each for name, each in vars(records).items() if is_typeddict(each) and name[0] != "_"}
    answers = {
        name
        for name, schema in schemas.items()
        if schema["type"] == "object" and not name.endswith(("Answer", "Body"))
    } - UNWRAPPED | {"WindowAnswer", "AttendeeBody", "ProviderLink"}

    assert set(known) == answers
    for name, record in known.items():
        hints = get_type_hints(record, include_extras=True)
        required = {field for field, hint in hints.items() if get_origin(hint) is not NotRequired}
        assert set(hints) == set(schemas[name]["properties"]), name
        assert required == set(schemas[name].get("required", ())), name
        for field, hint in hints.items():
            assert of_hint(hint) == of_schema(schemas[name]["properties"][field], schemas), (name, field)


def test_every_closed_set_of_words_is_the_same():
    for name, words in WORDS.items():
        assert set(get_args(vars(records)[name])) == set(map(str, words)), name

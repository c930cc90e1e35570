"""The Python client against the OpenAPI document: every operation, parameter and field, by name and type."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict
from urllib.parse import unquote, urlsplit

import httpx2
import jsonschema
import msgspec
import pytest
from flask import Flask

from almanac_client import Answer, bodies, records, words
from almanac_client.calendars import Calendars
from almanac_client.client import Resources
from almanac_client.connections import Connections
from almanac_client.events import Events
from almanac_client.operations import Listing, Operation
from almanac_client.parameters import camel
from almanac_client.resources import Resource
from almanac_client.transport import Retries, Transport
from app.openapi.schemas import ENUMERATIONS
from tests.almanac_client.calls import Call, calls
from tests.almanac_client.forms import of_hint, of_schema, parameters, takes

BASE = "http://almanac.test"
# The same list with the parameters of older clients, and the older name of a field.
OTHER_FORMS = {
    # The path has a provider too: the method calls it ``accounts``.
    "createEvent": {"provider"},
    # Those of a delegated connection, which has a method of its own.
    "addConnection": {"type", "organization"},
    "storeConnection": {"type", "organization"},
    "listEvents": {"minDate", "maxDate"},
    "renameUser": {"id"},
}
# The client sends the equivalent header.
ZONE_IN_QUERY = {"timeZone"}
# The client paginates by itself.
PAGED = {"limit", "cursor"}
# Schemas that hold one value, which the client unwraps, and records that it passes on as they are.
UNWRAPPED = {"AccessToken", "Link", "Success", "Error", "Original", "StoredRow"}
# Answers with fields beside their data, so that a record has them all.
WHOLE = {
    records.AddedMembersAnswer,
    records.ChangesAnswer,
    records.DirectoryAnswer,
    records.RemovedMembersAnswer,
}
# Records and bodies whose names do not show it.
OTHER_RECORDS = {
    *("WindowAnswer", "DateWindowAnswer", "OverrideAnswer", "HolidaysAnswer", "CountingCalendarAnswer"),
    *("AttendeeBody", "ProfileBody", "ProviderLink", "QuotasBody"),
    *(record.__name__ for record in WHOLE),
}


@pytest.fixture(scope="module")
def document(app: Flask) -> dict[str, Any]:
    found: dict[str, Any] = app.test_client().get("/v1/openapi.json").json
    return found


@pytest.fixture(scope="module")
def schemas(document) -> dict[str, Any]:
    found: dict[str, Any] = document["components"]["schemas"]
    choices = {name: schema["oneOf"] for name, schema in found.items() if "oneOf" in schema}
    parts = {part["$ref"].rpartition("/")[2] for choice in choices.values() for part in choice}
    merged = {
        name: of_any([found[part["$ref"].rpartition("/")[2]] for part in choice])
        for name, choice in choices.items()
    }
    return {name: schema for name, schema in found.items() if name not in parts} | merged


def of_any(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One object with the fields of all of ``parts``, as the client's record of a choice has them."""
    names = {name: None for part in parts for name in part["properties"]}
    properties = {}
    for name in names:
        schemas = [part["properties"][name] for part in parts if name in part["properties"]]
        properties[name] = schemas[0] if schemas.count(schemas[0]) == len(schemas) else {"anyOf": schemas}
    required = set.intersection(*(set(part["required"]) for part in parts))
    return {"type": "object", "properties": properties, "required": sorted(required)}


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


class Unsent:
    """A transport that returns operations as they are; ``build`` makes the HTTP requests of a real one."""

    base_url = BASE

    def run(self, operation: Operation[Any]) -> Operation[Any]:
        return operation

    def iterate(self, listing: Listing[Any]) -> Listing[Any]:
        return listing


# Its methods return their operations.
UNSENT: Any = Resources(Unsent())  # type: ignore[type-var]


def answered(operation: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema of an operation's successful answer."""
    success = operation["responses"].get("200") or operation["responses"]["201"]
    schema = success["content"]["application/json"]["schema"]
    found: dict[str, Any] = schema.get("anyOf", [schema])[0]
    return found


def data_of(answer: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema of ``data`` in an answer."""
    data: dict[str, Any] = schemas[answer["$ref"].rpartition("/")[2]]["properties"]["data"]
    return data


def requests_of(call: Call) -> list[httpx2.Request]:
    """The HTTP requests of a call; of a list, those of the first page and the next."""
    made = call.method(*call.args, **call.named)
    pages = [made.page(None), made.page("next")] if isinstance(made, Listing) else [made]
    with httpx2.Client() as client:
        transport = Transport(BASE, "alm_key", 5.0, Retries(), client)
        return [transport.build(client, page.request) for page in pages]


def body_schema(operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any] | None:
    if "requestBody" not in operation:
        return None
    reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    found: dict[str, Any] = schemas[reference.rpartition("/")[2]]
    return found


def test_every_operation_has_a_method(operations):
    assert set(calls(UNSENT)) == set(operations)


def test_every_method_belongs_to_an_operation():
    reached = {call.method.__wrapped__.__func__ for call in calls(UNSENT).values()}
    resources = [each for each in vars(UNSENT).values() if isinstance(each, Resource)]
    methods = {
        method
        for each in resources
        for name, method in inspect.getmembers(type(each), inspect.isfunction)
        if not name.startswith("_")
    }
    # Lists by several requests, and the second form of a request.
    others = {Calendars.list, Events.list, Connections.delegate}

    assert len(resources) == 14
    assert methods - reached == others
    for method in methods:
        assert ">>> " in method.__doc__, method


@pytest.mark.slow
def test_all_that_an_operation_takes_is_sent_by_its_name(operations, schemas):
    for name, operation in operations.items():
        sent = requests_of(calls(UNSENT)[name])
        other = OTHER_FORMS.get(name, set())
        for place, names in (("query", in_queries(sent)), ("header", in_headers(sent, operation))):
            wanted = {each["name"] for each in operation["parameters"] if each["in"] == place}
            wanted -= other | ZONE_IN_QUERY
            assert names == wanted, (name, place)
        shape = re.sub(r"\\\{[^}]+\\\}", "[^/]+", re.escape(operation["path"]))
        for request in sent:
            assert request.method == operation["method"], name
            assert re.fullmatch(shape, unquote(urlsplit(str(request.url)).path)), name
            assert request.headers["Authorization"] == "Bearer alm_key"
        body = body_schema(operation, schemas)
        assert (sent[0].content == b"") == (body is None), name
        if body is not None:
            fields = json.loads(sent[0].content)
            assert set(fields) == set(body["properties"]) - other, name
            jsonschema.validate(fields, {**body, "components": {"schemas": schemas}})


def in_queries(sent: list[httpx2.Request]) -> set[str]:
    return {name for request in sent for name in request.url.params}


def in_headers(sent: list[httpx2.Request], operation: dict[str, Any]) -> set[str]:
    names = ("X-Timezone", "Idempotency-Key", "If-Match", "Cache-Control")
    return {name for name in names if name in sent[0].headers}


def test_all_that_an_operation_takes_has_its_type(operations, schemas):
    for name, call in calls(UNSENT).items():
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
    for name, call in calls(UNSENT).items():
        returned = get_type_hints(call.method)["return"]
        assert get_origin(returned) in (Operation, Listing), name
        # Of an answer, and of pages of answers, the data.
        several = get_origin(returned) is Listing and "Answer[" not in str(returned)
        while get_origin(returned) in (Operation, Listing, Answer):
            (returned,) = get_args(returned)
        if returned in (str, type(None)):
            continue
        form = frozenset({("array", of_hint(returned))}) if several else of_hint(returned)
        answer = answered(operations[name])
        documented = answer if returned in WHOLE else data_of(answer, schemas)
        assert form == of_schema(documented, schemas), name
        compared += 1
    assert compared > 30


def test_every_record_has_the_fields_of_its_schema(schemas):
    known = {name: getattr(records, name) for name in records.__all__ if name != "Record"}
    taken = {name: each for name, each in vars(bodies).items() if is_typeddict(each)}
    answers = {
        name
        for name, schema in schemas.items()
        if schema["type"] == "object" and not name.endswith(("Answer", "Body")) and "allOf" not in schema
    } - UNWRAPPED | OTHER_RECORDS

    assert set(known) | set(taken) == answers
    for name, record in known.items():
        hints = get_type_hints(record, localns=vars(words))
        fields = {field.encode_name: field for field in msgspec.structs.fields(record)}
        properties = schemas[name]["properties"]
        assert set(fields) == set(properties), name
        for written, field in fields.items():
            documented = of_schema(properties[written], schemas)
            # A field that may be absent is then None, or False.
            assert field.required == (written in schemas[name].get("required", ())), (name, written)
            absent = set() if field.required else {"null"} - documented
            assert of_hint(hints[field.name]) - absent == documented, (name, written)
    for name, body in taken.items():
        hints = get_type_hints(body, include_extras=True)
        required = {camel(field) for field, hint in hints.items() if get_origin(hint) is not NotRequired}
        assert required == set(schemas[name].get("required", ())), name
        assert {camel(field) for field in hints} == set(schemas[name]["properties"]), name
        for field, hint in hints.items():
            documented = of_schema(schemas[name]["properties"][camel(field)], schemas)
            assert of_hint(hint) == documented, (name, field)


def test_every_closed_set_of_words_is_the_same():
    for name, (documented, _) in ENUMERATIONS.items():
        assert set(get_args(vars(words)[name])) == set(map(str, documented)), name


@pytest.mark.parametrize("name", sorted(calls(UNSENT)))
def test_a_misspelt_option_is_an_error(name):
    made = calls(UNSENT)[name]
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        made.method(*made.args, **made.named, nonsense=1)

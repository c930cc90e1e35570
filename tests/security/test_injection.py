"""Every parameter of every operation of the OpenAPI document, with texts of attacks."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tests.app.routes import METHODS
from tests.security.matrix import ROWS, Row
from tests.security.strings import INJECTIONS, MARKUP, SHARP, VALUES
from tests.security.tenants import Settle, Tenant, digest

# Headers that any request may have; those of single operations are in the document.
HEADERS = ("Accept", "Accept-Language", "Cache-Control", "Content-Type", "Idempotency-Key", "If-None-Match")
HEADERS += ("Origin", "Prefer", "Range", "Traceparent", "User-Agent", "X-Request-Id", "X-Timezone")
HEADERS += ("X-Forwarded-For", "X-Forwarded-Host", "X-HTTP-Method-Override", "X-Original-URL")

HEADED = {"GET /users", "GET /users/{userId}/calendar/busy", "GET /organizations/{orgSlug}/scheduling"}
HEADED |= {"POST /users/scheduling", "GET /users/{userId}/oauth", "GET /webhooks"}

# Names in some rows that no tenant has.
NO_TENANTS = {"state": "x", "code": "x"}

# Thousands of requests.
pytestmark = pytest.mark.security


@pytest.fixture
def operations(app: Flask) -> dict[str, dict[str, Any]]:
    """The document's operations, by the names that the matrix has."""
    document = app.test_client().get("/v1/openapi.json").json
    return {
        f"{method.upper()} {path.removeprefix('/v1')}": operation
        | {"schemas": document["components"]["schemas"]}
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method.upper() in METHODS
    }


@pytest.fixture
def tenant(new_tenant: Settle) -> Tenant:
    return new_tenant()


def harmless(answer: TestResponse, what: object) -> None:
    """It is an answer of the service without a 5xx, and a browser that shows it runs nothing."""
    assert answer.status_code < 500, (what, answer.text)
    assert "Set-Cookie" not in answer.headers, what
    if answer.mimetype == "text/html":
        assert MARKUP not in answer.text, what
    else:
        assert answer.mimetype in ("application/json", "text/plain"), what
    assert "Traceback" not in answer.text, what
    assert "sqlalchemy" not in answer.text.lower(), what


def queries(operation: dict[str, Any]) -> set[str]:
    """The query parameters of an operation, and of the others."""
    found = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
    return found | {"limit", "unknown"}


# The names that lead to a field of a body.
Place = tuple[str, ...]


def bodies(operation: dict[str, Any]) -> Iterator[Place]:
    """Where a body's fields are: the names that lead there."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    yield from _fields(schema, operation["schemas"], ())


def _fields(
    schema: dict[str, Any], known: dict[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    if "$ref" in schema:
        schema = known[schema["$ref"].rpartition("/")[2]]
    for name, each in schema.get("properties", {}).items():
        yield (*path, name)
        inner = each.get("items", each)
        yield from _fields(inner, known, (*path, name))


def _put(body: Any, path: Place, value: object) -> Any:
    """A body with a value where the path leads."""
    name, *rest = path
    inner = body.get(name) if isinstance(body, dict) else None
    if rest:
        into = inner[0] if isinstance(inner, list) and inner else inner
        filled = _put(into if isinstance(into, dict) else {}, tuple(rest), value)
        value = [filled] if isinstance(inner, list) or inner is None else filled
    return {**(body or {}), name: value}


READS = [row for row in ROWS if row.kind != "write"]
WITH_PATH = [row for row in ROWS if "{" in row.path]
WITH_BODY = [row for row in ROWS if row.body is not None]
EXPORT = "GET /users/{userId}/export"
EVERY = {"ids": lambda row: row.operation}


def first(rows: Iterable[Row], names: Callable[[Row], Iterable[str]]) -> dict[str, Row]:
    """The first place of each name gets all texts; later places get one text of each kind."""
    found: dict[str, Row] = {}
    for row in rows:
        found |= {name: row for name in names(row) if name not in found}
    return found


SEGMENTS = first(WITH_PATH, lambda row: [each for each in row.names if f"{{{each}}}" in row.path])
# Of each part of the API one.
ASKED_BY_HEADERS = [row for row in READS if row.operation in HEADED]


@pytest.mark.parametrize("row", WITH_PATH, **EVERY)
def test_no_segment_of_a_path_breaks_anything(api, tenant: Tenant, stores, row: Row):
    method, _, more = row.request(tenant.names | NO_TENANTS)
    before = digest(stores)
    for name in (each for each in row.names if f"{{{each}}}" in row.path):
        texts = INJECTIONS if SEGMENTS[name] is row else SHARP
        segments = [quote(text, safe="") for text in texts if text.strip()]
        # Paths as a client sends them unchanged, or as a proxy rewrites them.
        segments += [quote(text, safe="/;:@!$&'()*+,=") for text in SHARP]
        segments += [quote(quote(text, safe=""), safe="") for text in SHARP]
        segments += [
            "%c0%ae%c0%ae",
            "%ff%fe",
            "%u002e",
            "%",
            "%2",
            "..;",
            ".",
            "..",
            "a;b=c",
            "%2e%2e%2f" * 9,
        ]
        for segment in segments:
            escaped = {each: quote(value, safe="") for each, value in tenant.names.items()}
            answer = api.call(method, row.path.format(**escaped | {name: segment}), **more)
            harmless(answer, (name, segment))
            assert answer.status_code >= 400, (name, segment)
    assert digest(stores) == before


@pytest.mark.parametrize("row", READS, **EVERY)
def test_no_parameter_of_a_query_breaks_anything(api, tenant: Tenant, stores, operations, row: Row):
    method, path, more = row.request(tenant.names)
    asked = more.pop("query_string")
    before = digest(stores)
    whole = first(READS, lambda each: queries(operations[each.operation]))
    for name in sorted(queries(operations[row.operation])):
        tried = [{name: text} for text in (INJECTIONS if whole[name] is row else SHARP)]
        # Twice, as an array, by the ways of other frameworks.
        tried += [
            {odd: "1"} for odd in (f"{name}[]", f"{name}[$ne]", f"{name}[0]", f"{name}\0", name.upper())
        ]
        tried += [{name: ["1", "2"]}, {name: ["x"] * 500}]
        for query in tried:
            harmless(api.call(method, path, query_string=asked | query, **more), query)
    after = digest(stores)
    if row.operation == EXPORT:
        # The audit records say who has exported a person.
        before["audit_records"] = after["audit_records"]
    assert after == before


@pytest.mark.parametrize("row", ASKED_BY_HEADERS, **EVERY)
def test_no_header_breaks_anything(api, tenant: Tenant, stores, row: Row):
    method, path, more = row.request(tenant.names)
    before = digest(stores)
    plain = api.call(method, path, **more)
    for name in HEADERS:
        for text in SHARP:
            if "\r" in text or "\n" in text or not text.isascii():
                # The client does not send it; bytes that no client sends are tried on the wire.
                continue
            answer = api.call(method, path, headers={name: text}, **more)
            harmless(answer, (name, text))
            assert text not in str(answer.headers) or name == "X-Request-Id", (name, text)
            if name.startswith(("X-Forwarded", "X-HTTP", "X-Original")):
                assert answer.status_code == plain.status_code, (name, text)
    assert digest(stores) == before


@pytest.mark.parametrize("row", WITH_BODY, **EVERY)
def test_no_field_of_a_body_breaks_anything(api, tenant: Tenant, operations, row: Row):
    method, path, more = row.request(tenant.names | NO_TENANTS)
    good = more.pop("json")
    places = list(bodies(operations[row.operation]))
    assert places
    for place in places:
        for value in (*SHARP, *VALUES):
            # orjson, which the client would use, writes no number of this length.
            body = json.dumps(_put(good, place, value))
            answer = api.call(method, path, data=body, content_type="application/json", **more)
            harmless(answer, (place, value))


DEEP = 100_000
WRITTEN = {
    "deep array": b'{"x": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep object": b'{"x": ' + b'{"x": ' * DEEP + b"1" + b"}" * DEEP + b"}",
    "deep and open": b'{"x": ' + b"[" * DEEP,
    "many members": b"{" + b",".join(b'"k%d": 0' % n for n in range(60_000)) + b"}",
    "members of one name": b"{" + b",".join(b'"id": "ada"' for _ in range(60_000)) + b"}",
    "many elements": b'{"userIds": [' + b",".join(b'"abc"' for _ in range(150_000)) + b"]}",
    "long number": b'{"x": ' + b"9" * 900_000 + b"}",
    "long fraction": b'{"x": 0.' + b"9" * 900_000 + b"}",
    "large exponent": b'{"x": 1e999999999}',
    "NaN": b'{"x": NaN}',
    "Infinity": b'{"x": -Infinity}',
    "long text": b'{"id": "' + b"x" * 1_000_000 + b'"}',
    "escapes": b'{"id": "' + b"\\u0041" * 150_000 + b'"}',
    "lone surrogate": b'{"id": "\\ud800"}',
    "NUL": b'{"id": "a\\u0000b"}',
    "not UTF-8": b'{"id": "\xff\xfe"}',
    "UTF-16": '{"id": "ada"}'.encode("utf-16"),
    "with a mark": b"\xef\xbb\xbf" + b'{"id": "ada"}',
    "comment": b'{"id": "ada"} // x',
    "two values": b'{"id": "ada"}{"id": "eve"}',
}


@pytest.mark.parametrize("row", WITH_BODY, **EVERY)
def test_no_way_to_write_a_body_breaks_anything(api, tenant: Tenant, row: Row):
    method, path, more = row.request(tenant.names | NO_TENANTS | {"new": "n"})
    more.pop("json")
    for name, body in WRITTEN.items():
        began = time.monotonic()
        answer = api.call(method, path, data=body, content_type="application/json", **more)
        harmless(answer, name)
        # A minute would be a fault, on however busy a machine.
        assert time.monotonic() - began < 20, name


def test_a_body_is_not_unpacked(api):
    """A megabyte could unpack to a gigabyte."""
    bomb = gzip.compress(b'{"id": "' + b"x" * 50_000_000 + b'"}')
    for encoding in ("gzip", "deflate", "br", "zstd", "gzip, gzip"):
        answer = api.post(
            "/users", data=bomb, content_type="application/json", headers={"Content-Encoding": encoding}
        )
        assert answer.status_code == 415
        assert "must not be compressed" in answer.json["error"]

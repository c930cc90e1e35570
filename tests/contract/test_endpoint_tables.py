"""Every row of the specification's endpoint tables over HTTP, at both providers, and each documented error.

Each body is checked twice: with the specification's field tables, written by hand in ``shapes``, and with the
OpenAPI document that the service itself serves.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012
from sqlalchemy import update
from werkzeug.test import TestResponse

from app.openapi.examples import EXAMPLES, IDEMPOTENT, SHARED
from store.sql.models import IdempotencyKey, now
from tests.app.routes import METHODS
from tests.contract import calendars, examples, explain, grants, groups, holds, keys, records, webhooks
from tests.contract.rows import COMMON, THROTTLED, Row
from tests.contract.shapes import ERROR, shape_errors
from tests.contract.world import World

pytestmark = pytest.mark.usefixtures("worker", "no_webhook_endpoints")

ROWS = (
    records.ROWS
    + grants.ROWS
    + calendars.ROWS
    + explain.ROWS
    + groups.ROWS
    + holds.ROWS
    + webhooks.ROWS
    + keys.ROWS
)


def name_of(row: Row, provider: str) -> str:
    return f"{row} {provider}" if len(row.providers) > 1 else str(row)


def cases() -> Iterator[Any]:
    """Each row with each of its providers, by a name of its own, which examples refer to."""
    seen: Counter[str] = Counter()
    for row in ROWS:
        for provider in row.providers:
            name = name_of(row, provider)
            seen[name] += 1
            yield pytest.param(row, provider, id=name if seen[name] == 1 else f"{name} ({seen[name]})")


CASES = list(cases())
NAMES_OF_CASES = [str(case.id) for case in CASES]
# Statuses that no row shows: tests below cover them for every operation.
EVERYWHERE = {413, 415, 429, 503}
# Browsers come here, and no program: it is not in the document.
CALLBACK = "GET /oauth/{provider}/callback"
# Required by some queries, and ignored by the others.
RANGE = calendars.RANGE | explain.MOMENT


@pytest.fixture(scope="module")
def document(app) -> dict[str, Any]:
    found: dict[str, Any] = app.test_client().get("/v1/openapi.json").json
    return found


@pytest.fixture(scope="module")
def operations(document) -> dict[str, dict[str, Any]]:
    """The document's operations by their names in the table."""
    return {
        f"{method.upper()} {path.removeprefix('/v1')}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method.upper() in METHODS
    }


def answer_to(world: World, row: Row) -> TestResponse:
    if "{eventId}" in row.operation:
        world.names["eventId"] = world.event_id()
    if row.setup is not None:
        row.setup(world)
    world.names |= {name: world.filled(value) for name, value in row.names.items()}
    if row.key is not None:
        row.key(world)
    return world.call(row.operation, row.query, row.body, row.headers)


@pytest.fixture(scope="module")
def conforms(document, operations) -> Callable[[str, TestResponse], None]:
    """A check that the document allows this status and body for the operation of this name."""
    # Read once: to find the document's references takes longer than a request.
    registry = Registry().with_resource("document:", DRAFT202012.create_resource(document)).crawl()

    def check(operation: str, answer: TestResponse) -> None:
        documented = operations[operation]["responses"].get(str(answer.status_code))
        assert documented is not None, f"{answer.status_code} is not documented: {answer.text}"
        missing = required_headers(document, documented) - {name for name, _ in answer.headers}
        assert not missing, f"headers are missing: {missing}"
        method, path = operation.split(" ")
        place = ("paths", f"/v1{path}", method.lower(), "responses", str(answer.status_code))
        place += ("content", answer.mimetype, "schema")
        pointer = "/".join(quote(each.replace("~", "~0").replace("/", "~1"), safe="") for each in place)
        schema = {"$ref": f"document:#/{pointer}"}
        jsonschema.Draft202012Validator(schema, registry=registry).validate(answer.json)

    return check


def required_headers(document: dict[str, Any], documented: dict[str, Any]) -> set[str]:
    components = document["components"]["headers"]
    return {name for name in documented["headers"] if components[name].get("required")}


def retry_after(body: dict[str, Any]) -> str | None:
    """The header that belongs to the seconds in the body."""
    seconds = body.get("retryAfter")
    return None if seconds is None else str(seconds)


@pytest.mark.parametrize(("row", "provider"), CASES)
def test_row_answers_as_in_the_contract(request, new_world, conforms, operations, row: Row, provider: str):
    world = new_world(provider)
    answer = answer_to(world, row)

    assert answer.status_code == row.status, answer.text
    assert answer.mimetype == row.media
    assert answer.headers["X-Request-Id"]
    if row.operation != CALLBACK:
        conforms(row.operation, answer)
        sent = {"query": row.query, "headers": row.headers, "body": row.body}
        filled = {name: world.filled(value) for name, value in sent.items() if value not in ({}, None)}
        case = request.node.callspec.id
        examples.check_row(world, operations[row.operation]["operationId"], case, filled, answer)
    if row.media != "application/json":
        return
    assert shape_errors(answer.json, row.shape) == []
    if row.status >= 400:
        sentence = answer.json if row.shape is str else answer.json["error"]
        assert sentence.startswith(row.message)
        if row.code is not None:
            assert answer.json["code"] == row.code, answer.text
        if row.code == "validationFailed":
            # The sentence begins with the field.
            assert answer.json["param"] == re.sub(r"\[(\d+)\]", r".\1", sentence.split(" ")[0])
        if row.shape is not str:
            assert answer.headers.get("Retry-After") == retry_after(answer.json)
        if row.status == 429:
            assert answer.headers["Retry-After"] == "60"


def test_every_operation_has_a_row_and_every_row_an_operation(operations):
    assert {row.operation for row in ROWS} == operations.keys() | {CALLBACK}


@pytest.mark.skipif(examples.RECORDING, reason="the examples are being recorded")
def test_every_example_was_recorded_from_a_row(operations):
    rows = {
        example["row"]
        for operation_id, by_status in EXAMPLES.items()
        if operation_id not in (SHARED, IDEMPOTENT)
        for by_name in by_status.values()
        for example in by_name.values()
    }

    assert rows <= set(NAMES_OF_CASES)
    assert EXAMPLES.keys() == {each["operationId"] for each in operations.values()} | {SHARED, IDEMPOTENT}


def promised(operations: dict[str, Any]) -> set[tuple[str, int]]:
    """The documented statuses, except the ones that tests below cover for every operation."""
    return {
        (name, int(status))
        for name, operation in operations.items()
        for status in operation["responses"]
        if status.isdecimal() and int(status) not in EVERYWHERE
    }


def test_documented_statuses_are_those_of_the_rows(operations):
    shown = {
        (row.operation, row.status)
        for row in ROWS
        if row.status not in EVERYWHERE and row.operation != CALLBACK
    }
    shown |= {(name, 401) for name in operations}
    shown |= {(name, status) for name in creating(operations) for status in (409, 422)}

    assert sorted(promised(operations) - shown) == []
    assert sorted(shown - promised(operations)) == []


# --- common to all operations


def with_body(operations: dict[str, Any]) -> Iterator[str]:
    return (name for name, operation in operations.items() if "requestBody" in operation)


def creating(operations: dict[str, Any]) -> list[str]:
    """The operations that accept an idempotency key."""
    return [
        name
        for name, operation in operations.items()
        if any(each.get("name") == "Idempotency-Key" for each in operation.get("parameters", ()))
    ]


def first_success(name: str) -> Row:
    return next(row for row in ROWS if row.operation == name and row.status in (200, 201))


@pytest.fixture(scope="module")
def judged(conforms) -> Callable[..., None]:
    """A check that an answer is this error, as the contract has it for every operation."""

    def check(name: str, answer: TestResponse, status: int, shape: Any = ERROR) -> None:
        assert answer.status_code == status, (name, answer.text)
        conforms(name, answer)
        assert shape_errors(answer.json, shape) == [], name
        assert answer.json["code"] == COMMON[status], name
        assert answer.headers.get("Retry-After") == retry_after(answer.json), name
        if status != 400:
            # An example of all operations, or of the ones that take an idempotency key.
            group = IDEMPOTENT if status in (409, 422) else SHARED
            examples.check(group, str(status), COMMON[status], {"answer": examples.normal(answer.json, {})})

    return check


def test_nothing_is_answered_without_a_key(new_world, judged, operations):
    world = new_world("google")
    world.api.key = "alm_unknown"
    world.names["eventId"] = "x"
    for name in operations:
        answer = world.call(name, {}, None, {})
        judged(name, answer, 401)
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_body_that_cannot_be_read_is_refused_everywhere(new_world, judged, operations):
    world = new_world("google")
    world.api = world.new_api(manages_keys=True)
    world.names["eventId"] = "x"
    for name in with_body(operations):
        method, path = name.split(" ")
        path = path.format(**world.names)
        for status, sent in (
            (400, {"data": b"{", "content_type": "application/json"}),
            (400, {"data": b"[]", "content_type": "application/json"}),
            (413, {"data": b" " * 1_048_577, "content_type": "application/json"}),
            (415, {"data": b"{}", "content_type": "text/plain"}),
        ):
            answer = world.api.call(method, path, query_string=RANGE, **sent)
            judged(name, answer, status)


def test_every_operation_is_503_while_our_own_stores_are_down(new_world, judged, operations):
    world = new_world("google")
    world.names |= {"eventId": "x", "state": "x"}
    broken = world.new_app(
        database_url="postgresql+psycopg://127.0.0.1:1/none", redis_url="redis://127.0.0.1:1/0"
    )
    world.api = type(world.api)(broken.test_client(), world.api.key)
    assert world.call(CALLBACK, {"state": "x"}, None, {}).status_code == 503
    for name in operations:
        answer = world.call(name, {}, None, {})
        judged(name, answer, 503, THROTTLED)
        assert answer.headers["Retry-After"] == "1"


def test_every_operation_that_requires_a_key_is_429_beyond_its_limit(new_world, judged, operations):
    world = new_world("google")
    world.names |= {"eventId": "x"}
    world.api = type(world.api)(world.new_app(rate_limit=1).test_client(), world.api.key)
    world.api.get("/organizations")
    for name in operations:
        answer = world.call(name, {}, None, {})
        judged(name, answer, 429, THROTTLED)
        assert answer.json["retryAfter"] == int(answer.headers["Retry-After"]) > 0
        assert (answer.headers["RateLimit-Limit"], answer.headers["RateLimit-Remaining"]) == ("1", "0")


def test_an_idempotency_key_of_another_request_is_422(new_world, judged, operations):
    assert len(creating(operations)) == 13
    for number, name in enumerate(creating(operations)):
        world = new_world("google")
        key = {"Idempotency-Key": f"{number}"}
        row = first_success(name)
        if row.setup is not None:
            row.setup(world)
        first = world.call(name, row.query, row.body, key)
        assert first.status_code == row.status, (name, first.text)
        again = world.call(name, row.query, row.body, key)
        assert (again.status_code, again.json) == (row.status, first.json), name
        assert again.headers["Idempotency-Replayed"] == "true"
        answer = world.call(name, row.query, row.body | {"x": 1}, key)
        judged(name, answer, 422)


def test_idempotency_key_of_a_request_in_progress_is_409(new_world, judged, operations, stores):
    for number, name in enumerate(creating(operations)):
        world = new_world("google")
        key = {"Idempotency-Key": f"under-way-{number}"}
        row = first_success(name)
        if row.setup is not None:
            row.setup(world)
        world.call(name, row.query, row.body, key)
        with stores.database.writing() as session:
            begun = {"sealed_answer": None, "claimed_until": now() + timedelta(minutes=1)}
            session.execute(update(IdempotencyKey).values(**begun))
        answer = world.call(name, row.query, row.body, key)
        judged(name, answer, 409, THROTTLED)
        assert answer.headers["Retry-After"] == "1"


def test_an_error_of_our_own_is_500(new_world, judged, operations):
    world = new_world("google")
    teller = world.new_api(shows_tokens=True)
    teller.client = world.new_app(encryption_keys=(secrets.token_bytes(32),)).test_client()
    answer = teller.get(f"/users/{world.names['userId']}/oauth/google", showToken="true")

    assert answer.status_code == 500
    examples.check(SHARED, "default", "internalError", {"answer": examples.normal(answer.json, {})})

"""Every row of the specification's endpoint tables over HTTP, at both providers, and each documented error.

Each body is checked twice: with the specification's field tables, written by hand in ``shapes``, and with the
OpenAPI document that the service itself serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import jsonschema
import pytest
from sqlalchemy import update
from werkzeug.test import TestResponse

from store.sql.models import IdempotencyKey, now
from tests.app.routes import METHODS
from tests.contract import calendars, explain, records, webhooks
from tests.contract.rows import THROTTLED, Row
from tests.contract.shapes import ERROR, shape_errors
from tests.contract.world import World

pytestmark = pytest.mark.usefixtures("worker", "no_webhook_endpoints")

ROWS = records.ROWS + calendars.ROWS + explain.ROWS + webhooks.ROWS
CASES = [
    pytest.param(row, provider, id=f"{row} {provider}" if len(row.providers) > 1 else str(row))
    for row in ROWS
    for provider in row.providers
]
# Statuses that no row shows: tests below cover them for every operation.
EVERYWHERE = {413, 415, 429, 503}
CALLBACK = "GET /oauth/{provider}/callback"
# Statuses that need two requests at the same time.
UNSHOWN = {("POST /users/oauth/{provider}/verify", 404): "the user is deleted while the code is redeemed"}


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


@pytest.fixture
def new_world(api, sandbox, new_api, new_user, new_organization, new_app) -> Callable[[str], World]:
    def make(provider: str) -> World:
        world = World(api, sandbox, provider, new_api, new_user, new_organization, new_app)
        world.settle()
        return world

    return make


def answer_to(world: World, row: Row) -> TestResponse:
    if "{eventId}" in row.operation:
        world.names["eventId"] = world.event_id()
    if row.given is not None:
        row.given(world)
    world.names |= {name: world.filled(value) for name, value in row.names.items()}
    if row.key is not None:
        row.key(world)
    return world.call(row.operation, row.query, row.body, row.headers)


def conforms(document: dict[str, Any], operation: dict[str, Any], answer: TestResponse) -> None:
    """Fail unless the document allows this status and body for the operation."""
    documented = operation["responses"].get(str(answer.status_code))
    assert documented is not None, f"{answer.status_code} is not documented: {answer.text}"
    if "$ref" in documented:
        documented = document["components"]["responses"][documented["$ref"].rpartition("/")[2]]
    if not answer.data:
        return
    schema = documented["content"][answer.mimetype]["schema"]
    body = answer.json if answer.is_json else answer.text
    whole = {"components": document["components"], **schema}
    jsonschema.Draft202012Validator(whole).validate(body)


@pytest.mark.parametrize(("row", "provider"), CASES)
def test_a_row_answers_as_the_contract_says(new_world, document, operations, row: Row, provider: str):
    answer = answer_to(new_world(provider), row)

    assert answer.status_code == row.status, answer.text
    assert answer.mimetype == row.media
    assert answer.headers["X-Request-Id"]
    conforms(document, operations[row.operation], answer)
    if row.media != "application/json":
        return
    assert shape_errors(answer.json, row.shape) == []
    if row.status >= 400:
        sentence = answer.json if row.shape is str else answer.json["error"]
        assert sentence.startswith(row.message)
        if row.status == 429:
            assert answer.headers["Retry-After"] == "60"


def test_every_operation_has_a_row_and_every_row_an_operation(operations):
    assert {row.operation for row in ROWS} == operations.keys()


def promised(operations: dict[str, Any]) -> set[tuple[str, int]]:
    """The documented statuses, except the ones that tests below cover for every operation."""
    return {
        (name, int(status))
        for name, operation in operations.items()
        for status in operation["responses"]
        if status.isdecimal() and int(status) not in EVERYWHERE
    }


def test_every_documented_status_is_shown_and_every_status_shown_is_documented(operations):
    shown = {(row.operation, row.status) for row in ROWS if row.status not in EVERYWHERE} | UNSHOWN.keys()
    shown |= {(name, 401) for name in operations.keys() - {CALLBACK}}
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


def judged(document, operations, name: str, answer: TestResponse, status: int, shape: Any = ERROR) -> None:
    assert answer.status_code == status, (name, answer.text)
    conforms(document, operations[name], answer)
    assert shape_errors(answer.json, shape) == [], name


def test_nothing_is_answered_without_a_key(new_world, document, operations):
    world = new_world("google")
    world.api.key = "alm_unknown"
    world.names["eventId"] = "x"
    for name in operations.keys() - {CALLBACK}:
        answer = world.call(name, {}, None, {})
        judged(document, operations, name, answer, 401)
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_body_that_cannot_be_read_is_refused_everywhere(new_world, document, operations):
    world = new_world("google")
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
            judged(document, operations, name, world.api.call(method, path, **sent), status)


def test_every_operation_is_503_while_our_own_stores_are_down(new_world, document, operations):
    world = new_world("google")
    world.names |= {"eventId": "x", "state": "x"}
    broken = world.new_app(
        database_url="postgresql+psycopg://127.0.0.1:1/none", redis_url="redis://127.0.0.1:1/0"
    )
    world.api = type(world.api)(broken.test_client(), world.api.key)
    for name in operations:
        query = {"state": "x"} if name == CALLBACK else {}
        answer = world.call(name, query, None, {})
        judged(document, operations, name, answer, 503)
        assert answer.headers["Retry-After"] == "1"


def test_every_operation_that_requires_a_key_is_429_beyond_its_limit(new_world, document, operations):
    world = new_world("google")
    world.names |= {"eventId": "x"}
    world.api = type(world.api)(world.new_app(rate_limit=1).test_client(), world.api.key)
    world.api.get("/organizations")
    for name in operations.keys() - {CALLBACK}:
        answer = world.call(name, {}, None, {})
        judged(document, operations, name, answer, 429, THROTTLED)
        assert answer.json["retryAfter"] == int(answer.headers["Retry-After"]) > 0
        assert (answer.headers["RateLimit-Limit"], answer.headers["RateLimit-Remaining"]) == ("1", "0")


def test_an_idempotency_key_of_another_request_is_422(new_world, document, operations):
    assert len(creating(operations)) == 7
    for number, name in enumerate(creating(operations)):
        world = new_world("google")
        key = {"Idempotency-Key": f"{number}"}
        row = first_success(name)
        first = world.call(name, row.query, row.body, key)
        assert first.status_code == row.status, (name, first.text)
        again = world.call(name, row.query, row.body, key)
        assert (again.status_code, again.json) == (row.status, first.json), name
        assert again.headers["Idempotency-Replayed"] == "true"
        judged(document, operations, name, world.call(name, row.query, row.body | {"x": 1}, key), 422)


def test_an_idempotency_key_whose_request_is_under_way_is_409(new_world, document, operations, stores):
    for number, name in enumerate(creating(operations)):
        world = new_world("google")
        key = {"Idempotency-Key": f"under-way-{number}"}
        row = first_success(name)
        world.call(name, row.query, row.body, key)
        with stores.database.writing() as session:
            begun = {"sealed_answer": None, "claimed_until": now() + timedelta(minutes=1)}
            session.execute(update(IdempotencyKey).values(**begun))
        answer = world.call(name, row.query, row.body, key)
        judged(document, operations, name, answer, 409)
        assert answer.headers["Retry-After"] == "1"

"""Every error code is provoked over HTTP: by a row of the contract, for every operation, or here."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from werkzeug.exceptions import RequestTimeout
from werkzeug.test import TestResponse

from app.schemas.error_codes import Code
from app.server import wsgi_adapter
from providers.errors import Problem, Reason
from store.coordination.heartbeats import WORKERS
from tests.conftest import Api, stores_of
from tests.contract import calendars, explain, grants, holds, keys, records, webhooks
from tests.contract.rows import COMMON
from tests.contract.world import World

pytestmark = pytest.mark.usefixtures("worker")

ROWS = records.ROWS + grants.ROWS + calendars.ROWS + explain.ROWS + holds.ROWS + webhooks.ROWS + keys.ROWS


def busy(world: World) -> TestResponse:
    return world.call("GET /users/{userId}/calendar/busy", calendars.RANGE, None, {})


def elsewhere(world: World, **settings: Any) -> World:
    """The world with another installation, whose settings these are."""
    world.api = Api(world.new_app(**settings).test_client(), world.api.key)
    return world


def no_worker(world: World) -> TestResponse:
    """The only worker of an installation, which has another Redis database, ended a minute ago."""
    settings = stores_of(world.api.client.application).settings
    elsewhere(world, redis_url=f"{settings.redis_url}?db=1", waiting_reads=5)
    redis = stores_of(world.api.client.application).redis
    redis.hset(WORKERS, "ended", f"{redis.time()[0] - 60}:0:64")
    try:
        return busy(world)
    finally:
        redis.flushdb()


def more_held_users_than_allowed(world: World) -> TestResponse:
    return elsewhere(world, max_held_users=0).call("POST /holds", {}, holds.ELEVEN, {})


def key_of_encryption_lost(world: World) -> TestResponse:
    teller = world.new_api(shows_tokens=True)
    teller.client = world.new_app(encryption_keys=(secrets.token_bytes(32),)).test_client()
    return teller.get(f"/users/{world.names['userId']}/oauth/google", showToken="true")


def slow_body(world: World) -> TestResponse:
    """A body that does not arrive, as the server passes it to the application."""
    return world.api.call(
        "POST",
        "/users",
        content_type="application/json",
        environ_overrides={
            "wsgi.input": wsgi_adapter._Unreadable(RequestTimeout("The request body did not arrive in time")),
            "wsgi.input_terminated": True,
            "HTTP_TRANSFER_ENCODING": "chunked",
        },
    )


def compressed_body(world: World) -> TestResponse:
    sent = {"data": b"{}", "content_type": "application/json"}
    return world.api.call("POST", "/users", headers={"Content-Encoding": "gzip"}, **sent)


def from_another_machine(world: World) -> TestResponse:
    return world.api.client.get("/metrics", environ_overrides={"REMOTE_ADDR": "192.0.2.1"})


PROVOKED: dict[str, Callable[[World], TestResponse]] = {
    "apiKeyMissing": lambda world: world.api.client.get("/v1/users"),
    "bodyCompressed": compressed_body,
    "channelNotFound": lambda world: world.api.client.post("/v1/push/google"),
    "internalError": key_of_encryption_lost,
    "methodNotAllowed": lambda world: world.api.call("PATCH", "/users"),
    "metricsForbidden": from_another_machine,
    "metricsTokenInvalid": lambda world: elsewhere(world, metrics_token="t").api.client.get("/metrics"),
    "noWorker": no_worker,
    "overloaded": lambda world: busy(elsewhere(world, waiting_reads=0)),
    "pathNotFound": lambda world: world.api.get("/nothing"),
    "quotaExceeded": more_held_users_than_allowed,
    "requestTimeout": slow_body,
}


@pytest.mark.parametrize("word", PROVOKED)
def test_an_error_has_its_code_and_its_status(new_world, word: str):
    answer = PROVOKED[word](new_world("google"))

    assert answer.status_code == Code(word).status, answer.text
    assert answer.json.keys() - {"retryAfter", "quota"} == {"data", "error", "code"}
    assert answer.json["code"] == word
    assert answer.headers.get("Retry-After", "") == str(answer.json.get("retryAfter", ""))
    assert answer.headers["Link"].startswith("</docs/reference/errors/#")


def test_every_code_is_provoked():
    by_rows = {row.code for row in ROWS} - {None}

    assert by_rows | set(COMMON.values()) | PROVOKED.keys() == {str(code) for code in Code}


def test_every_row_has_the_status_of_its_code():
    """Rows say both by hand; only an unclear create may have the status of another failure."""
    for row in ROWS:
        if row.code is not None and row.code != "outcomeUnknown":
            assert row.status == Code(row.code).status, row
    assert {Code(word).status: word for word in COMMON.values()} == COMMON


def test_a_failure_of_a_provider_has_a_code_of_the_same_name():
    for word in (*Reason, *Problem):
        if word is not Problem.OUT_OF_SERVICE:
            assert Code[word.name] == word.value

"""Error responses."""

from __future__ import annotations

import secrets

import pytest
from werkzeug.test import TestResponse

from app.http.provider_failures import request_failed
from tests.conftest import Api
from workers import failures

RANGE = {"start": "2026-12-03", "end": "2026-12-04"}
MOMENT = {"at": "2026-12-03T09:00:00Z"}
NOWHERE = "redis://127.0.0.1:1/0"


def refused(answer: TestResponse, status: int) -> str:
    """The sentence of an error; checks the envelope, and that no internals leak."""
    assert answer.status_code == status, answer.text
    assert answer.mimetype == "application/json"
    assert answer.json["data"] is None
    for inside in ("Traceback", 'File "', "sqlite", "psycopg", "SELECT", "127.0.0.1"):
        assert inside not in answer.text
    assert answer.headers["X-Request-Id"]
    return str(answer.json["error"])


# --- 401


def test_the_scheme_is_read_in_any_case(api):
    assert api.get("/users", headers={"Authorization": f"bearer   {api.key} "}).status_code == 200


def test_the_key_comes_before_anything_else_of_the_request(api):
    answer = api.client.post("/v1/users", data=b"{", content_type="text/plain")

    refused(answer, 401)


# --- paths and methods


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v1/", "/v1/nothing", "/v2/users", "/v1/users/ada/nothing", "/v1//users", "//v1/users"],
)
def test_an_unknown_path_is_404(api, path):
    answer = api.client.get(path, headers={"Authorization": f"Bearer {api.key}"}, base_url="http://localhost")

    assert refused(answer, 404) == "There is no such path"


def test_a_slash_at_the_end_makes_no_difference(api):
    assert api.get("/users/").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/users", {"GET", "HEAD", "OPTIONS", "POST"}),
        ("DELETE", "/users", {"GET", "HEAD", "OPTIONS", "POST"}),
        ("POST", "/users/ada", {"DELETE", "GET", "HEAD", "OPTIONS", "PUT"}),
        ("PUT", "/organizations/acme/members", {"DELETE", "GET", "HEAD", "OPTIONS", "POST"}),
    ],
)
def test_wrong_method_is_405_with_the_allowed_ones(api, method, path, allowed):
    answer = api.call(method, path)

    assert refused(answer, 405) == "This path does not take this method"
    assert set(answer.headers["Allow"].split(", ")) == allowed


# --- bodies


def test_a_body_of_more_than_a_mebibyte_is_413(api):
    fits = b'{"id": "' + b"x" * (1024 * 1024 - 10) + b'"}'

    assert "id must match" in refused(send(api, fits), 400)
    assert refused(send(api, fits + b" "), 413) == "The request body is larger than 1 MiB"


def send(api: Api, body: bytes, content_type: str | None = "application/json") -> TestResponse:
    return api.call("POST", "/users", data=body, content_type=content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/jsonx",
        "json",
    ],
)
def test_a_body_that_is_not_json_by_its_type_is_415(api, content_type):
    assert (
        refused(send(api, b'{"id": "ada"}', content_type), 415) == "The request body must be application/json"
    )


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/merge-patch+json",
    ],
)
def test_json_may_be_called_so_in_several_ways(api, content_type):
    assert refused(send(api, b'{"id": "-"}', content_type), 400).startswith("id must match")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"id": "ada",}',
        b"{'id': 'ada'}",
        b'{"id": NaN}',
        b'{"id": "ada"} x',
        b'{"id": "\xff\xfe"}',
        b'{"id": "\xc3"}',
        b'{"id": "\\ud800"}',
        b'{"id": "a\nb"}',
        b"\xef\xbb\xbf{}",
        b"   ",
        b"undefined",
    ],
)
def test_malformed_json_is_400(api, body):
    assert refused(send(api, body), 400) == "The request body is not valid JSON"


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b'"ada"', b"true", b'[{"id": "ada"}]'])
def test_a_body_that_is_not_an_object_is_400(api, body):
    for path in ("/users", "/organizations", "/users/scheduling?start=2026-12-03&end=2026-12-04"):
        answer = api.call("POST", path, data=body, content_type="application/json")
        assert refused(answer, 400) == "The request body must be an object"


def test_an_empty_body_lacks_what_is_required(api):
    assert refused(send(api, b""), 400) == "id is required"
    assert refused(send(api, b"", None), 400) == "id is required"


@pytest.mark.parametrize("control", ["\x00", "\n", "\x1b", "\x7f", "\x85", "\u2028"])
def test_control_characters_in_strings_are_refused(api, unique, control):
    slug = unique("org")
    message = refused(api.post("/organizations", {"slug": slug, "name": f"a{control}b"}), 400)

    assert message == "name must not contain control characters"
    assert api.get(f"/organizations/{slug}").status_code == 404


# --- request ids


@pytest.fixture
def every_kind_of_answer(api, new_api, new_user, new_app, sandbox):
    """Callers, each of which gets another status, for given headers."""
    app_without_key = new_app(encryption_keys=(secrets.token_bytes(32),))
    user = new_user(sandbox.account("google", "ada@example.com"))
    teller = new_api(shows_tokens=True)
    teller.client = app_without_key.test_client()
    nowhere = Api(new_app(database_url="sqlite:////nowhere/at/all.db").test_client(), api.key)
    path = f"/users/{user}/oauth/google"
    return {
        200: lambda headers: api.get("/users", limit=1, headers=headers),
        400: lambda headers: api.get("/users", limit="x", headers=headers),
        401: lambda headers: api.client.get("/v1/users", headers=headers),
        404: lambda headers: api.get("/nothing", headers=headers),
        405: lambda headers: api.call("PATCH", "/users", headers=headers),
        413: lambda headers: api.call("POST", "/users", data=b"x" * 2_000_000, headers=headers),
        415: lambda headers: api.call("POST", "/users", data=b"x", headers=headers),
        500: lambda headers: teller.get(path, showToken="true", headers=headers),
        503: lambda headers: nowhere.get("/users", headers=headers),
    }


def test_every_answer_returns_the_request_id(every_kind_of_answer):
    for status, call in every_kind_of_answer.items():
        answer = call({"X-Request-Id": "My_request-1.2"})
        assert answer.status_code == status
        assert answer.headers.getlist("X-Request-Id") == ["My_request-1.2"]


def test_every_answer_has_an_id_of_its_own_otherwise(every_kind_of_answer):
    ids = [call({}).headers["X-Request-Id"] for call in every_kind_of_answer.values()]

    assert all(len(each) == 24 for each in ids)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("sent", ["", "a b", "a" * 129, "<x>", "a/b", "ä", "a,b"])
def test_an_id_that_is_none_is_replaced(api, sent):
    answer = api.get("/users", limit=1, headers={"X-Request-Id": sent})

    assert answer.headers["X-Request-Id"] not in ("", sent)


def test_an_id_of_128_characters_is_kept(api):
    answer = api.get("/users", limit=1, headers={"X-Request-Id": "a" * 128})

    assert answer.headers["X-Request-Id"] == "a" * 128


# --- 500 and 503


def test_internal_error_is_500_without_stack_trace_and_logged(every_kind_of_answer, caplog):
    answer = every_kind_of_answer[500]({"X-Request-Id": "find-me"})

    assert refused(answer, 500).startswith("Something went wrong on our side")
    record = next(record for record in caplog.records if "find-me" in record.getMessage())
    assert record.exc_info is not None
    assert "showToken" not in record.getMessage()


@pytest.mark.parametrize(
    "database_url",
    ["sqlite:////nowhere/at/all.db", "postgresql+psycopg://postgres@127.0.0.1:1/none", "sqlite://"],
    ids=["no SQLite file", "no PostgreSQL", "no tables"],
)
def test_a_database_that_is_down_is_503(api, new_app, database_url):
    caller = Api(new_app(database_url=database_url).test_client(), api.key)

    for answer in (caller.get("/users"), caller.post("/users", {"id": "ada"})):
        assert refused(answer, 503) == "The service is not available for a moment; try again"
        assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize("down", [{"redis_url": NOWHERE, "broker_url": NOWHERE}, {"redis_url": NOWHERE}])
def test_without_redis_a_busy_read_is_503_and_never_an_empty_answer(
    api, new_app, new_user, new_organization, sandbox, down
):
    user = new_user(sandbox.account("google", "ada@example.com"), slugs=(slug := new_organization(),))
    api.client = new_app(**down).test_client()

    for answer in (
        api.get(f"/users/{user}/calendar/busy", **RANGE),
        api.get(f"/organizations/{slug}/calendar/busy", **RANGE),
        api.get(f"/users/{user}/scheduling", **RANGE),
        api.post("/users/scheduling", {"users": [{"id": user}]}, query_string=RANGE),
        api.get(f"/organizations/{slug}/scheduling", **RANGE),
    ):
        refused(answer, 503)
        assert answer.headers["Retry-After"] == "1"


def test_without_a_broker_a_read_that_needs_a_worker_is_503(api, new_app, new_user, sandbox):
    user = new_user(sandbox.account("google", "ada@example.com"))
    api.client = new_app(broker_url=NOWHERE).test_client()

    answer = api.get(f"/users/{user}/calendar/busy", **RANGE)

    refused(answer, 503)
    assert answer.headers["Retry-After"] == "1"


def test_users_are_read_and_deleted_while_redis_is_down(api, new_app, new_user, sandbox):
    user = new_user(sandbox.account("google", "ada@example.com"))
    api.client = new_app(redis_url=NOWHERE, broker_url=NOWHERE).test_client()

    assert api.get(f"/users/{user}").status_code == 200
    assert api.delete(f"/users/{user}").status_code == 200
    assert api.get(f"/users/{user}").status_code == 404


def test_a_worker_without_a_database_is_our_own_being_out_of_service():
    answer = request_failed(failures.DOWN)

    assert (answer.status, answer.headers) == (503, {"Retry-After": "1"})
    assert request_failed(failures.BROKEN).status == 502

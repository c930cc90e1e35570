"""``Idempotency-Key``: a repeated request creates once and returns the first response."""

from __future__ import annotations

import logging
import re
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import flask
import pytest
from flask import Flask
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from werkzeug.test import TestResponse

from app.http import idempotency
from store.sql.models import IdempotencyKey, now
from tests.app.answers import error
from tests.app.at_provider import INSERT
from tests.app.routes import idempotent_endpoints, routes
from tests.app.two_accounts import Both
from tests.conftest import Api, stores_of
from tests.store.statements import recorded

# POST routes that create nothing: they only read, or return something that is used once.
MAKES_NOTHING = {
    "scheduling.UserScheduling",
    "scheduling.UsersScheduling",
    "scheduling.OrganizationScheduling",
    "busy.UsersBusy",
    "events.EventResponse",
    "explain.UserExplanation",
    "explain.UsersExplanation",
    "groups.GroupScheduling",
    "groups.GroupExplanation",
    "authorization.Authorize",
    "authorization.Verify",
    "push.google_push",
    "push.microsoft_push",
    "webhooks.Replay",
    "webhooks.WebhookTest",
}

# In a year in which no hold has expired when the tests run.
HELD = {"start": "2099-01-05T09:00:00Z", "end": "2099-01-05T10:00:00Z"}
OTHER = "This Idempotency-Key was used with another request; each request needs a key of its own"
UNDER_WAY = "A request with this Idempotency-Key is still under way; try again"
SHAPE = "Idempotency-Key must have 1 to 255 characters, printable ASCII without spaces"
MEETING = {"subject": "Review", "start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}


def keyed(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


@pytest.fixture
def key(unique: Callable[[str], str]) -> dict[str, str]:
    """The header with a key that no other test uses."""
    return keyed(unique("key") + secrets.token_hex(8))


def replayed(answer: TestResponse) -> bool:
    assert answer.headers.get("Idempotency-Replayed") in (None, "true")
    return "Idempotency-Replayed" in answer.headers


def rows(stores):
    with stores.database.reading() as session:
        return session.scalars(select(IdempotencyKey)).all()


# --- where it holds


def test_every_post_route_is_known_to_create_or_not(app):
    posts = {route.endpoint for route in routes(app) if route.method == "POST"}

    assert posts == idempotent_endpoints(app) | MAKES_NOTHING
    assert not idempotent_endpoints(app) & MAKES_NOTHING


def test_the_rest_of_an_answer_is_its_own(api, key, unique):
    body = {"id": unique("user")}
    api.post("/users", body, headers=key | {"X-Request-Id": "first"})
    again = api.post("/users", body, headers=key | {"X-Request-Id": "second"})

    assert replayed(again)
    assert again.headers.getlist("X-Request-Id") == ["second"]
    assert again.headers.getlist("Content-Length") == [str(len(again.data))]


@pytest.fixture
def app_that_creates_elsewhere(new_app) -> Flask:
    """An application whose responses have a Location header."""
    app = new_app()

    @app.after_request
    def tell(response: flask.Response) -> flask.Response:
        if response.status_code == 201:
            response.headers["Location"] = "/v1/there"
        return response

    return app


def test_headers_of_the_answer_are_kept(api, app_that_creates_elsewhere, key, unique):
    client, body = app_that_creates_elsewhere.test_client(), {"id": unique("user")}
    Api(client, api.key).post("/users", body, headers=key)

    # The application that answers again would not say so by itself.
    again = api.post("/users", body, headers=key)

    assert replayed(again)
    assert again.headers["Location"] == "/v1/there"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/users"), ("PUT", "/organizations/{slug}"), ("DELETE", "/organizations/{slug}")],
)
def test_on_other_routes_the_header_means_nothing(api, stores, new_organization, key, method, path):
    before = len(rows(stores))
    path = path.format(slug=new_organization())

    for bad_or_good in (key, key, keyed("not a key")):
        answer = api.call(method, path, headers=bad_or_good, json={"name": "x"} if method == "PUT" else None)
        assert answer.status_code in (200, 404)
        assert not replayed(answer)
    assert len(rows(stores)) == before


def test_without_the_header_no_statement_is_sent_to_the_database(app, api, unique):
    with recorded(stores_of(app).database) as statements:
        assert api.post("/users", {"id": unique("user")}).status_code == 201
        unkeyed = list(statements)
        assert api.post("/users", {"id": unique("user")}, headers=keyed(unique("key"))).status_code == 201
    assert unkeyed
    assert not any("idempotency" in each for each in unkeyed)
    assert sum("idempotency" in each for each in statements) == 2


# --- the key


@pytest.mark.parametrize("bad", ["", " ", "a b", "a\tb", "é", "a" * 256, "\x7f", "\xff"])
def test_a_malformed_key_is_refused(api, unique, bad):
    user = unique("user")

    assert error(api.post("/users", {"id": user}, headers=keyed(bad)), 400) == SHAPE
    assert api.get(f"/users/{user}").status_code == 404


@pytest.mark.parametrize("good", ["!", "~", 'a,b;c="d"', "0" * 255, "8e03978e-40d5-43dd-bc93-6894a57f9324"])
def test_any_printable_text_is_a_key(new_api, unique, good):
    api, body = new_api(), {"id": unique("user")}

    assert api.post("/users", body, headers=keyed(good)).status_code == 201
    assert replayed(api.post("/users", body, headers=keyed(good)))


@pytest.fixture
def heard_keys(new_app) -> tuple[Flask, list[str | None]]:
    """An application, and the keys that its routes get for each request."""
    app, heard = new_app(), []
    app.before_request(lambda: heard.append(idempotency.key()))
    return app, heard


def test_routes_receive_a_digest_of_caller_and_key(heard_keys, api, new_api, unique):
    app, heard = heard_keys
    ours, theirs = Api(app.test_client(), api.key), Api(app.test_client(), new_api().key)
    for caller, name in ((ours, "a"), (ours, "a"), (ours, "b"), (theirs, "a")):
        # A request of no use: it is made again each time, and heard.
        caller.post("/users", {"id": "-"}, headers=keyed(name))
    ours.post("/users", {"id": unique("user")})
    ours.get("/users", headers=keyed("a"), limit=1)

    first, second, other, stranger, unkeyed, read = heard
    assert first == second
    assert len({first, other, stranger}) == 3
    assert all(len(each) == 64 and int(each, 16) for each in (first, other, stranger))
    assert unkeyed is read is None


# --- the same request


@pytest.mark.parametrize(
    "body",
    [
        '{"id":"USER","organizationSlugs":[],"x":{"a":1,"b":[1,2]}}',
        ' { "x" : {"b":[1, 2],\n"a":1}, "organizationSlugs": [],\t"id": "USER" } ',
        '{"x":{"b":[1,2],"a":1},"\\u0069d":"USER","organizationSlugs":[]}',
    ],
)
def test_spelling_does_not_matter(api, key, unique, body):
    user = unique("user")
    first = {"id": user, "organizationSlugs": [], "x": {"a": 1, "b": [1, 2]}}
    assert api.post("/users", first, headers=key).status_code == 201

    again = api.call(
        "POST", "/users/", data=body.replace("USER", user), content_type="application/json", headers=key
    )

    assert replayed(again)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("/users", {"organizationSlugs": []}),
        ("/users", {"id": "somebody-else"}),
        ("/users", {"x": [2, 1]}),
        ("/users", {"x": ["1", 2]}),
        ("/users?x=1", {}),
        ("/organizations", {}),
    ],
)
def test_another_request_is_refused_and_does_nothing(api, key, unique, path, change):
    user = unique("user")
    first = {"id": user, "x": [1, 2]}
    assert api.post("/users", first, headers=key).status_code == 201

    assert error(api.post(path, first | change, headers=key), 422) == OTHER
    assert api.get("/users/somebody-else").status_code == 404
    assert replayed(api.post("/users", first, headers=key))


def test_a_time_in_another_zone_is_another_request(api, key, unique):
    body = {"id": unique("user")}
    api.post("/users", body, headers=key | {"X-Timezone": "Europe/Berlin"})

    assert error(api.post("/users", body, headers=key | {"X-Timezone": "Asia/Tokyo"}), 422) == OTHER
    assert replayed(api.post("/users", body, headers=key | {"X-Timezone": "Europe/Berlin"}))


def test_segments_of_a_path_are_compared_as_text(api, new_organization, key):
    slug = new_organization()
    body = {"userIds": ["nobody"]}
    refused = api.post(f"/organizations/{slug}/members", body, headers=key)
    assert error(refused, 404) == "User not found"

    other = api.post(f"/organizations/{new_organization()}/members", body, headers=key)
    same = api.post(f"/organizations/%{ord(slug[0]):02X}{slug[1:]}/members", body, headers=key)

    assert error(other, 422) == OTHER
    assert error(same, 404) == "User not found"


def test_a_body_nested_deeper_than_most_is_compared_too(api, key, unique):
    def body(user: str) -> str:
        return f'{{"id": "{user}", "x": {"[" * 500 + "]" * 500}}}'

    def send(text: str) -> TestResponse:
        return api.call("POST", "/users", data=text, content_type="application/json", headers=key)

    user = unique("user")
    assert send(body(user)).status_code == 201
    assert replayed(send(body(user)))
    assert error(send(body(unique("user"))), 422) == OTHER


# --- errors


def test_error_answer_is_not_stored_and_can_be_retried(api, new_organization, key, unique):
    path, body = f"/organizations/{new_organization()}/members", {"userIds": [unique("user")]}
    assert error(api.post(path, body, headers=key), 404) == "User not found"
    assert error(api.post(path, body, headers=key), 404) == "User not found"
    api.post("/users", {"id": body["userIds"][0]})

    done = api.post(path, body, headers=key)

    assert done.status_code == 201
    assert not replayed(done)
    assert replayed(api.post(path, body, headers=key))


def test_after_an_error_the_key_is_still_that_of_its_request(api, key, unique):
    taken, user = unique("user"), unique("user")
    assert api.post("/users", {"id": taken}).status_code == 201
    assert api.post("/users", {"id": taken}, headers=key).status_code == 409

    assert error(api.post("/users", {"id": user}, headers=key), 422) == OTHER
    assert api.get(f"/users/{user}").status_code == 404


def test_a_request_that_cannot_be_understood_holds_no_key(api, key, unique):
    assert api.post("/users", {"id": "-"}, headers=key).status_code == 400
    user = unique("user")

    assert api.post("/users", {"id": user}, headers=key).status_code == 201
    assert replayed(api.post("/users", {"id": user}, headers=key))


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"data": b"{", "content_type": "application/json"}, 400),
        ({"data": b"   ", "content_type": "application/json"}, 400),
        ({"data": b'{"id": "ada"}', "content_type": "text/plain"}, 415),
        ({"data": b'{"id": "' + b"x" * 2_000_000 + b'"}', "content_type": "application/json"}, 413),
    ],
)
def test_a_body_that_cannot_be_read_holds_no_key(api, key, unique, request_, status):
    error(api.call("POST", "/users", headers=key, **request_), status)

    assert api.post("/users", {"id": unique("user")}, headers=key).status_code == 201


def test_a_request_that_may_not_be_made_holds_no_key(api, new_api, stores, key, unique):
    before = len(rows(stores))
    stranger, reader = Api(api.client, "alm_unknown"), new_api(read_only=True)

    assert stranger.post("/users", {"id": "ada"}, headers=key).status_code == 401
    assert reader.post("/users", {"id": "ada"}, headers=key).status_code == 403
    assert api.post("/users/-/oauth/google", {}, headers=key).status_code == 404
    assert len(rows(stores)) == before


# --- one at a time


@pytest.fixture
def slow(new_app, api, unique) -> tuple[Api, threading.Event, threading.Event]:
    """A caller whose requests pause after claiming their key: an event for "paused", and one to resume."""
    app, begun, go_on = new_app(), threading.Event(), threading.Event()

    @app.before_request
    def stand_still() -> None:
        begun.set()
        assert go_on.wait(timeout=20)

    return Api(app.test_client(), api.key), begun, go_on


def test_while_the_first_is_under_way_the_second_is_to_come_again(slow, api, key, unique):
    caller, begun, go_on = slow
    body = {"id": unique("user")}
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(caller.post, "/users", body, headers=key)
        assert begun.wait(timeout=10)
        try:
            second = api.post("/users", body, headers=key)
            another = api.post("/users", {"id": unique("user")}, headers=key)
        finally:
            go_on.set()

    assert error(second, 409) == UNDER_WAY
    assert second.headers["Retry-After"] == "1"
    assert error(another, 422) == OTHER
    assert first.result().status_code == 201
    assert replayed(api.post("/users", body, headers=key))


def test_what_a_dead_process_claimed_is_free_when_its_time_is_up(slow, api, stores, settings, key, unique):
    caller, begun, go_on = slow
    body = {"id": unique("user")}
    before = {row.digest for row in rows(stores)}
    with ThreadPoolExecutor(1) as thread:
        dying = thread.submit(caller.post, "/users", body, headers=key)
        assert begun.wait(timeout=10)
        try:
            (claimed,) = [row for row in rows(stores) if row.digest not in before]
            longest = timedelta(seconds=3 * settings.fanout_deadline_seconds + 30)
            assert longest - timedelta(seconds=15) < claimed.claimed_until - now() <= longest
            with stores.database.writing() as session:
                session.get(IdempotencyKey, (claimed.api_key_id, claimed.digest)).claimed_until = now()
            taken_over = api.post("/users", body, headers=key)
        finally:
            go_on.set()

    assert taken_over.status_code == 201
    assert not replayed(taken_over)
    # The one that was not dead after all has no say any more.
    assert dying.result().status_code == 409
    assert replayed(api.post("/users", body, headers=key))


@pytest.mark.slow
def test_of_many_at_once_one_creates(at_once, unique):
    body, key = {"id": unique("user")}, keyed(unique("key"))

    answers = at_once([lambda api: api.post("/users", body, headers=key)] * 8)

    done = [each for each in answers if each.status_code == 201]
    assert sum(not replayed(each) for each in done) == 1
    assert len({each.data for each in done}) == 1
    assert {error(each, 409) for each in answers if each not in done} <= {UNDER_WAY}


def test_of_different_requests_at_once_one_has_the_key(at_once, unique):
    key = keyed(unique("key"))
    bodies = [{"id": unique("user")} for _ in range(6)]

    answers = at_once([lambda api, body=body: api.post("/users", body, headers=key) for body in bodies])

    assert sorted(each.status_code for each in answers) == [201, 422, 422, 422, 422, 422]


# --- our own failures


@pytest.fixture
def broken(new_app, api) -> Callable[..., Api]:
    """A caller of an application that raises the error in the list, if any, in the middle of its work."""

    def make(failure: BaseException, **config: object) -> tuple[Api, list[BaseException]]:
        app, failures = new_app(), [failure]
        app.config.update(config)

        @app.before_request
        def break_down() -> None:
            if failures:
                raise failures[0]

        return Api(app.test_client(), api.key), failures

    return make


@pytest.mark.parametrize(
    ("failure", "status"),
    [(RuntimeError("broken"), 500), (OperationalError("SELECT", {}, Exception("down")), 503)],
)
def test_a_fault_of_ours_frees_the_key(broken, key, unique, failure, status):
    caller, failures = broken(failure)
    body = {"id": unique("user")}
    assert error(caller.post("/users", body, headers=key), status)
    assert error(caller.post("/users", body, headers=key), status)
    failures.clear()

    assert caller.post("/users", body, headers=key).status_code == 201


@pytest.mark.parametrize("failure", [RuntimeError("broken"), SystemExit(1)])
def test_a_request_that_ends_without_an_answer_frees_the_key(broken, key, unique, failure):
    caller, failures = broken(failure, PROPAGATE_EXCEPTIONS=True)
    body = {"id": unique("user")}
    with pytest.raises(type(failure)):
        caller.post("/users", body, headers=key)
    failures.clear()

    assert caller.post("/users", body, headers=key).status_code == 201


def database_down(*_: object, **__: object) -> None:
    raise OperationalError("UPDATE", {"answer": "secret"}, Exception("the database is down"))


def test_answer_that_cannot_be_stored_is_still_returned(api, key, unique, monkeypatch, caplog):
    body = {"id": unique("user")}
    with monkeypatch.context() as patch:
        patch.setattr("store.sql.queries.idempotency.keep", database_down)
        with caplog.at_level(logging.ERROR, "app.http.idempotency"):
            first = api.post("/users", body, headers=key)

    assert (first.status_code, first.json["data"]["id"]) == (201, body["id"])
    assert "response not stored for its Idempotency-Key: OperationalError" in caplog.text
    assert key["Idempotency-Key"] not in caplog.text
    assert error(api.post("/users", body, headers=key), 409) == UNDER_WAY


def test_a_key_that_cannot_be_freed_costs_no_answer(api, key, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        patch.setattr("store.sql.queries.idempotency.forget", database_down)
        with caplog.at_level(logging.ERROR, "app.http.idempotency"):
            answer = api.post("/users", {"id": "-"}, headers=key)

    assert "id must match" in error(answer, 400)
    assert "stays claimed until it expires: OperationalError" in caplog.text
    assert error(api.post("/users", {"id": "-"}, headers=key), 409) == UNDER_WAY


def test_a_key_that_cannot_be_claimed_does_nothing(api, key, unique, monkeypatch):
    user = unique("user")
    with monkeypatch.context() as patch:
        patch.setattr("store.sql.queries.idempotency.claim", database_down)
        assert api.post("/users", {"id": user}, headers=key).status_code == 503

    assert api.get(f"/users/{user}").status_code == 404
    assert api.post("/users", {"id": user}, headers=key).status_code == 201


def test_undecipherable_stored_answer_is_500_without_a_repeat(api, new_app, key, unique):
    body = {"id": unique("user")}
    api.post("/users", body, headers=key)
    client = new_app(encryption_keys=(secrets.token_bytes(32),)).test_client()

    assert error(Api(client, api.key).post("/users", body, headers=key), 500)


# --- the document


def test_openapi_documents_the_header_on_creating_routes(app):
    document = app.test_client().get("/v1/openapi.json").json
    creating = set()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method not in ("get", "post", "put", "patch", "delete"):
                continue
            headers = [each for each in operation.get("parameters", ()) if each["name"] == "Idempotency-Key"]
            if not headers:
                continue
            creating.add((method, re.sub(r"{(\w+)}", r"<\1>", path)))
            assert [(each["in"], each.get("required", False)) for each in headers] == [("header", False)]
            assert operation["responses"].keys() >= {"409", "422"}
            for status, answer in operation["responses"].items():
                tells = "Idempotency-Replayed" in answer.get("headers", {})
                assert tells == (status in ("200", "201")), (path, status)

    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint in idempotent_endpoints(app)]
    assert creating == {("post", re.sub(r"<\w+:(\w+)>", r"<\1>", rule.rule)) for rule in rules}


@pytest.mark.usefixtures("worker")
def test_an_event_that_the_provider_refuses_holds_no_key(api, sandbox, new_user, key):
    user = new_user(sandbox.account("google", "ada@example.com"))
    path, body = f"/users/{user}/calendar/events/google/primary", {"start": "2026-12-03", "end": "2026-12-04"}
    assert api.post(path, body | {"id": "Not!Valid"}, headers=key).status_code == 400
    assert api.post(path, body, headers=key).status_code == 201


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("refuses", ["google", "microsoft"])
def test_400_after_a_partial_write_keeps_the_key(api, sandbox, new_user, key, refuses):
    both = Both.connected(api, sandbox, new_user)
    sandbox.fault(operation=INSERT[refuses], status=400)
    assert both.create(headers=key, subject="First").status_code == 400
    sandbox.clear_faults()

    other = both.create(headers=key, subject="Second")
    again = both.create(headers=key, subject="First")

    assert error(other, 422) == OTHER
    assert again.status_code == 201, again.text
    assert not replayed(again)
    assert both.subjects() == {"google": ["First"], "microsoft": ["First"]}

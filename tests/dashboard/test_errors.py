"""Errors: pages below ``/dashboard``, JSON everywhere else."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from redis.exceptions import RedisError

from app.cli import administrator_setup
from app.dashboard.sign_in import sessions
from store.sql.queries import administrators
from tests.conftest import stores_of
from tests.dashboard.installations import PASSWORD
from tests.dashboard.visiting import Browser, Person, words

NOWHERE = "redis://127.0.0.1:1/0"


def broken(*_: object) -> None:
    raise RuntimeError("secret inside")


@pytest.mark.parametrize("path", ["/nothing", "/account/nothing", "/nothing/at/all/", "//account", "/%2F"])
def test_an_unknown_path_is_a_page(signed_in, visitor, path):
    for browser in (signed_in, visitor):
        page = browser.get(f"/dashboard{path}")

        assert (page.status, page.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
        assert page.heading == "Not found"
    assert "The lists in the menu" in signed_in.page.text
    assert "menu" not in words(visitor.page.html.select_one("main"))


def test_a_method_that_a_page_does_not_take_is_a_page(signed_in):
    for method, path in (("POST", "/account"), ("GET", "/sign-out"), ("DELETE", "/account")):
        page = signed_in.open(method, path)

        assert (page.status, page.headers["Content-Type"]) == (405, "text/html; charset=utf-8"), (
            method,
            path,
        )
        assert page.heading == "Not possible"
        assert page.headers["Allow"]


def test_a_form_that_is_too_large_is_a_page(signed_in):
    page = signed_in.post("/account/password", {"current": "x" * 2_000_000})

    assert (page.status, page.heading) == (413, "Too large")


def test_a_body_that_is_no_form_is_a_page(signed_in):
    page = signed_in.open("POST", "/account/password", data=b"{", content_type="application/json")

    assert (page.status, page.heading) == (400, "This form is no longer valid")


def test_an_internal_error_is_a_page_without_details(signed_in, monkeypatch, caplog):
    monkeypatch.setattr(sessions, "current", broken)

    page = signed_in.get("/account", headers={"X-Request-Id": "find-me"})

    assert (page.status, page.heading) == (500, "Something went wrong on our side")
    assert "find-me" in page.text
    assert "secret inside" not in page.text
    record = next(record for record in caplog.records if "find-me" in record.getMessage())
    assert record.exc_info is not None


def test_the_secret_of_a_link_is_in_no_log(visitor, monkeypatch, caplog):
    for error in (RuntimeError("broken"), RedisError("down")):
        monkeypatch.setattr(administrators, "invited", Mock(side_effect=error))

        assert visitor.get("/welcome/planted-secret?q=planted-query").status in (500, 503)

    assert [record.getMessage().rpartition(", request")[0] for record in caplog.records] == [
        "request failed: GET /dashboard/welcome/{secret}",
        "request failed, out of service: GET /dashboard/welcome/{secret}",
    ]
    assert "planted" not in caplog.text


@pytest.mark.parametrize("path", ["/dashboard/welcome/planted-secret", "/dashboard/welcome/planted-secret/"])
def test_the_secret_of_a_link_is_in_no_log_of_a_framework_error(app, path, caplog):
    with app.test_request_context(path, method="PUT"):
        app.log_exception((RuntimeError, RuntimeError("broken"), None))

    assert "request failed: PUT (no route)" in caplog.text
    assert "planted" not in caplog.text


@pytest.mark.parametrize(
    "down",
    [
        {"database_url": "sqlite:////nowhere/at/all.db"},
        {"database_url": "postgresql+psycopg://postgres@127.0.0.1:1/none"},
        {"redis_url": NOWHERE, "broker_url": NOWHERE},
    ],
    ids=["no SQLite file", "no PostgreSQL", "no Redis"],
)
def test_page_for_an_unavailable_part_names_readyz(new_app, administrator, down):
    browser = Browser(new_app(**down).test_client())
    page = browser.get("/sign-in")
    if page.status == 200:
        page = browser.sign_in(administrator)

    assert (page.status, page.heading) == (503, "The service is not available for a moment")
    assert "/readyz" in page.text
    assert "127.0.0.1" not in page.text


@pytest.mark.parametrize("query", ["q=%00", "q=ada&q=%00", "calendar=a&calendar=b%00c", "%00=a", "q=a&%00"])
def test_a_nul_anywhere_in_a_query_names_nothing(signed_in, query):
    assert signed_in.get(f"/users?{query}").status == 404
    assert signed_in.get("/users?q=ada&q=bob").status == 200


@pytest.mark.parametrize("segment", ["%00", "%FF", "%2F", "..", "%E2%80%A8", "x" * 3000, "%F0%9F%93%85"])
def test_odd_names_in_a_path_are_not_found(new_service, segment):
    administrator_setup.create(stores_of(new_service), "ada", PASSWORD)
    browser = Browser(new_service.test_client())
    browser.sign_in(Person("ada", PASSWORD))

    page = browser.post(f"/account/sessions/{segment}/end")

    assert page.status in (303, 404, 405)
    assert browser.get(f"/welcome/{segment}").status == 404
    assert browser.get(f"/account?q={segment}").status in (200, 404)

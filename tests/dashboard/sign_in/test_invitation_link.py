"""The one-time link by which an administrator registers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

from app.cli import administrator_setup
from store.sql.models import now
from store.sql.queries import administrators
from tests.conftest import stores_of
from tests.dashboard.audit_records import actions
from tests.dashboard.installations import PASSWORD
from tests.dashboard.visiting import Browser


def form(who: str, **changed: str) -> dict[str, str]:
    return {"name": who, "password": PASSWORD, "again": PASSWORD, **changed}


@pytest.fixture
def link(stores) -> str:
    """The path of a new link."""
    return administrator_setup.link(stores, "http://localhost").removeprefix("http://localhost")


def test_printed_link_creates_the_first_administrator(new_service):
    stores = stores_of(new_service)
    link = administrator_setup.first_link(stores, "http://localhost")
    browser = Browser(new_service.test_client())

    assert browser.get("/").location.startswith("/dashboard/sign-in")
    assert "There is no administrator yet" in browser.get("/sign-in").notices[0]
    assert browser.get(link.removeprefix("http://localhost")).heading == "Welcome"
    page = browser.do(browser_path(link), form("ada"))

    assert (page.heading, page.notices) == ("Overview", ["Welcome, ada."])
    assert actions(stores, actor="administrator ada") == [("createAdministrator", "ada")]
    assert administrator_setup.first_link(stores, "http://localhost") is None
    assert Browser(new_service.test_client()).get("/sign-in").notices == []
    browser.post("/sign-out")
    assert browser.post("/sign-in", {"name": "ada", "password": PASSWORD}).status == 303


def browser_path(link: str) -> str:
    return link.removeprefix("http://localhost")


def test_a_link_is_at_the_public_address_where_there_is_one(new_app):
    stores = stores_of(new_app(public_url="https://almanac.example"))

    assert administrator_setup.link(stores, "http://x").startswith(
        "https://almanac.example/dashboard/welcome/"
    )


def test_a_link_works_once(visitor, browser_of, link, unique):
    assert visitor.post(link, form(unique("ada"))).status == 303

    other = browser_of()
    again = other.get(link)
    assert (again.status, again.heading) == (404, "This link is no longer valid")
    assert "almanac admins invite" in again.text
    assert other.post(link, form(unique("bob"))).status == 404
    assert other.get("/").status == 303


def test_a_link_ends_after_a_day(visitor, link, monkeypatch, unique):
    visitor.get(link)
    monkeypatch.setattr(administrators, "now", lambda: now() + timedelta(days=1))

    assert visitor.get(link).status == 404
    assert visitor.post(link, form(unique("ada"))).status == 404


def test_an_unknown_link_is_invalid(visitor):
    assert visitor.get("/welcome/" + "x" * 43).heading == "This link is no longer valid"


def test_of_two_concurrent_uses_of_a_link_one_succeeds(new_service):
    link = browser_path(administrator_setup.link(stores_of(new_service), "http://localhost"))
    gate = Barrier(2)

    def use(name: str) -> int:
        browser = Browser(new_service.test_client())
        browser.get(link)
        gate.wait(timeout=10)
        return browser.post(link, form(name)).status

    with ThreadPoolExecutor(2) as threads:
        statuses = list(threads.map(use, ("ada", "bob")))

    assert statuses.count(303) == 1
    assert set(statuses) <= {303, 400, 404}
    with stores_of(new_service).database.reading() as session:
        assert administrators.count(session) == 1


@pytest.mark.parametrize(
    ("changed", "field", "complaint"),
    [
        ({"name": "a"}, "name", "Name must have 2 to 128 characters."),
        ({"name": "a" * 129}, "name", "Name must have 2 to 128 characters."),
        ({"name": "a\tb"}, "name", "Name must not contain control characters."),
        ({"name": " "}, "name", "Name is required."),
        ({"password": "short", "again": "short"}, "password", "Password must have at least 12 characters."),
        ({"password": "x" * 257}, "password", "Password must have at most 256 characters."),
        ({"password": "abababababab"}, "password", "Password must have at least 5 different characters."),
        ({"password": ""}, "password", "Password is required."),
        ({"again": PASSWORD + "x"}, "again", "Password again must be the same password."),
        ({"again": ""}, "again", "Password again is required."),
    ],
)
def test_errors_are_beside_their_fields_and_the_link_stays_valid(
    visitor, link, unique, changed, field, complaint
):
    page = visitor.post(link, form(unique("ada"), **changed))

    assert page.status == 400
    assert page.error_of(field) == complaint
    assert PASSWORD not in page.text
    assert visitor.post(link, form(unique("ada"))).status == 303


def test_a_name_that_is_taken_is_an_error_and_the_link_stays_valid(visitor, link, new_administrator, unique):
    page = visitor.post(link, form(new_administrator().name))

    assert page.status == 400
    assert page.error_of("name") == "Name is taken: choose another."
    assert visitor.post(link, form(unique("ada"))).status == 303

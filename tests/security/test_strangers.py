"""Every page of the dashboard for clients that have not signed in, with any other credentials."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from flask import Flask

from app.cli import administrator_setup
from store.stores import Stores
from tests.dashboard import routes
from tests.dashboard.visiting import HOME, Browser, Page, Person
from tests.security import keys
from tests.security.keys import IN_FORCE
from tests.security.matrix import ROWS
from tests.security.tenants import Settle, Tenant, digest, leaks

pytestmark = pytest.mark.security

# Pages without a sign-in.
OPEN = ("/sign-in", "/welcome/")
ANYBODY = Person("ada", "seven quiet calendars")


@pytest.fixture
def signed_in(app: Flask, stores: Stores, unique: Callable[[str], str]) -> Browser:
    """The browser of an administrator."""
    person = Person(unique("stranger"), ANYBODY.password)
    assert administrator_setup.create(stores, person.name, person.password)
    browser = Browser(app.test_client())
    assert browser.sign_in(person).status == 303
    return browser


def places(app: Flask, method: str, tenant: Tenant) -> list[str]:
    """Every page, with names of existing resources."""
    names = dict.fromkeys(("administrator_id", "key_id", "number"), "1")
    names |= {"custom_id": tenant.user, "slug": tenant.slug, "session_id": "1", "secret": "guessed"}
    names |= {"webhook_id": tenant.names["webhookId"], "delivery_id": tenant.names["deliveryId"]}
    found = [
        routes.path(rule, dict.fromkeys(rule.arguments, routes.NOBODY) | names | {"provider": "google"})
        for rule in routes.rules(app, method)
    ]
    return [path for path in found if not path.startswith(tuple(f"{HOME}{each}" for each in OPEN))]


def turned_away(page: Page, tenant: Tenant, path: str) -> None:
    assert page.status in (303, 400), path
    if page.status == 303:
        assert page.location.startswith(f"{HOME}/sign-in"), path
    assert list(leaks(page.answer, tenant.words, path)) == [], path


@pytest.mark.parametrize("kind", IN_FORCE)
def test_no_key_opens_a_page(app, stores, new_tenant: Settle, kind: str):
    tenant = new_tenant()
    headers = {"Authorization": f"Bearer {keys.create(stores, IN_FORCE[kind], tenant.slug)}"}
    nobody = Browser(app.test_client())
    before = digest(stores)

    for path in places(app, "GET", tenant):
        turned_away(nobody.get(path, headers=headers), tenant, path)
    for path in places(app, "POST", tenant):
        turned_away(nobody.open("POST", path, headers=headers, data={}), tenant, path)
        turned_away(nobody.post(path, {}, headers=headers), tenant, path)

    assert digest(stores) == before


COOKIES: Mapping[str, Callable[[str], str]] = {
    "none": lambda _: "",
    "nonsense": lambda _: "x",
    "its first part": lambda cookie: cookie.partition(".")[0],
    "unsigned": lambda cookie: cookie.rpartition(".")[0] + ".",
    "its signature changed": lambda cookie: cookie[:-4] + cookie[-4:].swapcase(),
    "twice": lambda cookie: cookie * 2,
    "very long": lambda cookie: cookie + "x" * 8000,
}


@pytest.mark.parametrize("kind", COOKIES)
def test_no_cookie_of_ones_own_making_opens_a_page(app, signed_in, new_tenant: Settle, kind: str):
    tenant = new_tenant()
    cookie = COOKIES[kind](signed_in.cookie)
    forger = Browser(app.test_client(use_cookies=False))

    for path in places(app, "GET", tenant):
        turned_away(forger.get(path, headers={"Cookie": f"almanac={cookie}"}), tenant, path)


def test_a_cookie_opens_no_page_once_its_session_has_ended(app, signed_in, new_tenant: Settle, stores):
    tenant = new_tenant()
    thief = Browser(app.test_client(use_cookies=False))
    stolen = {"Cookie": f"almanac={signed_in.cookie}"}
    assert thief.get("/users", headers=stolen).status == 200

    assert signed_in.post("/sign-out").status == 303

    for path in places(app, "GET", tenant):
        turned_away(thief.get(path, headers=stolen), tenant, path)


def test_no_cookie_of_a_browser_is_a_key(app, signed_in, new_tenant: Settle, stores):
    """Or another site could have an administrator's browser call the API."""
    tenant = new_tenant()
    names = tenant.names | {"code": "x", "state": "x"}
    before = digest(stores)

    for row in ROWS:
        method, path, more = row.request(names)
        headers = {"Cookie": f"almanac={signed_in.cookie}"}
        answer = app.test_client(use_cookies=False).open(f"/v1{path}", method=method, headers=headers, **more)
        assert answer.status_code == 401, row
        assert "Set-Cookie" not in answer.headers

    assert digest(stores) == before

"""Accessibility of pages that only appear after an action."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By

from app.cli import demo
from tests import services
from tests.browser import window
from tests.browser.content import DELEGATED, UNDELEGATED
from tests.browser.keyboard import Keyboard
from tests.browser.visitor import Pointer

PERSON = demo.PEOPLE[0].id
REFUSED = "Please correct the highlighted fields."
WRONG = "Nothing was stored: 1 line is wrong. Correct the list and check it again."

# Pages and the action on each; signed in, except for the sign-in page.
DEEDS = {
    "key": (
        "/keys/new",
        lambda visitor: visitor.write("Name", "ops").use("Create the key").at("Your new API key"),
    ),
    "webhook": (
        "/webhooks/new",
        lambda visitor: (
            visitor.write("URL", "https://example.com/hook").use("Create the webhook").at("Your new webhook")
        ),
    ),
    "link": (
        f"/users/{PERSON}",
        lambda visitor: visitor.use("Reconnect Google").at(f"Connect Google for {PERSON}"),
    ),
    "invitation": (
        "/account",
        lambda visitor: visitor.use("Make an invitation link").until(lambda _: visitor.text("#invitation")),
    ),
    "refused": (
        "/organizations",
        lambda visitor: (
            visitor.use("Create an organization")
            .write("Slug optional", "No slug")
            .use("Create")
            .sees_notice(REFUSED)
        ),
    ),
    "account-refused": (
        f"/users/{PERSON}/connect-account/caldav?service=Radicale",
        lambda visitor: (
            visitor.write("Address", "ftp://example.com")
            .write("User name", "ada")
            .write("Password", "secret")
            .use("Connect")
            .sees_notice(REFUSED)
        ),
    ),
    "grant-refused": (
        "/organizations/odd-0/grants/google",
        lambda visitor: (
            visitor.write("Or its content", "{")
            .write("Subject", "ada")
            .use("Test and store")
            .sees_notice(REFUSED)
        ),
    ),
    "certificate-refused": (
        "/organizations/odd-0/grants/microsoft",
        lambda visitor: (
            visitor.write("Tenant", "acme.example")
            .write("Or its content", "-----BEGIN CERTIFICATE-----")
            .use("Test and store")
            .sees_notice(REFUSED)
        ),
    ),
    "import-preview": (
        "/organizations/odd-0/grants/google/members",
        lambda visitor: (
            visitor.write("Members", f"{DELEGATED},x@example.com\nada-x,ada@example.com")
            .use("Check the list")
            .at("Check the import")
        ),
    ),
    "import-refused": (
        "/organizations/odd-0/grants/google/members",
        lambda visitor: (
            visitor.write("Members", "ada-x,ada@example.com\nada-x,x")
            .use("Check the list")
            .sees_notice(WRONG)
        ),
    ),
    "delegated": (f"/users/{DELEGATED}", lambda visitor: visitor.at(DELEGATED)),
    "undelegated": (f"/users/{UNDELEGATED}", lambda visitor: visitor.at(UNDELEGATED)),
    "made-invitation": (
        f"/invitations/new?users={PERSON}",
        lambda visitor: visitor.use("Make the links").at(f"The link for {PERSON}"),
    ),
    "delete-users": (
        f"/users?q={PERSON}",
        lambda visitor: visitor.choose(f"Select {PERSON}").use("Delete selected …").at("Delete 1 user?"),
    ),
    "palette": (
        "/account",
        lambda visitor: visitor.use("Search pages, users and organizations").until(
            lambda each: len(each.find_elements(By.CSS_SELECTOR, "#palette [role=option]")) > 5
        ),
    ),
    "menu": ("/webhooks", lambda visitor: visitor.use("Actions for https://example.com/")),
    "typed-question": (
        f"/users?q={PERSON}",
        lambda visitor: visitor.use(f"Actions for {PERSON}").use("Delete …", near=PERSON),
    ),
    "question": ("/keys", lambda visitor: visitor.use("Actions for reads").use("Revoke", near="reads")),
    "stranger": (
        "/sign-in",
        lambda visitor: (
            visitor.write("Name", "nobody")
            .write("Password", "nothing of it")
            .use("Sign in")
            .sees_notice("Name or password is wrong.")
        ),
    ),
}

MODAL = frozenset({"question", "typed-question", "palette", "menu"})


@pytest.mark.parametrize("deed", DEEDS)
def test_the_result_of_an_action_is_accessible(browser, web, content, sign_in, deed):
    services.axe().require()
    where, do = DEEDS[deed]
    if deed != "stranger":
        sign_in()
    window.resize(browser, 1440)
    window.opened(browser, f"{web}/dashboard{where}")
    do(Pointer(browser))

    # Until a dialog is answered or a menu closed, nothing else on the page can be reached.
    if deed not in MODAL:
        assert Keyboard(browser).everywhere() == []
    found = window.findings_everywhere(browser)
    assert not found, "\n   ".join(["", *found])
    assert window.width(browser) <= window.SIZES[-1], window.overflowing(browser)

"""Ways through several pages: an ended session, a page with links that is reloaded, and an invitation."""

from __future__ import annotations

import pytest

from tests.browser import window
from tests.browser.visitor import Pointer

ADA = "ada@example.com"
DAY = "day=2026-12-03&days=1&zone=UTC"


@pytest.fixture
def page(web, browser, sign_in):
    """Open a page, signed in: ``page("/users")``."""

    def opened(path):
        window.resize(browser, 1440)
        sign_in()
        window.opened(browser, f"{web}{path}")
        return Pointer(browser)

    return opened


def test_an_ended_session_returns_to_its_place(page, browser, administrator, new_user, sandbox):
    user = new_user(sandbox.account("google", ADA))
    visitor = page(f"/dashboard/explorer?users={user}&{DAY}")
    visitor.until(lambda _: visitor.text("#picture"))
    place = browser.current_url
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    visitor.pick("Days", "3").at("Sign in")

    visitor.write("Name", administrator.name).write("Password", administrator.password).use("Sign in")

    visitor.at("Explorer")
    assert browser.current_url == place


def test_the_page_with_the_links_may_be_reloaded(page, browser, new_user):
    user = new_user()
    visitor = page(f"/dashboard/users/{user}").use("Connect Google").at(f"Connect Google for {user}")

    # As the address bar does: a reload of a form's answer by GET.
    window.opened(browser, browser.current_url)

    visitor.at(user)
    assert "405" not in visitor.text()


def test_an_invitation_is_made_opened_and_used(page, web, browser, sandbox, new_user):
    sandbox.account("google", ADA)
    user = new_user()
    visitor = page(f"/dashboard/users/{user}").use("Invite by a link").at("Invite users")
    visitor.use("Make the links").at(f"The link for {user}")
    link = visitor.text("#link")
    assert link in visitor.text("#message")
    state = f"{web}/dashboard/invitations?q={user}"
    window.opened(browser, state)
    assert "pending" in visitor.text("tbody tr .badge")

    # The invited person is not signed in here.
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    window.opened(browser, link)
    assert user in visitor.text()
    visitor.use("Continue with Google").at("Allow sandbox to use your Google account?")
    visitor.choose(ADA).use("Allow").at("Connected")

    page(f"/dashboard/invitations?q={user}")
    assert "connected" in visitor.text("tbody tr .badge")
    window.opened(browser, link)
    visitor.at("Already connected")

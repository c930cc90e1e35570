"""Pages show the true state of connections, registrations, webhooks and the explorer; links lead to pages."""

from __future__ import annotations

import pytest
import requests
from selenium.webdriver.common.by import By

from store.sql.queries import connection_rows, connections, webhook_events, webhooks
from store.stores import Stores
from tests.browser import window
from tests.browser.conftest import dashboard, fail_a_delivery
from tests.browser.visitor import Pointer

ADA = "ada@example.com"
# Permissions of a Google consent.
FREE_BUSY = "input[type=checkbox][value$='calendar.freebusy']"
LIST = "input[type=checkbox][value$='calendarlist.readonly']"
# The badge of Google in a list or at the head of a card.
GOOGLE = "self::li[.//a[contains(@href, 'settings#google')]] or @class='card-head'"
BADGE = f"//*[{GOOGLE}][contains(., 'Google')]//*[contains(@class, 'badge')]"
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


@pytest.fixture
def consent(page, browser):
    """Connect Google for a user's free and busy times, but leave out these permissions."""

    def given(user, *, without):
        visitor = page(f"/dashboard/users/{user}")
        visitor.pick("Access to request from Google", "Free and busy times only")
        button = "Reconnect Google" if "Reconnect Google" in visitor.text() else "Connect Google"
        visitor.use(button).use("Open it here")
        visitor.until(lambda each: "Allow sandbox" in each.find_element(By.TAG_NAME, "h1").text)
        visitor.choose(ADA)
        for box in browser.find_elements(By.CSS_SELECTOR, without):
            box.click()
        return visitor.use("Allow")

    return given


def badge(visitor):
    return visitor.text("section[aria-labelledby=connections] .badge")


def test_a_connection_without_calendars_is_not_called_connected(sandbox, new_user, consent):
    sandbox.account("google", ADA)
    user = new_user()

    visitor = consent(user, without=FREE_BUSY).at(user)

    assert visitor.notices[0].startswith("Google is not connected: Access to calendars was not granted")
    assert badge(visitor) == "not connected"


def test_a_partial_consent_keeps_the_connection_that_works(sandbox, new_user, consent, api):
    user = new_user(sandbox.account("google", ADA))
    before = api.get(f"/users/{user}/oauth/google").json["data"]["scope"]

    visitor = consent(user, without=LIST)
    visitor.until(lambda _: visitor.notices)

    assert "the list of calendars is missing" in visitor.notices[0]
    assert visitor.notices[0].endswith("Accounts connected before are unchanged.")
    assert badge(visitor) == "connected"
    assert api.get(f"/users/{user}/oauth/google").json["data"]["scope"] == before


def test_ended_connection_is_not_shown_as_refreshed(new_user, sandbox, page, settings):
    user = new_user(sandbox.account("google", ADA))
    with Stores(settings) as stores, stores.database.writing() as session:
        (one,) = connection_rows.of_user(session, user, organization_id=None)
        connections.mark_dead(session, one.id, "The grant was withdrawn")

    visitor = page(f"/dashboard/users/{user}")

    assert badge(visitor) == "ended"
    assert "no longer refreshed" in visitor.text()
    assert "by itself" not in visitor.text()


def test_unchecked_registration_is_not_shown_as_configured(environment, sign_in, browser, unique):
    with dashboard({**environment, "ALMANAC_GOOGLE_CLIENT_ID": unique("never-checked")}) as url:
        # Cookies are for all ports of a host.
        sign_in()
        for path in ("/dashboard/settings", "/dashboard"):
            window.opened(browser, f"{url}{path}")
            google = browser.find_element(By.XPATH, BADGE)
            assert google.text == "not checked yet", path


@pytest.fixture
def failing(settings):
    """A webhook whose only delivery failed."""
    with Stores(settings) as stores:
        with stores.database.writing() as session:
            events = (webhook_events.WebhookEvent.CONNECTION_EXPIRED,)
            row, _ = webhooks.create(
                session, stores.keyring, url="https://example.com/fails", events=events, organization_id=None
            )
            number = row.id
        yield stores, number
        with stores.database.writing() as session:
            webhooks.remove(session, number)


def test_webhook_with_only_failed_deliveries_is_failing(failing, new_user, sandbox, page):
    stores, number = failing
    user = new_user(sandbox.account("google", ADA))
    fail_a_delivery(stores, number, user)

    for path in ("/dashboard/webhooks", f"/dashboard/webhooks/{number}"):
        assert "failing" in page(path).text(), path
    assert "https://example.com/fails" in page("/dashboard").text("section[aria-labelledby=attention]")


@pytest.mark.parametrize("path", ["/users", "/organizations"])
def test_page_past_the_end_differs_from_an_empty_list(page, new_user, new_organization, path):
    new_user(), new_organization()

    visitor = page(f"/dashboard{path}?after=zzzzzz")

    assert "No more " in visitor.text()
    assert " yet" not in visitor.text(".empty")


def test_unknown_users_are_named_in_the_explorer(page, browser, new_user, sandbox, unique):
    known, unknown = new_user(sandbox.account("google", ADA)), unique("nobody")

    visitor = page(f"/dashboard/explorer?users={known},{unknown}&{DAY}")
    visitor.until(lambda _: visitor.text("#picture"))

    assert any(unknown in each and "no such user" in each for each in visitor.notices)
    drawn = browser.execute_script("return document.querySelector('svg.day').textContent")
    assert "There is no such user" in drawn


# Pairs of labels of slots in the picture that lie over each other.
OVER_EACH_OTHER = """
const labels = [...document.querySelectorAll("svg.day text.slot-time")];
const boxes = labels.map((each) => each.getBoundingClientRect());
const over = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
  && one.top < other.bottom - 1 && other.top < one.bottom - 1;
return boxes.flatMap((one, index) => boxes.slice(index + 1).filter((other) => over(one, other))).length;
"""


def test_labels_of_overlapping_slots_do_not_lie_over_each_other(page, browser, new_user, sandbox):
    user = new_user(sandbox.account("google", ADA))

    visitor = page(f"/dashboard/explorer?users={user}&{DAY}&slotDuration=60&slotStep=15")
    visitor.until(lambda _: visitor.text("#picture"))

    assert browser.find_elements(By.CSS_SELECTOR, "svg.day text.slot-time")
    assert browser.execute_script(OVER_EACH_OTHER) == 0


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


def test_there_is_a_favicon(web, page, browser):
    page("/dashboard")

    assert requests.get(f"{web}/favicon.ico", timeout=10).status_code == 200
    icon = browser.find_element(By.CSS_SELECTOR, "link[rel=icon]").get_attribute("href")
    assert requests.get(icon, timeout=10).status_code == 200


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

"""A user connects an account in a browser, through the sandbox's consent page."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from tests.app.days import DAY, PROVIDERS, meeting, periods
from tests.browser import window

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
ADA = "ada@example.com"


@pytest.fixture
def open_link(web, api, browser):
    """Request a link by the API and open it in the browser."""

    def opened(user, provider, **options):
        answer = requests.post(
            f"{web}/v1/users/{user}/oauth/{provider}/authorize",
            json=options,
            headers={"Authorization": f"Bearer {api.key}"},
            timeout=10,
        )
        assert answer.status_code == 200, answer.text
        browser.get(answer.json()["data"]["link"])
        assert "Allow sandbox to use your" in browser.find_element(By.TAG_NAME, "h1").text

    return opened


def press(browser, decision):
    browser.find_element(By.CSS_SELECTOR, f"button[value={decision}]").click()


def arrived(browser, web):
    """Wait for the service's answer; returns the text of the page."""
    window.wait(browser, lambda each: each.current_url.startswith(web))
    return browser.find_element(By.TAG_NAME, "main").text


def complaints(browser):
    """The browser's log of the pages, such as violations of the Content-Security-Policy."""
    return [entry["message"] for entry in browser.get_log("browser") if "favicon" not in entry["message"]]


def connection(api, user, provider):
    return api.get(f"/users/{user}/oauth/{provider}").json["data"]


@BOTH
def test_from_a_link_to_a_connection_that_is_read(sandbox, web, api, browser, open_link, new_user, provider):
    sandbox.account(provider, "eve@example.com")
    sandbox.account(provider, ADA, events=[meeting("09:00", "10:00")])
    user = new_user()
    open_link(user, provider)

    browser.find_element(By.CSS_SELECTOR, f"input[value='{ADA}']").click()
    press(browser, "allow")

    outcome = arrived(browser, web)
    assert "Connected" in outcome
    assert ADA in outcome
    assert complaints(browser) == []
    made = connection(api, user, provider)
    assert (made["alive"], made["email"]) == (True, ADA)
    assert periods(api.get(f"/users/{user}/calendar/busy", **DAY)) == [("09:00", "10:00")]


@BOTH
def test_by_keyboard_alone_with_an_account_that_is_new(
    web, sandbox, api, browser, open_link, new_user, provider
):
    user = new_user()
    open_link(user, provider)
    keys = ActionChains(browser)

    # Without accounts, the first field is for a new address.
    keys.send_keys(Keys.TAB, "new@example.com").perform()
    assert browser.switch_to.active_element.get_attribute("name") == "newcomer"
    while browser.switch_to.active_element.get_attribute("value") != "allow":
        assert browser.switch_to.active_element.tag_name == "input"
        ActionChains(browser).send_keys(Keys.TAB).perform()
    ActionChains(browser).send_keys(Keys.ENTER).perform()

    assert "new@example.com is connected" in arrived(browser, web)
    assert connection(api, user, provider)["alive"]


@BOTH
def test_denied_consent_connects_nothing(sandbox, web, api, browser, open_link, new_user, provider):
    sandbox.account(provider, ADA)
    user = new_user()
    open_link(user, provider)

    press(browser, "deny")

    outcome = arrived(browser, web)
    assert "Not connected" in outcome
    assert "Access was not granted." in outcome
    (complaint,) = complaints(browser)
    assert "status of 400" in complaint
    assert api.get(f"/users/{user}/oauth").json["data"] == []


@pytest.mark.parametrize(
    ("provider", "unticked", "kept"),
    [
        ("google", "https://www.googleapis.com/auth/calendar.calendarlist.readonly", "calendar.freebusy"),
        ("microsoft", "MailboxSettings.Read", "Calendars.ReadBasic"),
    ],
)
def test_without_one_scope_the_others_are_used(
    sandbox, web, api, browser, open_link, new_user, provider, unticked, kept
):
    sandbox.account(provider, ADA, events=[meeting("09:00", "10:00")])
    user = new_user()
    open_link(user, provider, scope="free-busy")

    browser.find_element(By.CSS_SELECTOR, f"input[value='{unticked}']").click()
    press(browser, "allow")

    assert "Free and busy times only" in arrived(browser, web)
    scope = connection(api, user, provider)["scope"]
    assert any(each.endswith(kept) for each in scope)
    assert not any(each.endswith(unticked) for each in scope)
    main = api.get(f"/users/{user}/calendar/busy", **DAY, primaryOnly="true")
    assert periods(main) == [("09:00", "10:00")]


def test_the_browser_ends_at_the_return_url(sandbox, web, browser, open_link, new_user):
    sandbox.account("google", ADA)
    open_link(new_user(), "google", returnUrl=f"{web}/healthz")

    press(browser, "allow")

    window.wait(browser, lambda each: "/healthz" in each.current_url)
    query = parse_qs(urlsplit(browser.current_url).query)
    assert query == {"provider": ["google"], "connected": ["true"]}


def test_reloaded_result_page_mentions_a_possible_success(sandbox, web, browser, open_link, new_user):
    sandbox.account("google", ADA)
    open_link(new_user(), "google")
    press(browser, "allow")
    arrived(browser, web)

    browser.refresh()

    assert "If you have just connected, all is well" in arrived(browser, web)

"""A walk from a new webhook to its deliveries and to the audit log."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By

from tests.app.days import DAY
from tests.browser import window

pytestmark = pytest.mark.usefixtures("no_webhook_endpoints")


@pytest.fixture
def end_a_grant(api, sandbox, new_user):
    """Revoke a user's grant at the provider, and have the service notice it; returns the user."""

    def ended():
        user = new_user(sandbox.account("google", "ada@example.com"), name="ada")
        sandbox.revoke("ada@example.com")
        api.get(f"/users/{user}/calendar/busy", **DAY)
        return user

    return ended


def test_webhook_walk_from_creation_to_replay_is_audited(
    web, browser, sign_in, visitor, receiver, end_a_grant, administrator
):
    sign_in()
    window.opened(browser, f"{web}/dashboard/webhooks")
    visitor.use("Create a webhook").at("Create a webhook").write("URL", receiver.url)
    visitor.use("Create the webhook").at("Your new webhook")
    secret = visitor.text("#secret")
    visitor.use("Done \N{EN DASH} I've saved the secret").at(receiver.url)
    assert secret not in browser.page_source
    assert "No deliveries yet" in visitor.text()

    user = end_a_grant()
    reloaded_until(visitor, browser, "Delivered 1")
    assert f"connection.expired of {user}" in visitor.text(".deliveries")
    again = browser.find_element(By.CSS_SELECTOR, ".deliveries button").accessible_name
    assert again.startswith(f"Send again: connection.expired of {user}, ")
    visitor.use(again).sees_notice("It is being sent again. Reload this page in a moment to see the result.")
    # A replay starts its count of attempts at zero.
    visitor.until(lambda _: len(receiver.received) == 2)
    reloaded_until(visitor, browser, "Delivered 1")

    first, second = receiver.received
    assert (first.id, first.body) == (second.id, second.body)
    assert first.verified(secret) == second.verified(secret)
    assert first.verified(secret)["data"] == {"userId": user, "provider": "google"}
    endpoint = browser.current_url.rpartition("/")[2]
    visitor.use("Audit log").at("Audit log").write("Search the audit log", endpoint)
    visitor.use("Search")
    visitor.until(lambda _: visitor.text("#entries").startswith("Matching"))
    rows = browser.find_elements(By.CSS_SELECTOR, "tbody tr")
    # The first line of a target; the lines below are the changes.
    entries = [
        [each.text.partition("\n")[0] for each in row.find_elements(By.CSS_SELECTOR, "td:not(.end)")]
        for row in rows
    ]
    who = f"administrator {administrator.name}"
    assert entries == [
        [who, "Replay delivery", f"{endpoint}/{first.id}"],
        [who, "Create webhook", endpoint],
    ]
    assert window.complaints(browser) == []


def reloaded_until(visitor, browser, text):
    """Reload the page until it shows the text, as the page advises."""

    def says(_):
        browser.refresh()
        return text in " ".join(visitor.text().split())

    visitor.until(says)

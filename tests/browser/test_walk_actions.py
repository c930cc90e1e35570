"""Actions of the dashboard by keyboard alone; each walk checks that the action was done."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By

from store.sql.queries import users, webhooks
from tests.browser import window
from tests.browser.keyboard import Keyboard

PASSWORD = "nine patient calendars"
HOOK = "https://hooks.example.com/by-key"


@pytest.fixture
def keys(keys, sign_in):
    sign_in()
    return keys


@pytest.fixture
def endpoint(stores, no_webhook_endpoints):
    with stores.database.writing() as session:
        row, _ = webhooks.create(
            session,
            stores.keyring,
            url=HOOK,
            events=["calendar.changed", "hold.created"],
            organization_id=None,
        )
        return row.id


def dialog(browser):
    return browser.find_elements(By.CSS_SELECTOR, "dialog[open]")


def stored(stores, endpoint):
    with stores.database.reading() as session:
        return webhooks.find(session, endpoint, organization_id=None)


def enter(browser, url, path):
    """Sign in as ``ada``, and go to a page."""
    window.resize(browser, 1440)
    window.opened(browser, f"{url}/dashboard/sign-in?after={path}")
    keys = Keyboard(browser).at("Sign in")
    return keys.write("Name", "ada").write("Password", PASSWORD).use("Sign in")


def exists(stores, user):
    with stores.database.reading() as session:
        return users.find(session, user, organization_id=None) is not None


def test_webhook_is_edited_paused_tested_rotated_and_deleted(web, browser, keys, stores, endpoint):
    window.opened(browser, f"{web}/dashboard/webhooks/{endpoint}")
    keys.use("Edit").at("Edit the webhook").choose("hold.expired").use("Save")
    keys.at(HOOK).sees_notice("The webhook is changed.")
    assert "hold.expired" in stored(stores, endpoint).events

    keys.use("Pause").sees_notice("The webhook is paused. Its deliveries wait.")
    keys.use("Resume").sees_notice("The webhook is enabled. Pending deliveries are being sent.")
    keys.use("Send a test event").until(lambda _: "A test event is being sent." in " ".join(keys.notices))

    before = stored(stores, endpoint).sealed_secret
    keys.to("Replace the secret").enter().use("Make a new secret")
    keys.until(lambda each: each.find_elements(By.ID, "secret"))
    assert stored(stores, endpoint).sealed_secret != before

    window.opened(browser, f"{web}/dashboard/webhooks/{endpoint}")
    keys.use("Delete the webhook").until(dialog).use("Delete").at("Webhooks")
    assert stored(stores, endpoint) is None


def test_users_are_selected_and_deleted_together(web, browser, keys, stores, new_user, unique):
    made = [new_user(name=unique("together")) for _ in range(2)]
    window.opened(browser, f"{web}/dashboard/users?q=together")
    for each in made:
        keys.choose(f"Select {each}")
    keys.use("Delete selected …").at("Delete 2 users?")
    phrase = browser.find_element(By.CSS_SELECTOR, "label[for=f-confirm]").text.split("“")[1].split("”")[0]
    keys.type(phrase).use("Delete 2 users").at("Users")
    assert not any(exists(stores, each) for each in made)


def test_an_organization_is_created_filled_renamed_and_deleted(
    web, browser, keys, new_user, new_organization, unique
):
    new_organization()
    slug, renamed, member = unique("by-key"), unique("by-key-renamed"), new_user()
    window.opened(browser, f"{web}/dashboard/organizations")
    keys.to("Create an organization").enter().write("Slug optional", slug).use("Create").at(slug)
    keys.to("Users", near="Add members").type(member).use("Add").until(lambda _: member in keys.text("tbody"))
    keys.use("Rename or delete").write("Slug", renamed).use("Save").sees_notice(
        "The organization is changed."
    )

    keys.use("Rename or delete").use("Delete the organization").until(dialog)
    keys.type(renamed).use("Delete").at("Organizations")
    keys.sees_notice(f"The organization {renamed} is deleted. Its users are still there.")

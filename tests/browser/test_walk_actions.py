"""Every other action of the dashboard by keyboard alone; each walk checks that the action was done."""

from __future__ import annotations

import json

import pytest
import requests
from selenium.webdriver.common.by import By

from app.cli import administrator_setup
from app.dashboard.sign_in import second_factor
from store.sql.models import Role
from store.sql.queries import (
    administrators,
    connection_rows,
    dashboard_sessions,
    provider_clients,
    second_factors,
    users,
    webhooks,
)
from tests.browser import window
from tests.browser.conftest import fail_a_delivery, installed
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


def test_user_is_registered_renamed_invited_and_uninvited(web, browser, keys, stores, new_user, unique):
    # The form is open while there is no user.
    new_user()
    name, renamed = unique("by-key"), unique("by-key-renamed")
    window.opened(browser, f"{web}/dashboard/users")
    keys.to("Register a user").enter().write("Identifier", name).use("Register").at(name)
    keys.write("Identifier", renamed).use("Rename").at(renamed)
    assert (exists(stores, name), exists(stores, renamed)) == (False, True)

    keys.use("Invite by a link").at("Invite users").use("Make the links").at(f"The link for {renamed}")
    window.opened(browser, f"{web}/dashboard/invitations?q={renamed}")
    keys.use(f"Actions for {renamed}").use("Withdraw", near=renamed).until(dialog).use("Withdraw")
    keys.sees_notice(f"The invitation of {renamed} is withdrawn.")


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
    keys.write("Slug", renamed).use("Save").sees_notice("The organization is changed.")

    keys.use("Delete the organization").until(dialog)
    keys.type(renamed).use("Delete").at("Organizations")
    keys.sees_notice(f"The organization {renamed} is deleted. Its users are still there.")


def test_failed_deliveries_are_sent_again(
    web, browser, keys, stores, new_user, sandbox, no_webhook_endpoints
):
    user = new_user(sandbox.account("google", "ada@example.com"))
    with stores.database.writing() as session:
        row, _ = webhooks.create(
            session, stores.keyring, url=HOOK, events=["connection.expired"], organization_id=None
        )
        endpoint = row.id
    fail_a_delivery(stores, endpoint, user)
    window.opened(browser, f"{web}/dashboard/webhooks/{endpoint}")

    keys.use("Send all 1 failed again")

    keys.until(lambda _: "1 delivery is being sent again." in " ".join(keys.notices))


def test_an_account_is_disconnected(web, browser, keys, stores, new_user, sandbox):
    user = new_user(sandbox.account("google", "ada@example.com"))
    window.opened(browser, f"{web}/dashboard/users/{user}")

    keys.use("Disconnect Google").until(dialog).use("Disconnect").until(lambda _: keys.notices)

    assert keys.notices[0].startswith("Google is disconnected: ")
    with stores.database.reading() as session:
        assert connection_rows.of_user(session, user, organization_id=None) == []


def test_a_grant_is_removed(web, browser, keys, stores, sandbox, new_organization):
    slug = new_organization()
    domain = sandbox.domain("google", "acme.example", ["ada@acme.example"])
    window.opened(browser, f"{web}/dashboard/organizations/{slug}/grants/google")
    keys.at("Grant of Google").write("Subject", domain.subject)
    keys.write("Or its content", json.dumps(domain.service_account_key)).use("Test and store").at(slug)

    keys.use("Remove the grant of Google").until(dialog).use("Remove")

    # The page before had a notice too.
    keys.until(lambda _: " ".join(keys.notices).startswith("The grant of Google is removed"))
    assert "Enter a grant of Google" in keys.text("section[aria-labelledby=grants]")


def test_a_registration_is_saved_and_removed(environment, worker, browser, tmp_path):
    bare = {name: value for name, value in environment.items() if "_CLIENT_" not in name}
    with installed(bare, tmp_path) as (url, stores):
        administrator_setup.create(stores, "ada", PASSWORD)
        keys = enter(browser, url, "/dashboard/settings").at("Providers")
        # The forms of providers without a registration are open; the first is that of Google.
        keys.write("Client ID", "ours").write("Client secret", "planted").use("Test and save")
        keys.until(lambda _: " ".join(keys.notices).startswith("Saved."))
        with stores.database.reading() as session:
            assert list(provider_clients.load(session)) == ["google"]

        keys.use("Remove the registration").until(dialog).use("Remove")
        keys.sees_notice("The registration is removed. Connected accounts work until they need it.")
        with stores.database.reading() as session:
            assert not provider_clients.load(session)


def test_a_registration_is_checked(web, browser, keys):
    window.opened(browser, f"{web}/dashboard/settings")
    keys.use("Check now").until(lambda _: keys.notices)


@pytest.fixture
def people(new_web, browser):
    """A signed-in administrator ``ada``, with another person ``bob`` who has a browser."""
    url, stores = new_web
    administrator_setup.create(stores, "ada", PASSWORD)
    with stores.database.writing() as session:
        bob = administrators.create(session, name="bob", password_hash="nobody's", role=Role.VIEWER)
        dashboard_sessions.begin(session, bob.id, address="192.0.2.1", agent="Firefox")
    return url, stores, enter(browser, url, "/dashboard/account").at("Your account")


def test_people_are_invited_changed_signed_out_and_removed(people, browser):
    _, stores, keys = people
    keys.pick("Role", "Operator").use("Make an invitation link").until(lambda _: keys.text("#link"))
    link = browser.find_element(By.CSS_SELECTOR, "#link").text
    assert requests.get(link, timeout=10).status_code == 200

    keys.use("Manage bob").at("bob").pick("Role", "Operator").use("Change the role")
    keys.until(lambda _: "Operator since" in keys.text())
    keys.use("Sign out", near="Firefox").until(dialog).use("Sign out", near="Sign that browser out?")
    keys.until(lambda _: "No browser is signed in" in keys.text())
    keys.use("Remove").until(dialog).use("Remove").at("Your account")
    with stores.database.reading() as session:
        assert administrators.find(session, "bob") is None


def test_a_password_is_changed_and_another_browser_signed_out(people, browser):
    url, stores, keys = people
    with stores.database.writing() as session:
        ada = administrators.find(session, "ada")
        dashboard_sessions.begin(session, ada.id, address="192.0.2.2", agent="Opera")
    window.opened(browser, f"{url}/dashboard/account")
    keys.use("Sign out", near="192.0.2.2").until(dialog).use("Sign out", near="Sign that browser out?")
    keys.sees_notice("That browser is signed out.")

    new = "eleven hasty calendars"
    keys.write("Current password", PASSWORD).write("New password", new).write("New password again", new)
    keys.use("Change the password")
    keys.until(lambda _: "Your password is changed." in " ".join(keys.notices))


@pytest.fixture
def with_second_factors(people):
    """The same people, who both have a second factor."""
    _, stores, _ = people
    with stores.database.writing() as session:
        for name in ("ada", "bob"):
            person = administrators.find(session, name)
            second_factors.store(session, stores.keyring, person.id, second_factors.new_secret(), step=1)
    return people


def has_second_factor(stores, name):
    with stores.database.reading() as session:
        return administrators.find(session, name).sealed_totp_secret is not None


def test_recovery_codes_are_replaced_and_the_second_factor_turned_off(with_second_factors, browser):
    url, stores, keys = with_second_factors
    window.opened(browser, f"{url}/dashboard/account/second-factor")
    keys.to("Your password", near="New codes replace them").type(PASSWORD)
    keys.use("Make new recovery codes").at("Recovery codes")
    assert len(browser.find_element(By.ID, "recovery-codes").text.split()) == 10

    window.opened(browser, f"{url}/dashboard/account/second-factor")
    keys.to("Your password", near="To use another app").type(PASSWORD)
    keys.use("Turn off two-factor sign-in").at("Your account")
    keys.sees_notice(second_factor.TURNED_OFF)
    assert not has_second_factor(stores, "ada")


def test_the_second_factor_of_another_person_is_reset(with_second_factors):
    _, stores, keys = with_second_factors
    keys.use("Manage bob").at("bob").use("Reset two-factor sign-in").until(dialog).use("Reset")

    keys.sees_notice(
        "bob is signed out, and signs in with the password alone until a new second factor is set up. "
        "Their open links and invitations are withdrawn."
    )
    assert (has_second_factor(stores, "ada"), has_second_factor(stores, "bob")) == (True, False)

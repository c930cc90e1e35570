"""Walks: creating the first key of an installation, and revoking a key."""

from __future__ import annotations

import pytest
import requests
from selenium.webdriver.common.by import By

from app.cli import administrator_setup
from store.security.crypto import visible_part
from store.sql.queries import api_keys
from tests.browser import window

NAME, PASSWORD = "Zoë 📅", "nine patient calendars"


@pytest.fixture
def clipboard(browser):
    """Allow a page to use the clipboard; returns a function that reads it."""

    def allow(origin):
        for name in ("clipboard-read", "clipboard-write"):
            permission = {"permission": {"name": name}, "setting": "granted", "origin": origin}
            browser.execute_cdp_cmd("Browser.setPermission", permission)
        return lambda: browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")

    yield allow
    browser.execute_cdp_cmd("Browser.resetPermissions", {})


def status(web, key):
    """The status of an API call with the key."""
    headers = {"Authorization": f"Bearer {key}"}
    return requests.get(f"{web}/v1/users", headers=headers, timeout=10).status_code


def test_from_the_first_start_to_a_call_with_the_first_key(new_web, browser, visitor, clipboard):
    url, stores = new_web
    copied = clipboard(url)
    window.opened(browser, administrator_setup.first_link(stores, url))
    visitor.at("Welcome").write("Name", NAME).write("Password", PASSWORD).write("Password again", PASSWORD)
    visitor.use("Become an administrator").at("Overview").sees_notice(f"Welcome, {NAME}.")

    visitor.use("API keys").at("API keys")
    assert "No active keys" in visitor.text()
    visitor.use("Create a key").at("Create an API key")
    visitor.write("Name", "night train").choose("Read only").choose("30 days")
    visitor.use("Create the key").at("Your new API key").use("Copy the key")
    key = visitor.text("#key")
    visitor.until(lambda _: "Copied" in visitor.text("main [data-copy=key]"))
    assert copied() == key
    assert status(url, key) == 200

    visitor.use("Done \N{EN DASH} I've saved the key").at("API keys")
    assert "night train" in visitor.text("tbody")
    assert key not in browser.page_source
    browser.back()
    assert key not in browser.page_source
    assert window.complaints(browser) == []


def test_a_key_is_revoked_when_that_was_meant(web, browser, sign_in, visitor, stores, unique):
    name = unique("<b>night</b> train")
    with stores.database.writing() as session:
        key, other = (api_keys.create(session, prefix="alm_", name=each) for each in (name, unique("other")))
    sign_in()
    window.opened(browser, f"{web}/dashboard/keys")

    visitor.use(f"Actions for {name}").use("Revoke", near=name)
    visible = visible_part(key, "alm_")
    assert visitor.text("dialog").startswith(f"Revoke {name} ({visible}…)? Requests with it")
    visitor.use("Cancel").until(lambda each: not each.find_elements(By.TAG_NAME, "dialog"))
    assert status(web, key) == 200
    visitor.use(f"Actions for {name}").use("Revoke", near=name).use("Revoke", near="cannot be undone")
    visitor.sees_notice(f"The key {visible}… is revoked. Requests with it are rejected.")

    assert (status(web, key), status(web, other)) == (401, 200)
    assert name not in visitor.text()
    visitor.use("Revoked and expired").until(lambda _: name in visitor.text("tbody"))
    assert window.complaints(browser) == []

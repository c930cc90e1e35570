"""A walk: creating the first key of an installation."""

from __future__ import annotations

import pytest
import requests

from app.cli import administrator_setup
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

"""A walk through two-factor sign-in by keyboard: set up, sign out, and in again with a recovery code."""

from __future__ import annotations

from base64 import b32decode

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from app.cli import administrator_setup
from store.sql.models import now
from tests import services
from tests.browser import window

PASSWORD = "nine patient calendars"


def test_second_factor_is_set_up_and_required(new_web, browser, keys):
    services.axe().require()
    url, stores = new_web
    assert administrator_setup.create(stores, "ada", PASSWORD)
    window.opened(browser, f"{url}/dashboard/sign-in?after=/dashboard/account/second-factor")
    keys.at("Sign in").to("Name").type("ada").to("Password").type(PASSWORD).press(Keys.ENTER)
    keys.at("Two-factor sign-in")

    key = browser.find_element(By.ID, "key").text.replace(" ", "")
    code = TOTP(b32decode(key), 6, SHA1(), 30).generate(int(now().timestamp())).decode()
    keys.to("Code").type(code).to("Your password").type(PASSWORD).press(Keys.ENTER)
    keys.at("Recovery codes")
    assert window.findings_everywhere(browser) == []
    window.resize(browser, 1440)
    recovery = browser.find_element(By.ID, "recovery-codes").text.split()[0]

    keys.to("Sign out").enter().at("Sign in")
    keys.to("Name").type("ada").to("Password").type(PASSWORD).press(Keys.ENTER)
    # The code that turned it on was used.
    keys.at("Two-factor sign-in")
    assert window.findings_everywhere(browser) == []
    window.resize(browser, 1440)
    keys.to("Code").type(code).press(Keys.ENTER)
    keys.until(lambda each: "was used before" in each.find_element(By.CSS_SELECTOR, ".notice").text)
    keys.to("Code").type(recovery).press(Keys.ENTER)
    keys.at("Overview")
    assert "9 are left" in browser.find_element(By.CSS_SELECTOR, ".notice").text

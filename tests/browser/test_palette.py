"""The command palette, by keyboard alone."""

from __future__ import annotations

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from tests import services
from tests.browser import window
from tests.browser.keyboard import Keyboard


@pytest.fixture
def keys(browser, sign_in, web):
    window.resize(browser, 1440)
    sign_in()
    window.opened(browser, f"{web}/dashboard/account")
    return Keyboard(browser)


def options(browser):
    return browser.find_elements(By.CSS_SELECTOR, "#palette [role=option]")


def chosen(browser):
    return [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#palette [aria-selected=true]")]


@pytest.mark.parametrize("opening", ["/", "Ctrl-K"])
def test_the_palette_leads_to_a_page(browser, keys, opening):
    if opening == "/":
        keys.press("/")
    else:
        ActionChains(browser).key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()
    keys.until(lambda each: len(options(each)) > 5)
    keys.type("create key").until(lambda each: len(options(each)) == 1)
    keys.until(lambda each: chosen(each) and chosen(each)[0].startswith("Create an API key"))
    keys.press(Keys.ENTER).at("Create an API key")


def test_the_palette_leads_to_a_user(browser, keys, content):
    keys.to("Search pages, users and organizations").enter().until(lambda each: len(options(each)) > 5)
    keys.type("odd.deleg").until(lambda each: chosen(each) and "odd.delegated" in chosen(each)[0])
    keys.press(Keys.ENTER).at("odd.delegated")


def test_escape_leaves_the_palette_where_it_was_opened(browser, keys):
    services.axe().require()
    keys.to("Search pages, users and organizations").enter().until(lambda each: len(options(each)) > 5)
    keys.press(Keys.ARROW_DOWN).press(Keys.ARROW_DOWN).until(
        lambda each: chosen(each)[0].startswith("Organizations")
    )
    assert window.findings(browser, window.RULES) == []
    keys.press(Keys.ESCAPE).until(lambda each: not each.find_elements(By.TAG_NAME, "dialog"))
    assert keys.name == "Search pages, users and organizations"

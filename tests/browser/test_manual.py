"""The documentation pages work under their content security policy, by day and by night, and on phones."""

from __future__ import annotations

import re

import pytest
from selenium.webdriver.common.by import By

from tests import services
from tests.browser import window
from tests.docs.site import build

PAGES = ("", "start/quickstart/", "reference/errors/", "reference/settings/")


@pytest.fixture(scope="module", autouse=True)
def built():
    build()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_and_is_accessible(browser, web, name):
    services.axe().require()
    window.resize(browser, window.SIZES[0])
    window.opened(browser, f"{web}/docs/{name}")

    assert window.complaints(browser) == []
    for size in window.SIZES:
        window.resize(browser, size)
        assert window.width(browser) <= size, window.overflowing(browser)
    # The names and roles of the menu's parts are the generator's: axe-core calls them moderate and minor.
    findings = [
        each for each in window.findings_everywhere(browser) if re.search(r": (serious|critical) ", each)
    ]
    assert not findings, "\n   ".join(["", *findings])


def test_the_search_finds_a_setting(browser, web):
    window.resize(browser, window.SIZES[0])
    window.opened(browser, f"{web}/docs/")

    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    field = window.wait(browser, lambda each: each.switch_to.active_element)
    field.send_keys("ALMANAC_BUSY_TTL")

    window.wait(browser, lambda each: "reference/settings" in each.page_source)
    assert window.complaints(browser) == []


def test_an_example_has_a_button_that_copies_it(browser, web):
    window.opened(browser, f"{web}/docs/start/quickstart/")

    window.wait(
        browser,
        lambda each: each.find_elements(By.CSS_SELECTOR, "pre button, .md-code__nav button, .md-clipboard"),
    )

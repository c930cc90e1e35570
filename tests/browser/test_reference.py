"""The page of the OpenAPI document, shown by Swagger UI."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By

from tests import services
from tests.browser import window

pytestmark = pytest.mark.timeout(300)

OPERATION = "/v1/docs#/users/createUser"
PAPER = "return getComputedStyle(document.body).backgroundColor"
# Bytes that a first visit may transfer.
MOST = 600_000


def shown(browser, url: str) -> None:
    """Open the page, and wait until Swagger UI has rendered the document."""
    # Another fragment alone would load nothing.
    browser.get("about:blank")
    browser.get(url)
    window.wait(browser, lambda each: "Register a user" in each.page_source, seconds=30)


def complaints(browser) -> list[str]:
    """The messages of the browser; Swagger UI warns of its own handling of addresses."""
    return [each for each in window.complaints(browser) if "escaping deep link whitespace" not in each]


def brightness(browser) -> int:
    channels = browser.execute_script(PAPER).strip("rgba()").split(",")
    return sum(int(each) for each in channels[:3]) // 3


@pytest.mark.parametrize("size", window.SIZES)
def test_the_page_fits_and_has_the_colours_of_the_system(browser, web, size):
    for theme in window.THEMES:
        window.theme(browser, theme)
        window.resize(browser, size)
        shown(browser, web + OPERATION)

        assert window.width(browser) <= size, window.overflowing(browser)
        # The colours change in a moment: an open page follows the system.
        is_light = theme == "light"
        window.wait(browser, lambda each, light=is_light: (brightness(each) > 128) == light)
        assert complaints(browser) == []


@pytest.mark.parametrize("theme", window.THEMES)
@pytest.mark.parametrize("size", window.SIZES)
def test_an_open_operation_has_no_serious_fault_of_accessibility(browser, web, size, theme):
    services.axe().require()
    window.theme(browser, theme)
    window.resize(browser, size)
    shown(browser, web + OPERATION)
    window.wait(browser, lambda each: each.find_elements(By.CSS_SELECTOR, ".opblock.is-open .opblock-body"))
    found = window.findings(browser, window.RULES)
    assert [each for each in found if each.startswith(("critical", "serious"))] == []


def test_the_operation_of_the_address_is_open_and_can_be_tried(browser, web):
    window.resize(browser, window.SIZES[0])
    shown(browser, web + OPERATION)
    opened = window.wait(browser, lambda each: each.find_elements(By.CSS_SELECTOR, ".opblock.is-open"))
    assert [each.get_attribute("id") for each in opened] == ["operations-users-createUser"]
    opened[0].find_element(By.CSS_SELECTOR, "button.try-out__btn").click()
    window.wait(browser, lambda each: each.find_elements(By.CSS_SELECTOR, ".opblock.is-open button.execute"))


def test_a_first_visit_transfers_less_than_600_kilobytes(browser, web):
    browser.execute_cdp_cmd("Network.clearBrowserCache", {})
    shown(browser, web + OPERATION)
    sizes = browser.execute_script(
        """
        const parts = performance.getEntriesByType("resource");
        return [...performance.getEntriesByType("navigation"), ...parts].map((each) => each.transferSize)
        """
    )
    assert len(sizes) > 6
    assert sum(sizes) < MOST
    # Nothing came from the cache: a part of the cache has no size.
    assert max(sizes) > MOST // 2


def test_the_colours_of_the_other_pages_count_here_too(browser, web):
    window.resize(browser, window.SIZES[0])
    window.theme(browser, "light")
    shown(browser, web + OPERATION)
    switch = browser.find_element(By.CSS_SELECTOR, "[data-theme-switch]")
    while browser.execute_script("return document.documentElement.dataset.theme") != "dark":
        switch.click()
    try:
        window.wait(browser, lambda each: brightness(each) < 128)
        shown(browser, web + OPERATION)
        assert brightness(browser) < 128
    finally:
        browser.execute_script("localStorage.removeItem('theme')")


def test_the_way_back_leads_to_the_documents(browser, web):
    window.resize(browser, window.SIZES[1])
    shown(browser, web + OPERATION)

    browser.find_element(By.CSS_SELECTOR, "header a[href='/docs/']:not(.brand)").click()

    window.wait(browser, lambda each: each.current_url.startswith(f"{web}/docs/"))


def test_reference_page_loads_nothing_from_other_hosts(browser, web):
    shown(browser, web + OPERATION)

    asked = browser.execute_script("return performance.getEntriesByType('resource').map((each) => each.name)")

    assert len(asked) > 4
    assert [each for each in asked if not each.startswith((f"{web}/", "data:", "blob:"))] == []

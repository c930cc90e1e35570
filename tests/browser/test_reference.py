"""The page of the OpenAPI document, shown by Scalar."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser import window

OPERATION = "/v1/docs#tag/users/POST/v1/users"
PAPER = "return getComputedStyle(document.querySelector('#reference .scalar-app')).backgroundColor"


def shown(browser, url: str) -> None:
    """Open the page, and wait until Scalar has rendered the document."""
    browser.get(url)
    WebDriverWait(browser, 30).until(lambda each: "Register a user" in each.page_source)


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
        WebDriverWait(browser, 5).until(lambda each, light=is_light: (brightness(each) > 128) == light)
        assert [each for each in window.complaints(browser) if "@scalar/api-reference@" not in each] == []


def test_the_colours_of_the_other_pages_count_here_too(browser, web):
    window.resize(browser, window.SIZES[0])
    window.theme(browser, "light")
    shown(browser, web + OPERATION)
    switch = browser.find_element(By.CSS_SELECTOR, "[data-theme-switch]")
    while browser.execute_script("return document.documentElement.dataset.theme") != "dark":
        switch.click()
    try:
        WebDriverWait(browser, 5).until(lambda each: brightness(each) < 128)
        shown(browser, web + OPERATION)
        assert brightness(browser) < 128
    finally:
        browser.execute_script("localStorage.removeItem('theme')")


def test_the_way_back_leads_to_the_documents(browser, web):
    window.resize(browser, window.SIZES[1])
    shown(browser, web + OPERATION)

    browser.find_element(By.CSS_SELECTOR, "header a[href='/docs/']:not(.brand)").click()

    WebDriverWait(browser, 10).until(lambda each: each.current_url.startswith(f"{web}/docs/"))


def test_reference_page_loads_nothing_from_other_hosts(browser, web):
    shown(browser, web + OPERATION)

    asked = browser.execute_script("return performance.getEntriesByType('resource').map((each) => each.name)")

    assert len(asked) > 4
    assert [each for each in asked if not each.startswith((f"{web}/", "data:", "blob:"))] == []

"""Every page of the dashboard with content, in desktop and phone width, with light and dark colours."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By

from tests import services
from tests.browser import window
from tests.browser.keyboard import Keyboard
from tests.browser.pages import DOWNLOAD, PARTS, View, views

VIEWS = list(views())
EVERY_VIEW = pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)


@pytest.fixture
def look(browser, web, content, sign_in):
    """Open a page with all its parts, signed in if the page requires it."""

    def opened(view: View) -> None:
        if view.signed_in:
            sign_in()
        window.resize(browser, window.SIZES[0])
        window.opened(browser, web + view.path(content))
        window.unfold(browser)

    return opened


@EVERY_VIEW
def test_page_has_title_one_heading_and_no_console_errors(browser, look, view):
    look(view)

    assert "/sign-in" not in browser.current_url or view.rule.endpoint == "dashboard.sign_in"
    headings = [each.text for each in browser.find_elements(By.TAG_NAME, "h1")]
    assert len(headings) == 1, headings
    assert headings[0]
    assert browser.title.endswith(" · Almanac")
    assert len(browser.title) > len(" · Almanac")
    expected = [f"the server responded with a status of {view.status}"] * (view.status != 200)
    assert [each for each in window.complaints(browser) if not any(kind in each for kind in expected)] == []


@EVERY_VIEW
def test_a_page_fits_every_width_and_nothing_of_it_is_cut_or_covered(browser, look, view):
    look(view)

    for size in window.WIDTHS:
        window.resize(browser, size)
        assert window.width(browser) <= size, (size, window.overflowing(browser))
        assert window.cut(browser) == [], size
        assert window.unreachable(browser) == [], size


@EVERY_VIEW
def test_a_page_is_accessible(browser, look, view):
    """The rules of axe-core: all with light colours, those on colours with dark ones."""
    services.axe().require()
    look(view)

    found = window.findings_everywhere(browser)

    assert not found, "\n   ".join(["", *found])


@EVERY_VIEW
def test_every_control_of_a_page_is_reached_by_keyboard_and_shows_it(browser, look, view):
    look(view)

    assert Keyboard(browser).everywhere() == []


def test_nothing_is_left_out(app):
    """Only the routes in ``PARTS`` are left out of the tests of pages."""
    looked_at = {view.rule.endpoint.removeprefix("dashboard.") for view in VIEWS if view.rule is not None}
    reached = {
        rule.endpoint.removeprefix("dashboard.")
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("dashboard.") and "GET" in (rule.methods or ())
    }

    assert {"overview", "account", "sign_in", "welcome"} <= looked_at
    downloads = {name for name in reached if name.startswith(DOWNLOAD)}
    assert reached - looked_at - PARTS - downloads == {"static"}

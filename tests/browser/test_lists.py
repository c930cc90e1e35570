"""Lists in a browser: nothing is cut off, menus of rows, typed confirmations, suggestions and selections."""

from __future__ import annotations

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from app.cli import administrator_setup
from tests import services
from tests.browser import window
from tests.browser.content import LONG
from tests.browser.keyboard import Keyboard

ADDRESS = "maximiliane.mustermann-bauer@calendars.long-company-name.example"

# Actions of rows that lie outside the window or are covered by something else.
CUT = """
return [...document.querySelectorAll("main td :is(summary, button)")]
  .filter((each) => each.checkVisibility()).filter((each) => {
    // Not sideways: an action that has to be scrolled to is cut.
    scrollBy(0, each.getBoundingClientRect().top - innerHeight / 2);
    const box = each.getBoundingClientRect();
    const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return box.right > innerWidth || !each.contains(at);
  }).map((each) => each.outerHTML.slice(0, 120));
"""
SCROLLING = """
return [...document.querySelectorAll(".cards-on-phones")]
  .filter((each) => each.scrollWidth > each.clientWidth)
  .map((each) => each.innerText.slice(0, 100));
"""
BROKEN = """
return [...document.querySelectorAll("bdi")].filter((each) => each.innerText.includes("@"))
  .filter((each) => { const range = new Range(); range.selectNodeContents(each);
    return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1; })
  .map((each) => each.innerText);
"""


@pytest.fixture
def keys(keys, sign_in):
    sign_in()
    return keys


@pytest.fixture
def user(settings, new_user, sandbox):
    return new_user(sandbox.account("google", ADDRESS))


def dialogs(browser):
    return browser.find_elements(By.CSS_SELECTOR, "dialog[open]")


@pytest.mark.parametrize("page", ["keys", "webhooks", "users", "organizations", "organizations/{slug}"])
@pytest.mark.parametrize("width", [1440, 1280, 1024, 768, 390])
def test_the_actions_of_rows_are_in_view(web, browser, keys, content, page, width):
    window.resize(browser, width)
    window.opened(browser, f"{web}/dashboard/{page.format(**content)}")

    assert browser.find_elements(By.CSS_SELECTOR, "main td :is(summary, button)")
    assert browser.execute_script(CUT) == []
    assert window.width(browser) <= width
    if width < window.PHONE:
        # Cards need no scrolling to the side.
        assert browser.execute_script(SCROLLING) == []


@pytest.mark.parametrize(("width", "shown"), [(1280, "table-row"), (1000, "table-row"), (800, "grid")])
def test_rows_are_a_table_down_to_900_pixels(web, browser, keys, user, width, shown):
    window.resize(browser, width)
    window.opened(browser, f"{web}/dashboard/users?q={user}")

    row = browser.find_element(By.CSS_SELECTOR, "tbody tr")
    assert browser.execute_script("return getComputedStyle(arguments[0]).display", row) == shown
    assert window.cut(browser) == []


def test_on_paper_there_is_no_menu_and_no_button(web, browser, keys, user):
    window.opened(browser, f"{web}/dashboard/users?q={user}")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        seen = [
            each.text
            for each in browser.find_elements(By.CSS_SELECTOR, "header, main button, nav a")
            if each.is_displayed()
        ]
        assert seen == []
        assert browser.find_element(By.LINK_TEXT, user).is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_notice_keeps_off_the_heading(web, browser, keys):
    window.opened(browser, f"{web}/dashboard/account/second-factor")
    keys.to("Code").type("000000").to("Your password").type("seven quiet calendars").press(Keys.ENTER)
    keys.until(lambda each: each.find_elements(By.CSS_SELECTOR, ".notice.bad"))

    heading, notice = (browser.find_element(By.CSS_SELECTOR, each).rect for each in ("h1", ".notice.bad"))
    assert notice["y"] - (heading["y"] + heading["height"]) >= 8


@pytest.mark.parametrize("width", [1440, 1280, 1024, 768])
def test_addresses_do_not_break_in_the_middle(web, browser, keys, content, user, width):
    window.resize(browser, width)
    for query in (user, "odd"):
        window.opened(browser, f"{web}/dashboard/users?q={query}")
        assert browser.execute_script(BROKEN) == []


def test_a_long_name_of_an_administrator_ends_in_an_ellipsis(new_web, browser):
    url, stores = new_web
    name = LONG + LONG[:40]
    administrator_setup.create(stores, name, "nine patient calendars")
    window.resize(browser, 1440)
    window.opened(browser, f"{url}/dashboard/sign-in")
    keys = Keyboard(browser)
    keys.until(lambda _: keys.focused.get_attribute("name") == "name")
    keys.type(name).to("Password").type("nine patient calendars").to("Sign in").enter().at("Overview")

    shown = browser.find_element(By.CSS_SELECTOR, ".menu .ellipsis")
    text, cut = browser.execute_script(
        "return [arguments[0].getBoundingClientRect().right, document.querySelector('.side').clientWidth]",
        shown,
    )
    assert text <= cut
    assert browser.execute_script("return arguments[0].scrollWidth > arguments[0].clientWidth", shown)
    assert shown.get_attribute("title") == name


def test_a_menu_of_a_row_opens_and_closes(web, browser, keys, user):
    services.axe().require()
    window.opened(browser, f"{web}/dashboard/users?q={user}")
    menu = browser.find_element(By.CSS_SELECTOR, ".row-menu")

    keys.to(f"Actions for {user}").enter().until(lambda _: menu.get_attribute("open"))
    assert window.findings(browser, window.RULES) == []
    keys.to("Find free times").press(Keys.ESCAPE)
    assert (keys.name, menu.get_attribute("open")) == (f"Actions for {user}", None)
    keys.enter().until(lambda _: menu.get_attribute("open"))
    browser.find_element(By.TAG_NAME, "h1").click()
    assert menu.get_attribute("open") is None


def test_selected_members_are_removed_and_restored(web, browser, keys, new_organization, new_user):
    slug = new_organization()
    for _ in range(3):
        new_user(slugs=(slug,))
    window.opened(browser, f"{web}/dashboard/organizations/{slug}")
    button = browser.find_element(By.CSS_SELECTOR, "#bulk button")
    assert not button.is_enabled()
    keys.to("Select all on this page").space().until(lambda _: button.is_enabled())
    assert browser.find_element(By.CSS_SELECTOR, "[data-chosen]").text == "3 selected"
    keys.to("Remove selected").enter().until(dialogs)
    keys.to("Remove").enter()
    keys.until(lambda _: "3 users are no longer members" in keys.text())
    keys.to("Undo").enter()
    keys.until(lambda _: "Undone: 3 are members again." in keys.text())


def test_a_field_suggests_organizations(web, browser, keys, new_organization):
    services.axe().require()
    slug = new_organization()
    window.opened(browser, f"{web}/dashboard/keys/new")

    keys.to("Organization optional").type(slug)
    keys.until(lambda each: each.find_elements(By.CSS_SELECTOR, f"#l-organization [data-value={slug}]"))
    keys.until(lambda _: keys.focused.get_attribute("aria-expanded") == "true")
    assert window.findings(browser, window.RULES) == []
    keys.press(Keys.ARROW_DOWN)
    keys.until(lambda _: keys.focused.get_attribute("aria-activedescendant"))
    chosen = browser.find_element(By.ID, keys.focused.get_attribute("aria-activedescendant"))
    keys.press(Keys.ENTER)
    assert keys.focused.get_attribute("value") == chosen.get_attribute("data-value")
    assert keys.focused.get_attribute("aria-expanded") == "false"

"""Walks through the dashboard from its first start, by keyboard alone."""

from __future__ import annotations

from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from app.cli import administrator_setup
from tests.browser import window

NAME, PASSWORD = "Zoë 📅", "nine patient calendars"


def notices(browser):
    return [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".notice")]


def browsers(browser):
    return browser.find_elements(By.CSS_SELECTOR, "section[aria-labelledby=browsers] tbody tr")


def test_first_administrator_is_created_and_signs_in_again(new_web, browser, keys):
    url, stores = new_web
    link = administrator_setup.first_link(stores, url)
    window.opened(browser, f"{url}/dashboard")
    keys.at("Sign in")
    assert "There is no administrator yet" in notices(browser)[0]

    # The name has the focus already; after a mistake, the error has it.
    window.opened(browser, link)
    keys.at("Welcome").until(lambda _: keys.focused.get_attribute("name") == "name")
    keys.type(NAME)
    keys.to("Password").type(PASSWORD).to("Password again").type(PASSWORD + "x")
    keys.to("Become an administrator").press(Keys.ENTER)
    keys.until(lambda each: notices(each) == ["Please correct the highlighted fields."])
    keys.until(lambda _: keys.focused.get_attribute("role") == "alert")
    keys.to("Password").type(PASSWORD).to("Password again").type(PASSWORD)
    keys.press(Keys.ENTER)
    keys.at("Overview")
    assert notices(browser) == [f"Welcome, {NAME}."]

    keys.to("Sign out").enter().at("Sign in")
    assert notices(browser) == []
    keys.until(lambda _: keys.focused.get_attribute("name") == "name")
    keys.type(NAME).to("Password").type("not it at all").to("Sign in").enter()
    keys.until(lambda each: notices(each) == ["Name or password is wrong."])
    keys.to("Name").type(NAME).to("Password").type(PASSWORD).press(Keys.ENTER)
    keys.at("Overview")
    expected = "the server responded with a status of"
    assert [each for each in window.complaints(browser) if expected not in each] == []


def test_the_colours_are_switched_announced_and_stored(web, browser, sign_in, keys):
    sign_in()
    window.theme(browser, "dark")
    window.opened(browser, f"{web}/dashboard/account")

    def paper():
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    night = paper()
    keys.to("Colours: system").enter()
    assert keys.name == "Colours: light"
    assert browser.find_element(By.ID, "said").get_attribute("textContent") == "Colours: light"
    day = paper()
    assert day != night
    browser.refresh()
    assert paper() == day
    keys.to("Colours: light").space()
    assert (keys.name, paper()) == ("Colours: dark", night)
    keys.enter()
    assert (keys.name, paper()) == ("Colours: system", night)


def test_the_menu_of_a_phone(web, browser, sign_in, keys, administrator):
    sign_in()
    window.resize(browser, 390)
    window.opened(browser, f"{web}/dashboard")

    menu = browser.find_element(By.ID, "menu")
    assert not menu.is_displayed()
    keys.to("Menu").enter()
    assert (menu.is_displayed(), keys.focused.get_attribute("aria-expanded")) == (True, "true")
    keys.to("Documentation").press(Keys.ESCAPE)
    assert (keys.name, menu.is_displayed()) == ("Menu", False)
    keys.space().to(administrator.name).enter().at("Your account")
    assert not browser.find_element(By.ID, "menu").is_displayed()


def test_the_content_is_one_press_away(web, browser, sign_in, keys):
    sign_in()
    window.opened(browser, f"{web}/dashboard/account")

    keys.to("Skip to the content").enter()

    assert keys.focused.get_attribute("id") == "content"
    keys.to("Signed-in browsers")


def test_an_action_that_cannot_be_undone_needs_a_confirmation(web, browser, sign_in, keys, content):
    sign_in()
    window.opened(browser, f"{web}/dashboard/account")

    rows = browsers(browser)
    # The menu has a link of the same name, without a confirmation.
    keys.to("Signed-in browsers").to("Sign out").enter()
    assert browser.find_element(By.TAG_NAME, "dialog").text.startswith("Sign that browser out?")
    assert keys.name == "Cancel"
    keys.enter().until(lambda each: not each.find_elements(By.TAG_NAME, "dialog"))
    assert keys.name == "Sign out"
    assert len(browsers(browser)) == len(rows)
    keys.enter().to("Sign out").enter()
    keys.until(lambda each: notices(each) == ["That browser is signed out."])
    assert len(browsers(browser)) == len(rows) - 1

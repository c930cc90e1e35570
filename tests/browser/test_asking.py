"""A question typed in the palette is answered in the explorer, at an address that shows others the same."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from app.schemas.availability import WEEKDAYS
from tests import services
from tests.app.days import meeting
from tests.browser import window
from tests.browser.keyboard import Keyboard

# Thursday, 3 December 2026.
ASKED = "2026-12-03 10:15"
BUSY = "is busy from 10:00 to 11:00"


@pytest.fixture
def ada(sandbox, new_user, unique):
    """A user with a meeting from ten to eleven."""
    email = f"{unique('ada')}@example.com"
    return new_user(sandbox.account("google", email, events=[meeting("10:00", "11:00")]), name="ada")


@pytest.fixture
def keys(browser, sign_in, web):
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "UTC"})
    window.theme(browser, "light")
    window.resize(browser, 1440)
    sign_in()
    window.opened(browser, f"{web}/dashboard/account")
    yield Keyboard(browser)
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def text(browser, selector):
    return browser.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)


def marks(browser, selector):
    """The number of marks that are visible."""
    boxes = browser.find_elements(By.CSS_SELECTOR, f"[data-axis] {selector}")
    return sum(each.rect["height"] > 0 and each.rect["width"] > 0 for each in boxes)


def ask(keys, question):
    """Type a question and press one key; returns when the text was complete."""
    keys.press("/").until(lambda each: each.find_elements(By.CSS_SELECTOR, "#palette [role=option]"))
    keys.type(question)
    typed = time.monotonic()
    first = "#palette [role=option][aria-selected=true]"
    keys.until(lambda each: "Is it offered, and why?" in text(each, first))
    keys.press(Keys.ENTER)
    return typed


def sentence(browser):
    return window.wait(browser, lambda each: text(each, ".answer.at-press .verdict p"))


def test_one_key_after_the_text_the_chart_answers(keys, browser, ada):
    services.axe().require()
    typed = ask(keys, f"{ada} {ASKED}")
    assert BUSY in sentence(browser)
    assert time.monotonic() - typed < 2

    # The event and the next slot are marked, and the next slot is a key away.
    assert (marks(browser, ".cause"), marks(browser, ".next-slot")) == (1, 1)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".cursor")) == 1
    window.settled(browser)
    assert window.findings(browser, window.RULES) == []
    browser.find_element(By.CSS_SELECTOR, ".next a").click()
    window.wait(browser, lambda each: "it is the start of the slot from 11:00" in text(each, ".verdict p"))
    query = parse_qs(urlsplit(browser.current_url).query)
    assert (query["users"], query["moment"]) == ([ada], ["2026-12-03T11:00"])
    assert window.complaints(browser) == []


def test_the_address_shows_others_the_same(keys, browser, sign_in, ada):
    ask(keys, f"{ada} {ASKED}")
    same, address = sentence(browser), browser.current_url
    browser.delete_all_cookies()
    sign_in()
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    window.opened(browser, address)
    assert sentence(browser) == same
    assert (marks(browser, ".cause"), marks(browser, ".next-slot")) == (1, 1)

    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(address)
        window.wait(browser, lambda each: text(each, ".verdict p") == same)
        assert len(browser.find_elements(By.CSS_SELECTOR, "[data-picture]")) == 1
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_closed_day_is_shown(keys, browser, api, ada):
    """The day is closed for the person: the hours of the chart do not count."""
    office = [{"days": list(WEEKDAYS[:5]), "start": "09:00", "end": "17:00"}]
    assert api.put(f"/users/{ada}/availability", {"timeZone": "UTC", "schedules": office}).status_code == 200
    ask(keys, f"{ada} 2026-12-05 10:15")
    assert f"{ada} does not work on Saturdays" in sentence(browser)
    # The closed time ends after the weekend.
    assert marks(browser, ".cause") >= 2
    assert marks(browser, ".next-slot") == 1


@pytest.mark.parametrize("others", [1, 3], ids=["columns", "lanes"])
def test_a_group_is_asked_together(keys, browser, sandbox, new_user, unique, ada, others):
    more = [
        new_user(sandbox.account("google", f"{unique('zoe')}@example.com"), name="zoe") for _ in range(others)
    ]
    ask(keys, f"{ada} {' '.join(more)} {ASKED}")
    is_free = "1 is free, and 2" if others == 1 else "3 are free, and 4"
    assert f"{is_free} required" in sentence(browser)
    assert BUSY in text(browser, "#because")
    # The slot that is refused, in each column or in the lane of all; and the meeting in Ada's.
    lanes = 1 if others > 1 else others + 1
    assert (marks(browser, ".cause"), marks(browser, ".next-slot")) == (lanes + 1, lanes)


def test_a_press_has_an_address(keys, browser, web, ada):
    window.opened(browser, f"{web}/dashboard/users/{ada}")
    browser.execute_script("document.getElementById('ask-moment').value = '2026-12-03T10:15'")
    browser.find_element(By.XPATH, "//button[.='Is it offered?']").click()
    assert BUSY in sentence(browser)
    keys.press(Keys.ESCAPE)
    lane = browser.find_element(By.CSS_SELECTOR, f"[data-axis][data-user='{ada}']")
    lane.click()
    window.wait(browser, lambda each: "moment=2026-12-03T10%3A15" not in each.current_url)
    here = sentence(browser)
    browser.refresh()
    assert sentence(browser) == here

"""The explorer in a browser: the picture follows the controls, and clicks and keys explain moments."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from tests.app.days import meeting
from tests.browser import window
from tests.browser.keyboard import Keyboard

THURSDAY = int(datetime(2026, 12, 3, tzinfo=UTC).timestamp() * 1000)
DAY = "day=2026-12-03&days=1&zone=UTC&earliestTimeEachDay=09:00&latestTimeEachDay=13:00"
COLUMNS = "The days; arrow keys move a moment, Page Up and Page Down a day, Enter says why"
LANES = "Availability of all people; arrow keys move a moment, Page Up and Page Down a day, Enter says why"


@pytest.fixture
def ada(sandbox, new_user):
    """Create a user with these meetings in two accounts."""

    def make(*events, slugs=()):
        accounts = [
            sandbox.account(provider, email, events=events if provider == "google" else ())
            for provider, email in (("google", "ada@example.com"), ("microsoft", "ada@contoso.example"))
        ]
        return new_user(*accounts, name="ada", slugs=slugs)

    return make


@pytest.fixture
def show(web, browser, sign_in):
    """Open the explorer: ``show("users=ada")``."""

    def opened(query):
        window.resize(browser, 1440)
        sign_in()
        window.opened(browser, f"{web}/dashboard/explorer?{query}")
        return browser

    return opened


def text(browser, selector):
    """The current text: the element may be replaced at any time."""
    return browser.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)


def said(browser):
    """The announcement for screen readers."""
    return browser.find_element(By.ID, "said").get_attribute("textContent")


def press(browser, user, time):
    """Click where a user's lane or column shows a time of the Thursday."""
    hours, minutes = map(int, time.split(":"))
    at = THURSDAY + (hours * 60 + minutes) * 60_000
    lane = browser.find_element(By.CSS_SELECTOR, f"[data-axis][data-user='{user}']")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", lane)
    # The position is computed from the edges of the day's element, as a user sees it.
    box, first, last = browser.execute_script(
        """
        const lane = arguments[0], whole = lane.dataset.axis === "y" ? lane.closest("svg.day") : lane;
        const box = whole.getBoundingClientRect();
        const days = lane.dataset.days ?? lane.closest("[data-picture]").dataset.days;
        return [[box.left, box.top, box.width, box.height], ...days.split("-").map(Number)];
        """,
        lane,
    )
    left, top, width, height = box
    share = (at + 60_000 - first) / (last - first)
    axis = lane.get_attribute("data-axis")
    x, y = (
        (left + share * width, top + height / 2) if axis == "x" else (left + width / 2, top + share * height)
    )
    browser.execute_script("document.getElementById('because').replaceChildren()")
    actions = ActionChains(browser, duration=0)
    actions.w3c_actions.pointer_action.move_to_location(int(x), int(y))
    actions.click().perform()
    window.wait(browser, lambda each: text(each, ".verdict p"))
    return text(browser, ".verdict p")


def query_of(browser):
    return {name: each for name, (each,) in parse_qs(urlsplit(browser.current_url).query).items()}


def test_control_updates_chart_and_address_without_reload(show, ada):
    browser = show(f"users={ada(meeting('10:00', '11:00'))}&{DAY}")
    assert text(browser, ".count") == "6"
    browser.execute_script("window.same = true")

    Select(browser.find_element(By.ID, "days")).select_by_visible_text("3")
    window.wait(browser, lambda each: text(each, ".count") == "22")
    length = browser.find_element(By.ID, "slotDuration")
    length.clear()
    length.send_keys("60")
    window.wait(browser, lambda each: text(each, ".count") == "11")
    browser.find_element(By.CSS_SELECTOR, "[name=window][value=weekly]").click()
    window.wait(browser, lambda each: query_of(each).get("window") == "weekly")
    window.settled(browser)

    assert (query_of(browser)["days"], query_of(browser)["slotDuration"]) == ("3", "60")
    assert browser.execute_script("return window.same")
    assert browser.find_element(By.CSS_SELECTOR, ".edges.weekly").is_displayed()
    assert not browser.find_element(By.CSS_SELECTOR, ".edges.daily").is_displayed()
    count = text(browser, ".count")
    browser.refresh()
    window.settled(browser)
    assert text(browser, ".count") == count
    # The browser logs a request that a newer one replaces as aborted.
    ended = ("htmx:afterRequest", "htmx:sendAbort")
    assert [each for each in window.complaints(browser) if not any(name in each for name in ended)] == []


def test_an_error_replaces_the_picture_until_it_is_corrected(show, ada):
    browser = show(f"users={ada()}&{DAY}")
    zone = browser.find_element(By.ID, "zone")
    zone.clear()
    zone.send_keys("Berlin", Keys.TAB)
    window.wait(browser, lambda each: "Time zone must be" in text(each, ".notice.bad"))
    zone.clear()
    zone.send_keys("Europe/Berlin", Keys.TAB)
    window.wait(browser, lambda each: text(each, ".count") == "8")


def presses(browser, user):
    """The explanation of every kind of moment."""
    endings = {
        "outside": press(browser, user, "08:30"),
        "busy": press(browser, user, "10:30"),
        "padding": press(browser, user, "11:07"),
        "remainder": press(browser, user, "09:42"),
        "offered": press(browser, user, "09:15"),
    }
    because = {
        "outside": "it lies outside the daily window, which opens at 09:00.",
        "busy": "ada@example.com is busy from 10:00 to 11:00.",
        "padding": "10 minutes of padding keep it blocked until 11:10.",
        "remainder": "too short for another.",
        "offered": "within a slot that is offered, from 09:00 to 09:40.",
    }
    assert {kind: each for kind, each in because.items() if not endings[kind].endswith(each)} == {}, endings


SLOTS = f"{DAY}&slotDuration=40&padding=10"


def test_press_in_a_column_shows_the_explanation(show, ada):
    user = ada(meeting("10:00", "11:00"))
    presses(show(f"users={user}&{SLOTS}"), user)


def test_a_press_where_nothing_is_drawn_is_a_press_too(show, ada):
    user = ada()
    browser = show(f"users={user}&{DAY}&window=weekly")

    sentence = press(browser, user, "03:20")
    # One pixel is two minutes, and a press stands for five.
    assert sentence.startswith((f"{user} at 03:15", f"{user} at 03:20"))
    assert "it lies outside the weekly schedule, which is never open" in sentence


def test_press_in_a_lane_shows_the_explanation(show, ada, new_user, new_organization):
    slug = new_organization()
    user = ada(meeting("10:00", "11:00"), slugs=(slug,))
    for _ in range(3):
        new_user(slugs=(slug,))
    presses(show(f"organization={slug}&{SLOTS}"), user)


def test_an_unread_calendar_is_the_reason(show, sandbox, ada):
    user = ada(meeting("10:00", "11:00"))
    sandbox.fault(email="ada@contoso.example", status=500)
    browser = show(f"users={user}&{DAY}")

    assert "the main calendar at Microsoft could not be read" in press(browser, user, "10:30")
    assert f"{user} could not be read" in text(browser, ".notice.bad")


def test_the_events_behind_a_busy_moment_are_a_press_away(show, ada):
    user = ada(meeting("10:00", "11:00", subject="<b>Budget</b> שלום 📅"))
    browser = show(f"users={user}&{DAY}")
    press(browser, user, "10:30")

    browser.find_element(By.XPATH, "//button[.='Which events?']").click()
    window.wait(browser, lambda each: "<b>Budget</b> שלום 📅" in text(each, ".events"))
    assert "10:00 to 11:00" in text(browser, ".events")
    assert window.complaints(browser) == []


def test_by_keyboard_alone(show, ada):
    user = ada(meeting("10:00", "11:00"))
    browser = show(f"users={user}&{DAY}")
    keys = Keyboard(browser)

    keys.to(COLUMNS).press(Keys.ARROW_DOWN)
    assert said(browser).startswith(f"{user}, Thursday 3 December")
    # From eight o'clock, by hours and by quarters of an hour.
    keys.press(Keys.ARROW_UP * 10)
    assert "08:00" in said(browser)
    keys.press(Keys.SHIFT + Keys.ARROW_DOWN).press(Keys.SHIFT + Keys.ARROW_DOWN).press(Keys.ARROW_DOWN)
    assert "10:15" in said(browser)
    assert browser.find_elements(By.CSS_SELECTOR, ".cursor")
    keys.enter()
    assert "is busy from 10:00 to 11:00" in text(browser, ".verdict p")

    # Fields can also choose the moment and the user.
    keys.to("Why?")
    assert browser.find_element(By.ID, "moment-field").get_attribute("value") == "2026-12-03T10:15"


def test_lanes_by_keyboard(show, ada, new_user, new_organization):
    slug = new_organization()
    user = ada(meeting("10:00", "11:00"), slugs=(slug,))
    for _ in range(3):
        new_user(name="zoe", slugs=(slug,))
    browser = show(f"organization={slug}&{DAY}")
    keys = Keyboard(browser)

    keys.to(LANES).press(Keys.ARROW_LEFT * 5)
    assert said(browser).startswith(f"{user}, Thursday 3 December at 08:00")
    keys.press(Keys.ARROW_RIGHT * 9).press(Keys.ENTER)
    window.wait(browser, lambda each: "10:15" in text(each, ".verdict p"))
    assert "is busy from 10:00 to 11:00" in text(browser, ".verdict p")


@pytest.mark.parametrize("in_lanes", [False, True], ids=["columns", "lanes"])
def test_days_are_jumped_and_the_state_is_said(show, ada, new_user, new_organization, in_lanes):
    slug = new_organization()
    user = ada(meeting("10:00", "11:00"), slugs=(slug,))
    for _ in range(3):
        new_user(name="zoe", slugs=(slug,))
    who = f"organization={slug}" if in_lanes else f"users={user}"
    browser = show(f"{who}&{DAY.replace('days=1', 'days=3')}&slotDuration=60")
    keys, along = Keyboard(browser), Keys.ARROW_RIGHT if in_lanes else Keys.ARROW_DOWN

    keys.to(LANES if in_lanes else COLUMNS).press(along * 7)
    assert "Thursday 3 December at 10:15" in said(browser)
    window.wait(browser, lambda each: said(each).endswith(": busy"))
    keys.press(Keys.PAGE_DOWN)
    assert "Friday 4 December at 10:15" in said(browser)
    window.wait(browser, lambda each: said(each).endswith(": offered"))
    keys.press(Keys.PAGE_UP)
    window.wait(browser, lambda each: said(each).endswith("Thursday 3 December at 10:15: busy"))


def test_the_zone_is_that_of_the_browser_unless_one_was_chosen(show, ada, browser):
    user = ada()
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kathmandu"})
    try:
        show(f"users={user}&day=2026-12-03&days=1")
        # Browsers use either name of the time zone.
        assert browser.find_element(By.ID, "zone").get_attribute("value") in (
            "Asia/Kathmandu",
            "Asia/Katmandu",
        )
        assert (
            browser.find_element(By.CSS_SELECTOR, "[data-picture]")
            .get_attribute("data-zone")
            .startswith("Asia/")
        )
        show(f"users={user}&{DAY}")
        assert browser.find_element(By.ID, "zone").get_attribute("value") == "UTC"
    finally:
        browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_the_line_for_the_api_can_be_taken_along(show, ada):
    user = ada()
    browser = show(f"users={user}&{DAY}")
    browser.find_element(By.XPATH, "//summary[.='The same by the API']").click()
    button = browser.find_element(By.CSS_SELECTOR, "[data-copy=curl]")
    button.click()
    window.wait(browser, lambda _: button.text in ("Copied", "Marked"))
    marked = browser.execute_script("return String(getSelection())")
    if button.text == "Marked":
        assert marked.startswith("curl -s -H")
    press(browser, user, "10:30")
    browser.find_element(By.CSS_SELECTOR, "#because summary").click()
    button = browser.find_element(By.CSS_SELECTOR, "[data-copy=why-curl]")
    button.click()
    window.wait(browser, lambda _: button.text in ("Copied", "Marked"))


def test_without_scripts_the_button_brings_the_picture(web, sign_in, ada, browser):
    user = ada(meeting("10:00", "11:00"))
    window.resize(browser, 1440)
    sign_in()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"{web}/dashboard/explorer?users={user}&{DAY}")
        assert browser.find_elements(By.CSS_SELECTOR, "[data-picture]") == []
        browser.find_element(By.XPATH, "//button[.='Show']").click()
        window.wait(browser, lambda each: text(each, ".count") == "6")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def box(browser, selector):
    """The left, top, right and bottom edges of an element in the window."""
    return browser.execute_script(
        "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return [box.left, box.top, box.right, box.bottom]",
        selector,
    )


def test_the_explanation_opens_at_the_press_and_within_the_window(show, ada):
    browser = show(f"users={ada(meeting('10:00', '11:00'))}&{DAY}")
    press(browser, browser.find_element(By.CSS_SELECTOR, "[data-user]").get_attribute("data-user"), "10:32")

    left, top, right, bottom = box(browser, "#answer")
    assert left >= 0
    assert top >= 0
    assert right <= 1440
    assert bottom <= window.HEIGHT
    assert text(browser, ".verdict p").endswith(".")
    browser.find_element(By.CSS_SELECTOR, "[data-close-answer]").click()
    assert not browser.find_elements(By.CSS_SELECTOR, ".at-press")


def test_weeks_are_steps_and_the_picture_follows(show, ada):
    browser = show(f"users={ada()}&{DAY}")

    browser.find_element(By.ID, "step-next").click()
    window.wait(browser, lambda each: query_of(each).get("day") == "2026-12-10")
    window.settled(browser)
    browser.find_element(By.ID, "step-previous").click()
    window.wait(browser, lambda each: query_of(each).get("day") == "2026-12-03")
    window.settled(browser)

    assert browser.find_element(By.ID, "day").get_attribute("value") == "2026-12-03"


def test_the_pointer_shows_time_period_and_calendar(show, ada):
    user = ada(meeting("10:00", "11:00"))
    browser = show(f"users={user}&{DAY}")
    lane = browser.find_element(By.CSS_SELECTOR, f"[data-axis][data-user='{user}']")
    # From eight to two o'clock: 28 pixels are an hour.
    ActionChains(browser).move_to_element_with_offset(lane, 0, 70 - lane.rect["height"] // 2).perform()

    window.wait(
        browser,
        lambda each: "Busy 10:00\N{EN DASH}11:00 · ada@example.com (Google)" in text(each, ".hint-box"),
    )
    assert text(browser, ".hint-box").startswith("Thu")


def test_lanes_are_filtered_and_the_filter_keeps_the_focus(show, ada, new_user, new_organization):
    slug = new_organization()
    user = ada(slugs=(slug,))
    for _ in range(3):
        new_user(name="zoe", slugs=(slug,))
    browser = show(f"organization={slug}&{DAY}")

    browser.find_element(By.ID, "find").send_keys("zo")
    window.wait(browser, lambda each: user not in text(each, ".lanes"))
    window.settled(browser)
    ActionChains(browser).send_keys("e-none").perform()
    window.wait(browser, lambda each: "No member of this organization" in text(each, ".lanes"))

    assert query_of(browser)["find"] == "zoe-none"

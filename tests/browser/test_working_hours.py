"""Working hours in a browser: changed by pointer and by keyboard, and shown in the explorer."""

from __future__ import annotations

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.by import By

from app.schemas.availability import WEEKDAYS
from tests import services
from tests.browser import window
from tests.browser.keyboard import Keyboard

TOKYO = {
    "timeZone": "Asia/Tokyo",
    "schedules": [{"days": list(WEEKDAYS[:5]), "start": "09:00", "end": "17:00"}],
    "overrides": [{"date": "2026-12-04", "windows": []}],
    # The first of December.
    "holidays": {"country": "PT"},
}
WEEK = "day=2026-11-30&days=7&zone=UTC&whole=1&show=1"


@pytest.fixture
def user(sandbox, new_user):
    """A user with an account of two calendars."""
    calendars = [{"primary": True, "id": "ada@example.com"}, {"id": "family", "subject": "Family"}]
    return new_user(sandbox.account("google", "ada@example.com", calendars=calendars), name="ada")


@pytest.fixture
def edit(web, browser, sign_in, user):
    """Open the working hours of the user."""

    def opened():
        sign_in()
        window.opened(browser, f"{web}/dashboard/users/{user}")
        return browser

    return opened


def stored(api, user):
    return api.get(f"/users/{user}/availability").json["data"]


def test_hours_are_stated(api, edit, visitor, user):
    browser = edit()
    visitor.use("Change the working hours").at(f"Working hours of {user}")
    assert not browser.find_element(By.NAME, "mondayFrom").is_displayed()

    visitor.choose("In these hours").use("Add hours on Saturday")
    visitor.set_time("Saturday from", "1000AM").set_time("Saturday to", "0230PM")
    visitor.write("Time zone optional", "Europe/Berlin")
    visitor.choose("These calendars").choose("Family Google")
    visitor.write("Minutes of notice optional", "90").use("Save").at(user)

    visitor.sees_notice(f"The working hours of {user} are saved.")
    profile = stored(api, user)
    assert profile["schedules"] == [
        {"days": list(WEEKDAYS[:5]), "start": "09:00", "end": "17:00"},
        {"days": ["saturday"], "start": "10:00", "end": "14:30"},
    ]
    assert (profile["timeZone"], profile["minimumNotice"]) == ("Europe/Berlin", 90)
    assert [each["calendarId"] for each in profile["calendars"]] == ["ada@example.com", "family"]
    assert "Sat 10:00 to 14:30" in visitor.text("section[aria-labelledby=hours]")
    assert window.complaints(browser) == []


def test_an_error_is_shown_and_the_entries_stay(api, edit, visitor, user):
    browser = edit()
    visitor.use("Change the working hours").at(f"Working hours of {user}")

    visitor.write("Time zone optional", "Mars").write("Minutes of notice optional", "15").use("Save")

    visitor.sees_notice("Please correct the highlighted fields.")
    assert "Time zone must be a time zone name" in visitor.text("#e-timeZone")
    notice = browser.find_element(By.NAME, "minimumNotice")
    assert notice.get_attribute("value") == "15"
    assert stored(api, user)["minimumNotice"] is None


def test_enter_in_a_field_saves(api, edit, keys, user):
    edit()
    keys.use("Change the working hours").at(f"Working hours of {user}")

    keys.write("Minutes of notice optional", "45").enter().at(user)

    assert stored(api, user)["minimumNotice"] == 45


@pytest.mark.parametrize("in_lanes", [False, True], ids=["columns", "lanes"])
def test_the_explorer_shows_the_night_and_closed_days(
    api, web, browser, sign_in, user, new_user, new_organization, in_lanes
):
    assert api.put(f"/users/{user}/availability", TOKYO).status_code == 200
    slug = new_organization()
    members = [user, *(new_user(name="other") for _ in range(3 * in_lanes))]
    assert api.post(f"/organizations/{slug}/members", {"userIds": members}).status_code < 300
    who = f"organization={slug}" if in_lanes else f"users={user}"
    window.resize(browser, 1440)
    sign_in()

    window.opened(browser, f"{web}/dashboard/explorer?{who}&{WEEK}")

    names = {each.text for each in browser.find_elements(By.CSS_SELECTOR, ".closed-day")}
    assert names == {"Restoration of Independence Day", "closed"}
    assert "outside the person's working hours" in browser.find_element(By.CLASS_NAME, "legend").text
    lane = browser.find_element(By.CSS_SELECTOR, f"[data-user='{user}']")

    # The middle of a lane of the week, or of the first day, is a night in Tokyo. The pointer moves once and
    # rests: where it is already it would send no event, and while it moves nothing is loaded.
    ActionChains(browser, duration=0).move_to_element(lane).move_by_offset(1, 1).perform()
    hint = "return document.querySelector('.hint-box')?.textContent ?? ''"
    window.wait(browser, lambda each: "Outside working hours" in each.execute_script(hint))
    assert window.complaints(browser) == []
    services.axe().require()
    # The pointer leaves the lanes: in a narrow window, another lane would come under it, and its hint could
    # cover a control.
    rest = ActionBuilder(browser, duration=0)
    rest.pointer_action.move_to_location(1, 1)
    rest.perform()
    hidden = "return document.querySelector('.hint-box').hidden"
    window.wait(browser, lambda each: each.execute_script(hidden))
    assert window.findings_everywhere(browser) == []


def test_the_keyboard_hears_the_night(api, web, browser, sign_in, user):
    assert api.put(f"/users/{user}/availability", TOKYO).status_code == 200
    window.resize(browser, 1440)
    sign_in()
    window.opened(browser, f"{web}/dashboard/explorer?users={user}&{WEEK}")
    picture = "The days; arrow keys move a moment, Page Up and Page Down a day, Enter says why"

    # Half past eight in the morning in UTC is half past five in the afternoon in Tokyo.
    Keyboard(browser).to(picture).press("\ue015" * 33)

    said = browser.find_element(By.ID, "said")
    window.wait(browser, lambda _: said.get_attribute("textContent").endswith(": outside working hours"))

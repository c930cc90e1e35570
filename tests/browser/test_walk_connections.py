"""Walks of an operator who manages connections: connecting, finding an ended one, connecting again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import staleness_of

from tests.browser import window
from tests.providers.caldav.servers import PASSWORD, USER, radicale
from tests.providers.ical.texts import calendar, event
from tests.providers.ics.server import feed_server

ACCOUNTS = {"Google": "ada@example.com", "Microsoft": "ada@contoso.example"}
HANGUL, EMOJI = "분기 계획", "📅 1:1 <i>with</i> Zoë"


@pytest.fixture
def accounts(sandbox):
    """Ada's two accounts, each with a meeting tomorrow, and other users."""
    at = (datetime.now(UTC) + timedelta(days=1)).replace(hour=9, minute=0, second=0, microsecond=0)
    when = {"start": at.isoformat(), "end": (at + timedelta(hours=1)).isoformat()}
    for (title, email), subject in zip(ACCOUNTS.items(), (HANGUL, EMOJI), strict=True):
        sandbox.account(title.lower(), f"aaron@{title.lower()}.example")
        sandbox.account(title.lower(), email, events=[{"subject": subject, **when}])


def test_a_new_user_is_connected_with_both_providers(
    web, browser, sign_in, visitor, sandbox, accounts, unique
):
    user = unique("ada")
    sign_in()
    window.opened(browser, f"{web}/dashboard/users")
    if not browser.find_element(By.ID, "f-id").is_displayed():
        visitor.use("Register a user")
    visitor.write("Identifier", user).use("Register").at(user)
    visitor.sees_notice(f"{user} is registered. Connect a calendar next.")

    for title, email in ACCOUNTS.items():
        visitor.pick("Access to request", "Reading").use(f"Connect {title}")
        visitor.at(f"Connect {title} for {user}").use("Open it here")
        visitor.at(f"Allow sandbox to use your {title} account?").choose(email).use("Allow").at(user)
        visitor.until(lambda _, said=f"{email} is connected with {title}. ": said in visitor.notices[0])

    for title, email in ACCOUNTS.items():
        assert visitor.text("main").count(f"Reconnect {title}") == 1
        assert email in visitor.text("section[aria-labelledby=connections]")
        assert title in visitor.text("section[aria-labelledby=calendars] tbody")
    assert "ended" not in visitor.text("section[aria-labelledby=connections]")
    events = visitor.text("section[aria-labelledby=events]")
    assert (HANGUL in events, EMOJI in events) == (True, True)
    assert window.complaints(browser) == []


def test_an_ended_connection_is_found_and_connected_again(
    web, browser, sign_in, visitor, sandbox, new_user, new_organization
):
    slug = new_organization()
    ada, bruno = (
        new_user(sandbox.account("google", f"{name}@example.com"), name=name, slugs=(slug,))
        for name in ("ada", "bruno")
    )
    sandbox.revoke("ada@example.com")
    sign_in()
    window.opened(browser, f"{web}/dashboard/organizations/{slug}")

    visitor.use("Find free times").at("Explorer")
    (notice,) = visitor.notices
    assert notice.startswith(f"{ada} could not be read, so nothing is offered: ")
    assert {(shown_of(each, ada), shown_of(each, bruno)) for each in days(browser)} == {("unread", "slots")}

    visitor.use("See the connection").at(ada)
    assert "This connection ended on" in visitor.text("section[aria-labelledby=connections] .notice")
    assert f"no times are offered for {ada}" in visitor.text("section[aria-labelledby=connections]")
    visitor.use("Reconnect Google").at(f"Connect Google for {ada}").use("Open it here")
    visitor.at("Allow sandbox to use your Google account?").choose("ada@example.com").use("Allow").at(ada)
    visitor.until(lambda _: "ada@example.com is connected with Google." in visitor.notices[0])

    visitor.use("Explorer").at("Explorer")
    # The picture follows the field. At first it may be of any organization, or of none.
    for act in (lambda: visitor.write("Organization", slug), lambda: visitor.use("Refresh")):
        before = browser.find_elements(By.ID, "picture")
        act()
        visitor.until(lambda _, old=before: not old or staleness_of(old[0])(browser))
        visitor.until(lambda _: visitor.text("#picture"))
        window.settled(browser)
    assert slug in visitor.text("#picture")
    assert visitor.notices == []
    assert {(shown_of(each, ada), shown_of(each, bruno)) for each in days(browser)} == {("slots", "slots")}
    # The new picture has a new button, which keeps the focus after a press by keyboard.
    assert browser.switch_to.active_element.text == "Refresh"


def test_an_account_and_a_feed_are_connected_by_forms(web, browser, sign_in, visitor, new_user, tmp_path):
    user = new_user()
    section = "section[aria-labelledby=connections]"
    sign_in()
    with radicale(tmp_path) as server, feed_server() as feeds:
        meeting = event("DTSTART:20261201T090000Z\nDTEND:20261201T100000Z")
        feed = feeds.put(calendar(meeting, head="X-WR-CALNAME:Holiday home"))
        window.opened(browser, f"{web}/dashboard/users/{user}")
        visitor.use("Connect CalDAV").at(f"Connect CalDAV for {user}")
        visitor.use("iCloud").until(lambda _: "https://account.apple.com" in visitor.text("main"))
        assert browser.find_element(By.ID, "f-url").get_attribute("value") == "https://caldav.icloud.com/"

        visitor.write("Address", server.url).write("User name", USER).write("Password", "guessed")
        visitor.use("Connect").sees_notice("Please correct the highlighted fields.")
        assert "Password is not accepted with the values above." in visitor.text("form.narrow-form")
        # The browser has logged only the status of the answer.
        (complaint,) = window.complaints(browser)
        assert "a status of 400" in complaint
        assert browser.find_element(By.ID, "f-password").get_attribute("value") == ""
        visitor.write("Password", PASSWORD).write("Label optional", EMOJI).use("Connect").at(user)
        visitor.sees_notice(f"CalDAV ({EMOJI}) is connected.")

        visitor.use("Connect Calendar feed").at(f"Connect Calendar feed for {user}")
        visitor.write("Address", feed).use("Connect").at(user)
        visitor.sees_notice("Calendar feed is connected.")

        assert EMOJI in visitor.text(section)
        visitor.until(lambda _: "Holiday home" in visitor.text("section[aria-labelledby=calendars]"))
        visitor.use("Reconnect CalDAV").at(f"Reconnect CalDAV for {user}")
        shown = [
            browser.find_element(By.ID, f"f-{name}").get_attribute("value") for name in ("url", "username")
        ]
        assert shown == [server.url, USER]
        visitor.write("Password", PASSWORD).use("Reconnect").at(user)
        visitor.sees_notice(f"CalDAV ({EMOJI}) is connected again.")
        visitor.use("Connect another CalDAV").at(f"Connect CalDAV for {user}")
    assert window.complaints(browser) == []


def days(browser):
    """The accessible name of each day in the picture."""
    return [each.accessible_name for each in browser.find_elements(By.CSS_SELECTOR, "svg.day")]


def shown_of(day, user):
    """The explanation of a day for a user."""
    rest = day.partition(f"{user}: ")[2]
    words = {"could not be read": "unread", "slots at": "slots", "no slots": "none"}
    return next(word for words_of, word in words.items() if rest.startswith(words_of))

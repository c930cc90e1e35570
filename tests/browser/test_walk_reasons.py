"""Walks through the explorer: its explanation of every moment equals the API's."""

from __future__ import annotations

import pytest

from tests.app.days import DAY, meeting
from tests.app.explaining import explained, thursday
from tests.browser import window

WINDOW = {"earliestTimeEachDay": "09:00", "latestTimeEachDay": "13:00"}
ASKED = {**WINDOW, "slotDuration": "40", "padding": "10"}
PAGE = {**ASKED, "day": "2026-12-03", "days": "1", "zone": "UTC"}

MOMENTS = {
    "08:30": "outsideWindow",
    "10:30": "busy",
    "11:00": "padding",
    "09:45": "remainder",
    "09:15": "offered",
}


@pytest.fixture
def ada(sandbox, new_user):
    """A user with two accounts: one has a meeting, and little is free after the other's."""
    google = sandbox.account("google", "ada@example.com", events=[meeting("10:00", "11:00")])
    microsoft = sandbox.account("microsoft", "ada@contoso.example", events=[meeting("11:45", "13:00")])
    return new_user(google, microsoft, name="ada")


@pytest.fixture
def explorer(web, browser, sign_in, ada):
    """Open the explorer at Ada's Thursday."""

    def opened():
        sign_in()
        query = "&".join(f"{name}={value}" for name, value in {**PAGE, "users": ada}.items())
        window.opened(browser, f"{web}/dashboard/explorer?{query}")

    return opened


@pytest.fixture
def ask(explorer, browser, visitor, api, ada):
    """Request an explanation in the explorer and by the API, and compare them; returns the reason."""
    explorer()

    def explained_at(clock):
        browser.execute_script("document.getElementById('because').replaceChildren()")
        visitor.point(clock).until(lambda _: visitor.text(".verdict p"))
        moment = browser.execute_script("return document.getElementById('moment-field').value")[-5:]
        found = explained(
            api.get(f"/users/{ada}/scheduling/explain", at=thursday(moment), **{**DAY, **ASKED})
        )
        assert visitor.text(".verdict p") == found["sentence"]
        assert visitor.text(".verdict p").startswith(f"{moment} on Thursday 3 December")
        return found["reason"]

    return explained_at


def test_the_page_explains_every_moment_as_the_api_does(ask, browser):
    assert {clock: ask(clock) for clock in MOMENTS} == MOMENTS
    # Twenty-five minutes between the padding of two meetings.
    assert ask("11:15") == "tooShort"
    assert window.complaints(browser) == []


@pytest.fixture
def unread(sandbox, ada):
    """One of the accounts cannot be read."""
    sandbox.fault(email="ada@contoso.example", status=500)


@pytest.mark.usefixtures("unread")
def test_the_page_explains_an_unread_calendar_as_the_api_does(ask):
    # It would be offered if only the other account were read.
    assert ask("09:15") == "calendarUnread"


# The distance of an hour's label from its line; lines start at the picture's first hour.
BESIDE = """
const middle = (each) => { const box = each.getBoundingClientRect(); return (box.top + box.bottom) / 2; };
const lines = [...document.querySelectorAll("svg.day .hour-line")].map(middle);
return [...document.querySelectorAll("svg.hours text")].map(
  (each) => Math.round(middle(each) - lines[parseInt(each.textContent) - 9]));
"""


@pytest.mark.parametrize("size", window.SIZES)
def test_an_hour_is_written_beside_its_line(explorer, browser, size):
    window.resize(browser, size)
    explorer()

    found = browser.execute_script(BESIDE)

    assert len(found) >= 4
    assert all(abs(each) <= 2 for each in found), found

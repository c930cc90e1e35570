"""Visitors of the example's booking page: they book, lose a race, and let a hold expire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from flask import Flask, Response, jsonify
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from app.cli import booking
from providers.sandbox.client import Sandbox
from tests import services
from tests.browser import window
from tests.browser.keyboard import Keyboard
from tests.browser.visitor import Pointer, Visitor
from tests.conftest import Api

# Half an hour off the host's zone, so that a time in the wrong zone is found.
ZONE = "Australia/Adelaide"
CHOOSE, DETAILS, BOOKED = "Choose a time", "Your details", "You are booked"
WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FASTER = "Another visitor was faster"
NOT_HELD = "The time is no longer held for you"
EVENT_ENDPOINT = "event"


class Page:
    """The page in the browser, the offer behind it, and another client of the service."""

    def __init__(self, browser: Chrome, url: str, api: Api, offer: booking.Offer) -> None:
        self.browser, self.url, self.api, self.offer = browser, url, api, offer
        self.host, *self.colleagues = (each.user for each in offer.team)

    def open(self, query: str = "") -> None:
        window.opened(self.browser, self.url + query)
        # On its first day there may be a few slots only, and they end soon.
        self.browser.find_elements(By.CSS_SELECTOR, "#days label:has(:enabled)")[1].click()

    @property
    def slots(self) -> list[str]:
        """The accessible names of the slots of the selected day."""
        found = self.browser.find_elements(By.CSS_SELECTOR, "#slots button")
        return [" ".join(each.accessible_name.split()) for each in found]

    def time(self, slot: str) -> dict[str, str]:
        """The start and the end of a slot of the selected day."""
        day = self.text("#day")
        first, last = (
            datetime.strptime(f"{day} {each}", "%A, %B %d, %Y %I:%M %p").replace(tzinfo=ZoneInfo(ZONE))
            for each in slot.split(" to ")
        )
        assert last - first == timedelta(minutes=self.offer.minutes)
        return {"start": first.isoformat(), "end": last.isoformat()}

    def text(self, selector: str) -> str:
        found: str = self.browser.execute_script(
            "return document.querySelector(arguments[0]).innerText", selector
        )
        return " ".join(found.split())

    def value(self, field: str) -> str:
        return str(self.browser.find_element(By.ID, field).get_property("value"))

    def holds(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.api.get("/holds", user=self.host).json["data"]
        return found

    def events(self, time: dict[str, str]) -> list[dict[str, Any]]:
        """The events of the host at a time."""
        answer = self.api.get(f"/users/{self.host}/calendar/events", **time)
        found: list[dict[str, Any]] = answer.json["data"]
        return found

    def hold(self, slot: dict[str, str], *users: str) -> None:
        """Another visitor takes a slot."""
        taken = self.api.post("/holds", {"users": users or (self.host,), **slot})
        assert taken.status_code == 201, taken.json

    def book(self, slot: dict[str, str]) -> None:
        """Another visitor books a slot."""
        path = f"/users/{self.host}/calendar/events/google/primary?ifFree=true"
        booked = self.api.post(path, {"subject": "Faster", **slot})
        assert booked.status_code == 201, booked.json

    def release(self) -> None:
        """End all holds of the host, as if they had expired."""
        for each in self.holds():
            assert self.api.delete(f"/holds/{each['id']}").status_code == 200


@pytest.fixture
def offer(sandbox: Sandbox, new_user: Callable[..., str]) -> booking.Offer:
    team = []
    for name in ("ada", "bruno", "emiko"):
        email = f"{name}@example.com"
        user = new_user(sandbox.account("google", email), name=name)
        team.append(booking.Person(user, name.title(), email))
    hours = {"days": WEEK, "start": "09:00", "end": "12:00"}
    return booking.Offer(team=tuple(team), provider="google", timeZone="Europe/London", schedules=(hours,))


@pytest.fixture
def backend(web: str, api: Api, offer: booking.Offer) -> Flask:
    return booking.create_app(web, api.key, offer)


@pytest.fixture
def page(browser: Chrome, backend: Flask, api: Api, offer: booking.Offer) -> Iterator[Page]:
    window.resize(browser, window.SIZES[0])
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ZONE})
    with booking.serving(backend, 0) as url:
        yield Page(browser, url, api, offer)
        browser.get("about:blank")
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def fill(visitor: Visitor) -> None:
    visitor.write("Name", "Kim Park").write("E-mail address", "kim@example.org")
    visitor.write("What is it about?", "Contract")


def test_a_visitor_books(page, visitor):
    page.open()
    assert f"Times are in your time zone, {ZONE} (" in page.text("#about")
    slot = page.slots[1]
    time = page.time(slot)

    visitor.use(slot).at(DETAILS)

    (hold,) = page.holds()
    assert hold["users"] == [page.host, page.colleagues[0]]
    assert page.text("#left").startswith(("Held for you for 4:", "Held for you for 5:00"))
    fill(visitor)
    visitor.use("Book").at(BOOKED)
    summary = page.text("#summary")
    for each in ("Contract", slot, f"{ZONE} (Australian Central", "Ada and Bruno"):
        assert each in summary
    (event,) = page.events(time)
    assert event["subject"] == "Contract"
    assert "Kim Park (kim@example.org)" in event["description"]
    assert {each["email"] for each in event["attendees"]} >= {"kim@example.org", "bruno@example.com"}
    assert page.holds() == []
    assert window.complaints(page.browser) == []
    visitor.use("Book another meeting").at(CHOOSE)
    assert slot not in page.slots
    assert len(page.slots) == 5


@pytest.mark.parametrize("other", ["hold", "book"])
def test_another_visitor_is_faster_before_a_slot_is_chosen(page, visitor, other):
    page.open()
    slot = page.slots[2]
    getattr(page, other)(page.time(slot))

    visitor.use(slot)

    visitor.until(lambda _: any(FASTER in each for each in visitor.notices)).at(CHOOSE)
    assert slot not in page.slots
    assert "kept" not in page.text("#alert")


def test_when_one_colleague_is_taken_another_one_is_held(page, visitor):
    page.open()
    slot = page.slots[0]
    page.hold(page.time(slot), page.colleagues[0])

    visitor.use(slot).at(DETAILS)

    assert [each["users"] for each in page.holds()] == [[page.host, page.colleagues[1]]]


@pytest.mark.parametrize("other", ["hold", "book"])
def test_another_visitor_is_faster_while_the_form_is_filled_in(page, visitor, other):
    page.open()
    slot = page.slots[1]
    time = page.time(slot)
    visitor.use(slot).at(DETAILS)
    fill(visitor)
    page.release()
    getattr(page, other)(time)

    visitor.use("Book").at(CHOOSE)

    assert f"{FASTER}: {page.text('#day')}, {slot.split(' to ')[0]} is taken." in page.text("#alert")
    assert "What you typed is kept." in page.text("#alert")
    assert slot not in page.slots
    assert [each["subject"] for each in page.events(time)] == (["Faster"] if other == "book" else [])
    next_time = page.time(page.slots[0])
    visitor.use(page.slots[0]).at(DETAILS)
    assert page.value("subject") == "Contract"
    visitor.use("Book").at(BOOKED)
    assert [each["subject"] for each in page.events(next_time)] == ["Contract"]


def test_a_hold_that_ended_without_notice_is_taken_again(page, visitor):
    page.open()
    time = page.time(page.slots[1])
    visitor.use(page.slots[1]).at(DETAILS)
    fill(visitor)
    page.release()

    visitor.use("Book").at(BOOKED)

    assert [each["subject"] for each in page.events(time)] == ["Contract"]
    assert page.holds() == []


def test_a_hold_expires_while_the_form_is_filled_in(page, browser):
    """Thirty seconds are the shortest life of a hold."""
    visitor = Pointer(browser)
    page.open("?expiresIn=30")
    slot = page.slots[0]
    time = page.time(slot)
    visitor.use(slot).at(DETAILS)
    fill(visitor)
    window.wait(browser, lambda _: page.text("#left") == "Not held", seconds=45)
    assert NOT_HELD in page.text("#status")

    visitor.use("Book").at(BOOKED)

    assert [each["subject"] for each in page.events(time)] == ["Contract"]


def test_choosing_another_time_releases_the_hold(page, visitor):
    page.open()
    slot = page.slots[0]
    visitor.use(slot).at(DETAILS)
    visitor.write("Name", "Kim Park")
    assert page.holds()

    visitor.use("Choose another time").at(CHOOSE)

    assert page.holds() == []
    assert slot in page.slots
    visitor.use(slot).at(DETAILS)
    assert page.value("name") == "Kim Park"


def test_leaving_the_page_releases_the_hold(page, browser):
    page.open()
    Pointer(browser).use(page.slots[0]).at(DETAILS)

    browser.get("about:blank")

    Pointer(browser).until(lambda _: page.holds() == [])


def test_an_unknown_outcome_never_books_twice(page, backend, visitor):
    """The answers to the first attempts are lost, after the event was created."""
    created = backend.view_functions[EVENT_ENDPOINT]
    lost = []

    def lose() -> Response:
        answer: Response = created()
        if len(lost) >= 3:
            return answer
        lost.append(answer.status_code)
        answer = jsonify(data=None, error="The event may exist", code="outcomeUnknown")
        answer.status_code = 502
        return answer

    backend.view_functions[EVENT_ENDPOINT] = lose
    page.open()
    time = page.time(page.slots[0])
    visitor.use(page.slots[0]).at(DETAILS)
    fill(visitor)

    visitor.use("Book")

    visitor.until(lambda _: any("It is not known" in each for each in visitor.notices))
    assert page.browser.find_element(By.ID, "subject").get_property("readOnly")
    visitor.use("Book").at(BOOKED)
    assert lost == [201, 201, 201]
    assert [each["subject"] for each in page.events(time)] == ["Contract"]


def test_a_service_that_is_down_is_reported(page, backend, visitor):
    working = backend.view_functions["scheduling"]

    def fail() -> Response:
        answer = jsonify(data=None, error="The service cannot be reached")
        answer.status_code = 502
        return answer

    backend.view_functions["scheduling"] = fail
    window.opened(page.browser, page.url)
    assert page.text("#alert") == "The service cannot be reached. Try again in a minute."

    backend.view_functions["scheduling"] = working
    visitor.use("Try again")

    assert page.text("#alert") == ""
    assert page.slots


def test_unreadable_host_is_named(page, sandbox):
    sandbox.revoke("ada@example.com")

    window.opened(page.browser, page.url)

    assert "The calendar of Ada could not be read" in page.text("#alert")
    assert page.slots == []


def test_each_step_is_accessible_and_fits_a_desk_and_a_phone(page, browser):
    services.axe().require()
    visitor = Pointer(browser)
    found: list[str] = []

    def look() -> None:
        found.extend(f"{visitor.text('h1')}: {each}" for each in window.findings_everywhere(browser))
        for size in window.SIZES:
            window.resize(browser, size)
            assert window.width(browser) <= size, window.overflowing(browser)
        window.resize(browser, window.SIZES[0])
        window.theme(browser, "light")

    page.open()
    look()
    page.hold(page.time(page.slots[1]))
    visitor.use(page.slots[1]).until(lambda _: visitor.notices)
    look()
    visitor.use(page.slots[1]).at(DETAILS).use("Book")
    assert visitor.text("#name-wrong") == "Enter your name."
    look()
    fill(visitor)
    visitor.use("Book").at(BOOKED)
    look()

    assert not found, "\n   ".join(["", *found])


def test_every_control_is_reached_by_keyboard_and_shows_it(page, browser):
    page.open()

    assert Keyboard(browser).everywhere() == []

    Keyboard(browser).use(page.slots[0]).at(DETAILS)
    assert Keyboard(browser).everywhere() == []


def test_days_are_chosen_by_keyboard(page, browser):
    page.open()
    first, second = page.text("#days label:has(:checked)"), page.text("#day")

    Keyboard(browser).to(first).press(Keys.ARROW_RIGHT)

    assert page.text("#days label:has(:checked)") != first
    assert page.text("#day") != second
    assert page.text("#day")[:3] == page.text("#days label:has(:checked)")[:3]


def test_an_invalid_address_is_explained_at_its_field(page, visitor):
    page.open()
    visitor.use(page.slots[0]).at(DETAILS)
    fill(visitor)
    visitor.write("E-mail address", "kim")

    visitor.use("Book")

    assert visitor.text("#email-wrong").startswith("Enter your e-mail address")
    assert page.browser.switch_to.active_element.get_attribute("id") == "email"

"""getSchedule: https://learn.microsoft.com/graph/api/calendar-getschedule"""

from __future__ import annotations

from typing import Any

import pytest

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import MEETING, Caller, code, graph

BOB, EVE = "bob@example.com", "eve@example.com"


def when(text: str, zone: str = "UTC") -> dict[str, str]:
    return {"dateTime": text, "timeZone": zone}


ASKED: dict[str, Any] = {
    "schedules": [BOB],
    "startTime": when("2026-12-03T08:00:00"),
    "endTime": when("2026-12-03T12:00:00"),
    "availabilityViewInterval": 60,
}


@pytest.fixture
def call(sandbox: Sandbox) -> Caller:
    sandbox.account("microsoft", EVE, events=[MEETING | {"showAs": "tentative"}])
    return graph(sandbox, sandbox.account("microsoft", BOB, events=[MEETING]))


def schedules(call: Caller, **more: Any) -> list[dict[str, Any]]:
    answer = call("POST", "me/calendar/getSchedule", json=ASKED | more)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["value"]
    return found


def test_items_and_view_of_ones_own_mailbox(call: Caller) -> None:
    (mine,) = schedules(call)
    assert mine["availabilityView"] == "0200"
    (item,) = mine["scheduleItems"]
    assert (item["status"], item["subject"]) == ("busy", "Design review")
    assert item["start"] == when("2026-12-03T09:00:00.0000000")


def test_only_times_and_status_of_other_mailboxes_are_shown(call: Caller) -> None:
    (hers,) = schedules(call, schedules=[EVE.upper()])
    assert hers["availabilityView"] == "0100"
    assert set(hers["scheduleItems"][0]) == {"status", "start", "end"}


def test_an_unknown_address_is_an_error_inside_the_200(call: Caller) -> None:
    mine, unknown = schedules(call, schedules=[BOB, "nosuch@example.com"])
    assert "error" not in mine
    assert unknown["error"]["responseCode"] == "5009"
    assert unknown["scheduleItems"] == []


def test_capitalized_names_of_the_official_client_are_accepted(call: Caller) -> None:
    capital = {name[0].upper() + name[1:]: value for name, value in ASKED.items()}
    answer = call("POST", "me/calendar/getSchedule", json=capital)
    assert answer.json()["value"][0]["availabilityView"] == "0200"


def test_the_window_may_be_in_any_zone_and_so_may_the_answer(call: Caller) -> None:
    asked = ASKED | {
        "startTime": when("2026-12-03T09:00:00", "W. Europe Standard Time"),
        "endTime": when("2026-12-03T13:00:00", "Europe/Berlin"),
    }
    preferred = {"Prefer": 'outlook.timezone="Europe/Berlin"'}
    answer = call("POST", "me/calendar/getSchedule", json=asked, headers=preferred)
    (mine,) = answer.json()["value"]
    assert mine["availabilityView"] == "0200"
    assert mine["scheduleItems"][0]["start"] == when("2026-12-03T10:00:00.0000000", "Europe/Berlin")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"endTime": when("2027-02-05T08:00:00")}, "ErrorTimeIntervalTooBig"),
        ({"endTime": when("2026-12-03T08:00:00")}, "ErrorInvalidTimeInterval"),
        ({"schedules": [f"u{n}@example.com" for n in range(21)]}, "ErrorInvalidRequest"),
        ({"schedules": []}, "ErrorInvalidParameter"),
        ({"availabilityViewInterval": 4}, "ErrorInvalidParameter"),
        ({"startTime": when("2026-12-03T08:00:00", "Nowhere")}, "TimeZoneNotSupportedException"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(
    call: Caller, change: dict[str, Any], expected: str
) -> None:
    assert code(call("POST", "me/calendar/getSchedule", json=ASKED | change)) == (400, expected)


def test_refusal_has_the_length_of_the_window(call: Caller) -> None:
    asked = ASKED | {"endTime": when("2027-02-04T08:00:00")}
    message = call("POST", "me/calendar/getSchedule", json=asked).json()["error"]["message"]
    assert message.endswith("The allowed limit = 62 days; the actual limit = 63 days.")

"""Calendars, their views, batches and permissions of Microsoft Graph."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import MEETING, VIEW, Caller, code, graph

BOB = "bob@example.com"


def test_a_calendar_knows_its_owner_and_no_zone(sandbox: Sandbox) -> None:
    calendars = [{"primary": True}, {"id": "AAMkshared", "subject": "Team", "accessRole": "reader"}]
    call = graph(sandbox, sandbox.account("microsoft", BOB, calendars=calendars))
    mine, shared = call.get("me/calendars")["value"]
    assert (mine["isDefaultCalendar"], mine["canEdit"], mine["owner"]["address"]) == (True, True, BOB)
    assert (shared["isDefaultCalendar"], shared["canEdit"]) == (False, False)
    assert shared["owner"]["address"] != BOB
    assert "timeZone" not in mine
    assert call.get("me/calendar")["id"] == mine["id"]
    assert call.get("me/calendars/AAMkshared")["name"] == "Team"


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("Calendars.ReadWrite", {"list", "view", "write"}),
        ("https://graph.microsoft.com/calendars.read", {"list", "view"}),
        ("Calendars.ReadBasic", {"list", "view"}),
        ("MailboxSettings.Read", {"settings"}),
        ("User.Read", {"me"}),
    ],
)
def test_each_call_wants_one_of_its_permissions(sandbox: Sandbox, scope: str, allowed: set[str]) -> None:
    call = graph(sandbox, sandbox.account("microsoft", BOB, scope=scope))
    when = {"dateTime": "2026-12-05T12:00:00", "timeZone": "UTC"}
    answers = {
        "list": call("GET", "me/calendars"),
        "view": call("GET", "me/calendarView", params=VIEW),
        "write": call("POST", "me/events", json={"subject": "x", "start": when, "end": when}),
        "settings": call("GET", "me/mailboxSettings"),
        "me": call("GET", "me"),
    }
    assert {name for name, answer in answers.items() if answer.status_code < 300} == allowed
    for name in answers.keys() - allowed:
        assert code(answers[name]) == (403, "ErrorAccessDenied")


def bob(sandbox: Sandbox, *events: dict[str, Any], **more: Any) -> Caller:
    return graph(sandbox, sandbox.account("microsoft", BOB, events=events, **more))


def hours(count: int) -> list[dict[str, Any]]:
    return [
        {"subject": f"{n}", "start": f"2026-12-03T{n:02d}:00:00Z", "end": f"2026-12-03T{n:02d}:30:00Z"}
        for n in range(count)
    ]


@pytest.mark.parametrize("zone", ["UTC", "Tokyo Standard Time"])
def test_all_day_event_keeps_its_dates_in_requested_zone(sandbox: Sandbox, zone: str) -> None:
    event = {"start": "2026-12-03", "end": "2026-12-04", "allDay": True}
    call = bob(sandbox, event, time_zone="Asia/Tokyo")
    preferred = {"Prefer": f'outlook.timezone="{zone}"'}
    (found,) = call("GET", "me/calendarView", params=VIEW, headers=preferred).json()["value"]
    assert found["start"] == {"dateTime": "2026-12-03T00:00:00.0000000", "timeZone": zone}
    assert found["end"] == {"dateTime": "2026-12-04T00:00:00.0000000", "timeZone": zone}
    # The window is compared with its midnights in UTC, although it begins nine hours earlier in Tokyo.
    before = {"startDateTime": "2026-12-02T15:00:00Z", "endDateTime": "2026-12-03T00:00:00Z"}
    assert call.get("me/calendarView", **before)["value"] == []


def test_pages_hold_ten_and_the_link_repeats_the_question(sandbox: Sandbox) -> None:
    call = bob(sandbox, *hours(23))
    found, path, query = [], "me/calendarView", {**VIEW, "$select": "subject,start"}
    while path:
        page = call.get(path, **query)
        found.append([event["subject"] for event in page["value"]])
        path, query = page.get("@odata.nextLink", "").removeprefix(f"{call.base}/"), {}
    assert [len(page) for page in found] == [10, 10, 3]
    assert [subject for page in found for subject in page] == [str(n) for n in range(23)]


def test_only_selected_properties_come_beside_id_and_etag(sandbox: Sandbox) -> None:
    (event,) = bob(sandbox, MEETING).get("me/calendarView", **VIEW, **{"$select": "showAs,isAllDay"})["value"]
    assert set(event) == {"@odata.etag", "id", "showAs", "isAllDay"}


def test_cancelled_and_declined_meetings_stay_visible(sandbox: Sandbox) -> None:
    declined = MEETING | {"responseStatus": "declined"}
    found = bob(sandbox, MEETING | {"isCancelled": True}, declined).get("me/calendarView", **VIEW)["value"]
    assert [(e["isCancelled"], e["responseStatus"]["response"]) for e in found] == [
        (True, "organizer"),
        (False, "declined"),
    ]


SEEN = f"/me/calendarView?startDateTime={VIEW['startDateTime']}&endDateTime={VIEW['endDateTime']}"
CALENDARS = [{"primary": True}, *({"id": f"AAMk{n}", "subject": f"{n}"} for n in range(8))]


@pytest.fixture
def call(sandbox: Sandbox) -> Caller:
    account = sandbox.account("microsoft", BOB, calendars=CALENDARS, events=[MEETING])
    return graph(sandbox, account)


def get(number: object, url: str = SEEN, **more: Any) -> dict[str, Any]:
    return {"id": str(number), "method": "GET", "url": url, **more}


def post(call: Caller, *parts: dict[str, Any]) -> requests.Response:
    return call("POST", "$batch", json={"requests": parts})


def parts_of(answer: requests.Response) -> dict[str, dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return {part["id"]: part for part in answer.json()["responses"]}


def test_answers_do_not_come_in_the_order_of_the_requests(call: Caller) -> None:
    answer = post(call, *(get(n) for n in range(5)))
    assert [part["id"] for part in answer.json()["responses"]] != [str(n) for n in range(5)]
    assert len(parts_of(answer)) == 5


def test_headers_of_a_part_are_its_own(call: Caller) -> None:
    preferred = {"Prefer": 'outlook.timezone="Tokyo Standard Time"'}
    parts = parts_of(post(call, get(1, headers=preferred), get(2)))
    assert parts["1"]["body"]["value"][0]["start"]["timeZone"] == "Tokyo Standard Time"
    assert parts["1"]["headers"]["Preference-Applied"] == 'outlook.timezone="Tokyo Standard Time"'
    assert parts["2"]["body"]["value"][0]["start"]["timeZone"] == "UTC"


@pytest.mark.parametrize(
    "parts",
    [
        [get(n) for n in range(21)],
        [get("a"), get("A")],
        [{"id": "1", "method": "POST", "url": "/me/events", "body": {"subject": "x"}}],
        [get(1, dependsOn=["2"])],
        [get(1, dependsOn=["2"]), get(2, dependsOn=["1"])],
        [get(1, "https://graph.microsoft.com/v1.0/me")],
        [{"id": "1"}],
        [],
    ],
)
def test_a_batch_that_makes_no_sense_is_refused_as_a_whole(call: Caller, parts: list[dict[str, Any]]) -> None:
    assert code(post(call, *parts)) == (400, "BadRequest")


def test_a_fault_of_the_account_strikes_the_batch_and_not_its_parts(call: Caller, sandbox: Sandbox) -> None:
    sandbox.fault(email=BOB, status=429, retry_after=1, times=1)
    assert code(post(call, get(1))) == (429, "ApplicationThrottled")
    assert parts_of(post(call, get(1)))["1"]["status"] == 200

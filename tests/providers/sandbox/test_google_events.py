"""Reading and writing events of Google Calendar."""

from __future__ import annotations

from typing import Any

import pytest

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import MEETING, Caller, google, reason

EVENTS = "calendars/primary/events"
TIMED: dict[str, Any] = {
    "summary": "Lunch",
    "start": {"dateTime": "2026-12-05T12:00:00+01:00"},
    "end": {"dateTime": "2026-12-05T13:00:00+01:00"},
}
WEEKLY = {
    "subject": "Weekly",
    "start": "2026-12-07T09:00:00",
    "end": "2026-12-07T09:30:00",
    "recurrence": ["RRULE:FREQ=WEEKLY;COUNT=3"],
}


@pytest.fixture
def call(sandbox: Sandbox) -> Caller:
    events = [MEETING, WEEKLY, {"start": "2026-12-01", "end": "2026-12-02", "allDay": True}]
    account = sandbox.account("google", "ada@example.com", time_zone="Europe/Berlin", events=events)
    return google(sandbox, account)


def test_a_page_token_belongs_to_its_question(call: Caller) -> None:
    first = call.get(EVENTS, maxResults=2)
    assert len(first["items"]) == 1
    other = {"maxResults": 2, "pageToken": first["nextPageToken"], "q": "lunch"}
    assert call("GET", EVENTS, params=other).status_code == 400
    assert call.get(EVENTS, maxResults=2, pageToken=first["nextPageToken"])["items"] == []


def test_an_id_of_ones_own_is_taken_once_even_after_a_deletion(call: Caller) -> None:
    mine = TIMED | {"id": "7c1f0a6e2b9d4f3c8a5e6d7b9f0c1a2e"}
    path = f"{EVENTS}/{mine['id']}"
    assert call("POST", EVENTS, json=mine).json()["id"] == mine["id"]
    assert reason(call("POST", EVENTS, json=mine)) == (409, "duplicate")
    assert call("DELETE", path).status_code == 204
    assert reason(call("DELETE", path)) == (410, "deleted")
    assert call.get(path)["status"] == "cancelled"
    assert reason(call("POST", EVENTS, json=mine)) == (409, "duplicate")
    assert call("PATCH", path, json={"status": "confirmed"}).json()["status"] == "confirmed"
    assert call("DELETE", path).status_code == 204


def test_a_patch_merges_objects_replaces_arrays_and_removes_by_null(call: Caller) -> None:
    guests = [{"email": "bob@example.com"}, {"email": "eve@example.com"}]
    extra = {"description": "x", "attendees": guests, "extendedProperties": {"private": {"a": "1", "b": "2"}}}
    made = call("POST", EVENTS, json=TIMED | extra).json()
    change = {
        "description": None,
        "attendees": [{"email": "bob@example.com"}],
        "extendedProperties": {"private": {"b": None, "c": "3"}},
        "end": {"dateTime": "2026-12-05T14:00:00+01:00"},
    }
    changed = call("PATCH", f"{EVENTS}/{made['id']}", json=change).json()
    assert "description" not in changed
    assert [guest["email"] for guest in changed["attendees"]] == ["bob@example.com"]
    assert changed["extendedProperties"] == {"private": {"a": "1", "c": "3"}}
    assert (changed["summary"], changed["start"]) == ("Lunch", made["start"])
    assert changed["end"]["dateTime"] == "2026-12-05T14:00:00+01:00"
    assert changed["etag"] != made["etag"]
    assert changed["sequence"] == made["sequence"] + 1


def test_timed_event_becomes_all_day_if_times_are_removed(call: Caller) -> None:
    made = call("POST", EVENTS, json=TIMED).json()
    path = f"{EVENTS}/{made['id']}"
    days = {"start": {"date": "2026-12-05"}, "end": {"date": "2026-12-06"}}
    refused = call("PATCH", path, json=days)
    assert reason(refused) == (400, "invalid")
    assert refused.json()["error"]["message"] == "Invalid start time."
    change = {edge: day | {"dateTime": None, "timeZone": None} for edge, day in days.items()}
    assert call("PATCH", path, json=change).json()["start"] == {"date": "2026-12-05"}
    times = {edge: {"dateTime": made[edge]["dateTime"]} for edge in days}
    assert reason(call("PATCH", path, json=times)) == (400, "invalid")
    change = {edge: time | {"date": None} for edge, time in times.items()}
    assert call("PATCH", path, json=change).json()["start"] == made["start"]


def test_a_put_of_what_was_moved_needs_its_sequence(call: Caller) -> None:
    made = call("POST", EVENTS, json=TIMED).json()
    path = f"{EVENTS}/{made['id']}"
    later = {"end": {"dateTime": "2026-12-05T14:00:00+01:00"}}
    moved = call("PATCH", path, json=later).json()
    assert moved["sequence"] == made["sequence"] + 1
    refused = call("PUT", path, json=TIMED)
    assert reason(refused) == (400, "invalid")
    assert refused.json()["error"]["message"] == "Invalid sequence value."
    assert call("PUT", path, json=TIMED | {"sequence": moved["sequence"]}).status_code == 200


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"end": None}, "required"),
        ({"start": None}, "required"),
        ({"id": "NO"}, "invalid"),
        ({"end": {"date": "2026-12-06"}}, "invalid"),
        ({"end": {"dateTime": "2026-12-05T11:00:00+01:00"}}, "timeRangeEmpty"),
        ({"start": {"dateTime": "2026-12-05T12:00:00"}}, "required"),
        ({"recurrence": ["RRULE:FREQ=DAILY"]}, "required"),
        ({"transparency": "clear"}, "invalid"),
        ({"attendees": ["bob@example.com"]}, "badRequest"),
        ({"extendedProperties": {"private": "x"}}, "badRequest"),
        ({"start": TIMED["start"] | {"timeZone": "UTC"}, "recurrence": ["RRULE:FREQ=NEVER"]}, "invalid"),
    ],
)
def test_an_event_that_makes_no_sense_is_refused(call: Caller, change: dict[str, Any], expected: str) -> None:
    assert reason(call("POST", EVENTS, json=TIMED | change)) == (400, expected)


def meeting(request_id: str) -> dict[str, Any]:
    key = {"type": "hangoutsMeet"}
    return {"conferenceData": {"createRequest": {"requestId": request_id, "conferenceSolutionKey": key}}}


def test_meeting_is_created_only_with_conference_data_version(call: Caller) -> None:
    known = {"conferenceDataVersion": "1"}
    without = call("POST", EVENTS, json=TIMED | meeting("a")).json()
    assert not {"conferenceData", "hangoutLink"} & without.keys()
    made = call("POST", EVENTS, json=TIMED | meeting("a"), params=known).json()
    path = f"{EVENTS}/{made['id']}"
    assert made["hangoutLink"] == made["conferenceData"]["entryPoints"][0]["uri"]
    assert made["conferenceData"]["createRequest"]["status"] == {"statusCode": "success"}

    def link(body: dict[str, Any], method: str = "PATCH", **query: str) -> Any:
        answer = call(method, path, json=body, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json().get("hangoutLink")

    assert link({"summary": "x"}) == made["hangoutLink"]
    assert link({"summary": "x"}, **known) == made["hangoutLink"]
    assert link(TIMED, "PUT") == made["hangoutLink"]
    assert link(meeting("a"), **known) == made["hangoutLink"]
    assert link(meeting("b"), **known) not in (None, made["hangoutLink"])
    assert link(TIMED, "PUT", **known) is None


NEW_YORK = {"timeZone": "America/New_York"}
DAILY: dict[str, Any] = {
    "start": {"dateTime": "2026-12-03T09:00:00", **NEW_YORK},
    "end": {"dateTime": "2026-12-03T10:00:00", **NEW_YORK},
}
WEEK = {"timeMin": "2026-12-03T00:00:00Z", "timeMax": "2026-12-10T00:00:00Z", "singleEvents": "true"}


def days_of(call: Caller, exception: str, **edges: Any) -> list[str]:
    """The days of a four-day series that has an exception."""
    body = {**DAILY, **edges, "recurrence": ["RRULE:FREQ=DAILY;COUNT=4", exception]}
    made = call("POST", "calendars/primary/events", json=body)
    assert made.status_code == 200, made.text
    found = [event["start"] for event in call.get("calendars/primary/events", **WEEK)["items"]]
    return sorted((start.get("dateTime") or start["date"])[8:10] for start in found)


@pytest.mark.parametrize(
    "exception",
    [
        "EXDATE:20261204T090000",
        "EXDATE;TZID=America/New_York:20261204T090000",
        "EXDATE;TZID=Europe/Berlin:20261204T150000",
        "EXDATE:20261204T140000Z",
        "EXDATE;VALUE=DATE-TIME;TZID=America/New_York:20261204T090000",
    ],
)
def test_an_exception_of_a_series_may_be_written_in_any_zone(sandbox: Sandbox, exception: str) -> None:
    call = google(sandbox, sandbox.account("google", "zoe@example.com"))
    assert days_of(call, exception) == ["03", "05", "06"]

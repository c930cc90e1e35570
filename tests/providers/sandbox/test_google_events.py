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


def starts(answer: dict[str, Any]) -> list[str]:
    return [e["start"].get("dateTime", e["start"].get("date")) for e in answer["items"]]


def test_times_have_the_offset_of_calendar_or_requested_zone(call: Caller) -> None:
    window = {"timeMin": "2026-12-03T00:00:00Z", "timeMax": "2026-12-04T00:00:00Z"}
    assert starts(call.get(EVENTS, **window)) == ["2026-12-03T09:00:00+01:00"]
    assert starts(call.get(EVENTS, timeZone="UTC", **window)) == ["2026-12-03T08:00:00Z"]


def test_the_window_bounds_ends_from_below_and_starts_from_above(call: Caller) -> None:
    def found(start: str, end: str) -> list[str]:
        window = {"timeMin": f"2026-12-03T{start}:00+01:00", "timeMax": f"2026-12-03T{end}:00+01:00"}
        return starts(call.get(EVENTS, **window))

    assert found("10:00", "12:00") == []
    assert found("09:59", "12:00") == ["2026-12-03T09:00:00+01:00"]
    assert found("08:00", "09:00") == []
    assert found("08:00", "09:01") == ["2026-12-03T09:00:00+01:00"]


def test_series_are_expanded_only_on_request(call: Caller) -> None:
    masters = call.get(EVENTS)["items"]
    assert [e.get("recurrence") for e in masters] == [None, ["RRULE:FREQ=WEEKLY;COUNT=3"], None]
    singles = call.get(EVENTS, singleEvents="true", orderBy="startTime")
    assert starts(singles) == [
        "2026-12-01",
        "2026-12-03T09:00:00+01:00",
        "2026-12-07T09:00:00+01:00",
        "2026-12-14T09:00:00+01:00",
        "2026-12-21T09:00:00+01:00",
    ]
    instance = singles["items"][-1]
    assert instance["id"] == f"{masters[1]['id']}_20261221T080000Z"
    assert instance["recurringEventId"] == masters[1]["id"]
    assert call.get(f"{EVENTS}/{instance['id']}")["originalStartTime"] == instance["start"]
    assert len(call.get(f"{EVENTS}/{masters[1]['id']}/instances")["items"]) == 3


def test_a_rule_may_end_at_an_instant(call: Caller) -> None:
    where = {"timeZone": "Europe/Berlin"}
    rule = {"recurrence": ["RRULE:FREQ=DAILY;UNTIL=20261207T220000Z"]}
    series = {"start": TIMED["start"] | where, "end": TIMED["end"] | where}
    made = call("POST", EVENTS, json={**TIMED, **series, **rule}).json()
    instances = call.get(f"{EVENTS}/{made['id']}/instances")
    assert [start[:10] for start in starts(instances)] == ["2026-12-05", "2026-12-06", "2026-12-07"]


def test_cancelled_instance_is_listed_only_unexpanded(call: Caller) -> None:
    series = call.get(EVENTS)["items"][1]["id"]
    instance = f"{series}_20261214T080000Z"
    assert call("DELETE", f"{EVENTS}/{instance}").status_code == 204
    assert len(call.get(EVENTS, singleEvents="true")["items"]) == 4
    gone = [e for e in call.get(EVENTS)["items"] if e["status"] == "cancelled"]
    assert [(e["id"], e["recurringEventId"]) for e in gone] == [(instance, series)]


def test_ordering_by_start_needs_single_events(call: Caller) -> None:
    assert reason(call("GET", EVENTS, params={"orderBy": "startTime"})) == (400, "badRequest")


def test_a_page_token_belongs_to_its_question(call: Caller) -> None:
    first = call.get(EVENTS, maxResults=2)
    assert len(first["items"]) == 1
    other = {"maxResults": 2, "pageToken": first["nextPageToken"], "q": "lunch"}
    assert call("GET", EVENTS, params=other).status_code == 400
    assert call.get(EVENTS, maxResults=2, pageToken=first["nextPageToken"])["items"] == []


def test_a_sync_token_gives_what_has_changed_since(call: Caller) -> None:
    token = call.get(EVENTS)["nextSyncToken"]
    made = call("POST", EVENTS, json=TIMED).json()
    call("DELETE", f"{EVENTS}/{made['id']}")
    (changed,) = call.get(EVENTS, syncToken=token)["items"]
    assert (changed["id"], changed["status"]) == (made["id"], "cancelled")
    assert reason(call("GET", EVENTS, params={"syncToken": "old"})) == (410, "fullSyncRequired")
    both = {"syncToken": token, "timeMin": "2026-12-01T00:00:00Z"}
    assert call("GET", EVENTS, params=both).status_code == 400


def test_an_event_can_be_found_by_a_private_property(call: Caller) -> None:
    mine = {"extendedProperties": {"private": {"metaId": "m-42"}}}
    made = call("POST", EVENTS, json=TIMED | mine).json()
    assert made["extendedProperties"] == mine["extendedProperties"]
    found = call.get(EVENTS, privateExtendedProperty="metaId=m-42")["items"]
    assert [e["id"] for e in found] == [made["id"]]
    assert call.get(EVENTS, privateExtendedProperty="metaId=m-43")["items"] == []


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


def test_a_put_replaces_all_that_can_be_written(call: Caller) -> None:
    made = call("POST", EVENTS, json=TIMED | {"location": "Room 1"}).json()
    changed = call("PUT", f"{EVENTS}/{made['id']}", json=TIMED | {"summary": "Dinner"}).json()
    assert changed["summary"] == "Dinner"
    assert "location" not in changed


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


def test_a_stale_etag_is_refused(call: Caller) -> None:
    made = call("POST", EVENTS, json=TIMED).json()
    path = f"{EVENTS}/{made['id']}"
    fresh = call("PATCH", path, json={"summary": "A"}, headers={"If-Match": made["etag"]})
    assert fresh.status_code == 200
    stale = call("PATCH", path, json={"summary": "B"}, headers={"If-Match": made["etag"]})
    assert reason(stale) == (412, "conditionNotMet")
    assert reason(call("DELETE", path, headers={"If-Match": made["etag"]})) == (412, "conditionNotMet")
    known = call("GET", path)
    assert known.headers["ETag"] == known.json()["etag"] == fresh.json()["etag"]
    assert call("DELETE", path, headers={"If-Match": known.headers["ETag"]}).status_code == 204


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


def test_a_written_event_shows_in_free_busy_at_once(call: Caller) -> None:
    window = {"timeMin": "2026-12-05T00:00:00Z", "timeMax": "2026-12-06T00:00:00Z"}
    question = {**window, "items": [{"id": "primary"}]}

    def busy() -> int:
        return len(call("POST", "freeBusy", json=question).json()["calendars"]["primary"]["busy"])

    assert busy() == 0
    made = call("POST", EVENTS, json=TIMED).json()
    assert busy() == 1
    call("DELETE", f"{EVENTS}/{made['id']}")
    assert busy() == 0


def test_readers_may_not_write_and_see_no_more_than_their_role_allows(sandbox: Sandbox) -> None:
    calendars = [{"primary": True}, {"id": "boss", "subject": "Boss", "accessRole": "freeBusyReader"}]
    event = MEETING | {"calendarId": "boss"}
    account = sandbox.account("google", "ada@example.com", calendars=calendars, events=[event])
    call = google(sandbox, account)
    (seen,) = call.get("calendars/boss/events")["items"]
    assert "summary" not in seen
    assert seen["start"]["dateTime"] == "2026-12-03T09:00:00Z"
    assert reason(call("POST", "calendars/boss/events", json=TIMED)) == (403, "requiredAccessLevel")


def test_unknown_calendars_and_events_are_not_found(call: Caller) -> None:
    assert reason(call("GET", "calendars/nosuch/events")) == (404, "notFound")
    assert reason(call("GET", f"{EVENTS}/nosuch")) == (404, "notFound")
    assert reason(call("GET", "nothing/here")) == (404, "notFound")


def test_a_series_takes_its_changed_occurrences_with_it(call: Caller) -> None:
    series = call.get(EVENTS)["items"][1]["id"]
    path = f"{EVENTS}/{series}_20261214T080000Z"
    assert call("PATCH", path, json={"summary": "By itself"}).status_code == 200
    assert call("DELETE", f"{EVENTS}/{series}").status_code == 204
    assert call.get(path)["status"] == "cancelled"
    assert len(call.get(EVENTS, singleEvents="true")["items"]) == 2


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


def test_a_meeting_can_be_in_the_making(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(operation="google.events.insert", body="pending", times=1)
    query = {"conferenceDataVersion": "1"}
    pending = call("POST", EVENTS, json=TIMED | meeting("a"), params=query).json()
    assert "hangoutLink" not in pending
    assert pending["conferenceData"]["createRequest"]["status"] == {"statusCode": "pending"}
    assert "entryPoints" not in pending["conferenceData"]
    assert call.get(f"{EVENTS}/{pending['id']}")["hangoutLink"].startswith("https://meet.google.com/")
    sandbox.fault(operation="google.events.insert", body="pending", times=1)
    assert "conferenceData" not in call("POST", EVENTS, json=TIMED).json()


def test_the_sandbox_lists_the_writes_that_notified_guests(sandbox: Sandbox, call: Caller) -> None:
    guests = {"attendees": [{"email": "bob@example.com"}, {"email": "ada@example.com"}]}
    alone = call("POST", EVENTS, json=TIMED, params={"sendUpdates": "all"}).json()
    made = call("POST", EVENTS, json=TIMED | guests, params={"sendUpdates": "none"}).json()
    assert sandbox.notices() == []
    query = {"sendUpdates": "externalOnly"}
    assert call("PATCH", f"{EVENTS}/{made['id']}", json={"attendees": []}, params=query).status_code == 200
    assert call("DELETE", f"{EVENTS}/{made['id']}", params=query).status_code == 204
    assert call("DELETE", f"{EVENTS}/{alone['id']}").status_code == 204
    notice = {"operation": "google.events.patch", "email": "ada@example.com", "eventId": made["id"]}
    assert sandbox.notices() == [notice | {"guests": ["bob@example.com"]}]
    unknown = call("POST", EVENTS, json=TIMED, params={"sendUpdates": "some"})
    assert reason(unknown) == (400, "invalidParameter")
    sandbox.reset()
    assert sandbox.notices() == []


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


def test_several_exception_dates_on_one_line_are_applied(sandbox: Sandbox) -> None:
    call = google(sandbox, sandbox.account("google", "zoe@example.com"))
    line = "EXDATE:20261204T140000Z,20261205T140000Z,20261206T090000Z"
    assert days_of(call, line) == ["03", "06"]


def test_an_exception_of_an_all_day_series_is_a_date(sandbox: Sandbox) -> None:
    call = google(sandbox, sandbox.account("google", "zoe@example.com"))
    dates = {"start": {"date": "2026-12-03"}, "end": {"date": "2026-12-04"}}
    assert days_of(call, "EXDATE;VALUE=DATE:20261204", **dates) == ["03", "05", "06"]


def test_an_exception_in_no_zone_is_refused(sandbox: Sandbox) -> None:
    call = google(sandbox, sandbox.account("google", "zoe@example.com"))
    body = DAILY | {"recurrence": ["RRULE:FREQ=DAILY", "EXDATE;TZID=Nowhere/Land:20261204T090000"]}
    assert reason(call("POST", "calendars/primary/events", json=body)) == (400, "invalid")

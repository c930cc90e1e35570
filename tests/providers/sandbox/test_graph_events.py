"""Reading and writing events of Microsoft Graph."""

from __future__ import annotations

from typing import Any

import pytest

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import VIEW, Caller, code, graph

META = "String {66f5a359-4659-4830-9070-00047ec6ac6e} Name metaId"
EXPAND = {"$expand": f"singleValueExtendedProperties($filter=id eq '{META}')"}


def when(text: str, zone: str = "Pacific Standard Time") -> dict[str, str]:
    return {"dateTime": text, "timeZone": zone}


LUNCH: dict[str, Any] = {
    "subject": "Lunch",
    "start": when("2026-12-03T12:00:00"),
    "end": when("2026-12-03T13:00:00"),
}


@pytest.fixture
def call(sandbox: Sandbox) -> Caller:
    calendars = [{"primary": True}, {"id": "AAMkteam", "subject": "Team"}]
    return graph(sandbox, sandbox.account("microsoft", "bob@example.com", calendars=calendars))


def make(call: Caller, path: str = "me/events", **more: Any) -> dict[str, Any]:
    answer = call("POST", path, json=LUNCH | more)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_calendar_in_the_path_does_not_limit_event_ids(call: Caller) -> None:
    main = call.get("me/calendar")["id"]
    team = make(call, "me/calendars/AAMkteam/events")["id"]
    here = make(call)["id"]
    for path in (f"me/calendar/events/{team}", f"me/calendars/{main}/events/{team}"):
        assert call.get(path)["id"] == team
    path = f"me/calendars/AAMkteam/events/{here}"
    assert call("PATCH", path, json={"subject": "Changed"}).json()["subject"] == "Changed"
    assert code(call("GET", f"me/calendars/AAMknone/events/{here}")) == (404, "ErrorItemNotFound")
    assert call("DELETE", path).status_code == 204
    assert call.get("me/events")["value"] == []


def test_event_has_its_calendar_when_expanded(call: Caller) -> None:
    path = f"me/events/{make(call, 'me/calendars/AAMkteam/events')['id']}"
    assert "calendar" not in call.get(path)
    assert call.get(path, **{"$expand": "calendar"})["calendar"]["name"] == "Team"
    both = f"{EXPAND['$expand']},calendar($select=id,isDefaultCalendar)"
    told = call.get(path, **{"$expand": both})["calendar"]
    assert told == {"id": "AAMkteam", "isDefaultCalendar": False}


def test_an_all_day_event_goes_from_midnight_to_midnight_of_one_zone(call: Caller) -> None:
    whole = {"isAllDay": True, "start": when("2026-12-03T00:00:00"), "end": when("2026-12-04T00:00:00")}
    made = make(call, **whole)
    assert made["start"] == when("2026-12-03T00:00:00.0000000", "UTC")
    crooked = call("POST", "me/events", json=LUNCH | {"isAllDay": True})
    assert code(crooked) == (400, "ErrorPropertyValidationFailure")


def test_an_extended_property_comes_only_when_expanded_by_its_id(call: Caller) -> None:
    made = make(call, singleValueExtendedProperties=[{"id": META, "value": "m-42"}])
    path = f"me/events/{made['id']}"
    assert "singleValueExtendedProperties" not in made
    assert "singleValueExtendedProperties" not in call.get(
        path, **{"$expand": "singleValueExtendedProperties"}
    )
    assert call.get(path, **EXPAND)["singleValueExtendedProperties"] == [{"id": META, "value": "m-42"}]


def test_the_same_transaction_twice_makes_one_event(call: Caller) -> None:
    first = make(call, transactionId="t-1")
    assert make(call, transactionId="t-1")["id"] == first["id"]
    other = call("POST", "me/events", json=LUNCH | {"transactionId": "t-1", "subject": "Other"})
    assert code(other) == (400, "ErrorDuplicateTransactionId")
    assert other.json()["error"]["@event.existingEventId"] == first["id"]


@pytest.mark.parametrize(
    ("pattern", "days"),
    [
        ({"type": "daily", "interval": 2}, ["12-03", "12-05", "12-07"]),
        ({"type": "absoluteMonthly", "interval": 1, "dayOfMonth": 3}, ["12-03", "01-03", "02-03"]),
        (
            {"type": "relativeMonthly", "interval": 1, "daysOfWeek": ["thursday"], "index": "first"},
            ["12-03", "01-07", "02-04"],
        ),
        # Exchange takes the last day of a month that does not have the day.
        ({"type": "absoluteMonthly", "interval": 1, "dayOfMonth": 30}, ["12-30", "01-30", "02-28"]),
    ],
)
def test_patterns(call: Caller, pattern: dict[str, Any], days: list[str]) -> None:
    limits = {"type": "numbered", "numberOfOccurrences": 3, "startDate": "2026-12-03"}
    make(call, recurrence={"pattern": pattern, "range": limits})
    wrong = call(
        "POST",
        "me/events",
        json=LUNCH | {"recurrence": {"pattern": pattern, "range": limits | {"startDate": "2026-12-04"}}},
    )
    assert code(wrong) == (400, "ErrorPropertyValidationFailure")
    window = {"startDateTime": "2026-12-01T00:00:00Z", "endDateTime": "2027-03-01T00:00:00Z"}
    found = call.get("me/calendarView", **window)["value"]
    assert [e["start"]["dateTime"][5:10] for e in found] == days


TEXT = {"Prefer": 'outlook.timezone="UTC", outlook.body-content-type="text"'}
ONLINE = {"isOnlineMeeting": True, "onlineMeetingProvider": "teamsForBusiness"}


def body_of(call: Caller, event_id: str) -> str:
    """A body as text, in lines without line ends."""
    answer = call("GET", f"me/events/{event_id}", headers=TEXT)
    assert answer.headers["Preference-Applied"] == TEXT["Prefer"]
    body = answer.json()["body"]
    assert body["contentType"] == "text"
    content: str = body["content"].replace("\r\n", "\n")
    assert "\r" not in content
    return content


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        ("text", "a  b\n <c> &amp;", "a  b\n <c> &amp;\n"),
        ("text", "", ""),
        ("html", "<p>One  <b>two</b></p><p>three<br>four</p>", "One two\nthree\nfour\n"),
        (
            "html",
            "<style>p {}</style>5 &lt; 6 <a href='https://x.org/?a&amp;b'>more</a>",
            "5 < 6 more<https://x.org/?a&b>",
        ),
    ],
)
def test_a_body_is_returned_as_text_on_request(call: Caller, kind: str, content: str, text: str) -> None:
    made = make(call, body={"contentType": kind, "content": content})
    assert made["body"]["contentType"] == "html"
    assert body_of(call, made["id"]) == text
    (seen,) = call("GET", "me/calendarView", params=VIEW, headers=TEXT).json()["value"]
    assert seen["body"] == {"contentType": "text", "content": text.replace("\n", "\r\n")}


def test_a_body_without_the_invitation_ends_the_online_meeting(call: Caller) -> None:
    made = make(call, **ONLINE)
    path = f"me/events/{made['id']}"
    kept = {"contentType": "html", "content": "<p>New</p>" + made["body"]["content"]}
    changed = call("PATCH", path, json={"body": kept, "isOnlineMeeting": False}).json()
    assert (changed["isOnlineMeeting"], changed["onlineMeeting"]) == (True, made["onlineMeeting"])
    changed = call("PATCH", path, json={"subject": "Still"}).json()
    assert changed["isOnlineMeeting"]
    plain = {"contentType": "text", "content": f"New {made['onlineMeeting']['joinUrl']}"}
    changed = call("PATCH", path, json={"body": plain}).json()
    assert (changed["isOnlineMeeting"], changed["onlineMeeting"]) == (False, None)
    assert changed["onlineMeetingProvider"] == "unknown"


def test_transaction_id_of_deleted_event_stays_used(call: Caller) -> None:
    first = make(call, transactionId="t-1")
    call("DELETE", f"me/events/{first['id']}")
    other = call("POST", "me/events", json=LUNCH | {"transactionId": "t-1", "subject": "Other"})
    assert other.json()["error"]["@event.existingEventId"] == first["id"]


@pytest.mark.parametrize(
    "change",
    [
        {"start": None},
        {"end": when("2026-12-03T11:00:00")},
        {"start": when("2026-12-03T12:00:00", "Nowhere")},
        {"showAs": "asleep"},
        {"isAllDay": "yes"},
        {"attendees": ["eve@example.com"]},
        {"body": "Hello"},
        {"recurrence": {"pattern": {"type": "never"}, "range": {"type": "noEnd"}}},
    ],
)
def test_an_event_that_makes_no_sense_is_refused(call: Caller, change: dict[str, Any]) -> None:
    assert call("POST", "me/events", json=LUNCH | change).status_code == 400

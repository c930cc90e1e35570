"""Reading and writing events of Microsoft Graph."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

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


def test_a_created_event_is_seen_at_once_and_gone_after_its_deletion(call: Caller) -> None:
    made = make(call)
    assert made["start"] == when("2026-12-03T20:00:00.0000000", "UTC")
    (seen,) = call.get("me/calendarView", **VIEW)["value"]
    assert seen["id"] == made["id"]
    path = f"me/events/{quote(made['id'])}"
    assert call.get(path)["subject"] == "Lunch"
    assert call("DELETE", path).status_code == 204
    assert code(call("DELETE", path)) == (404, "ErrorItemNotFound")
    assert call.get("me/calendarView", **VIEW)["value"] == []


def test_ids_are_good_in_the_whole_mailbox(call: Caller) -> None:
    made = make(call, "me/calendars/AAMkteam/events")
    assert call.get("me/events")["value"] == []
    assert call.get(f"me/events/{made['id']}")["id"] == made["id"]
    assert [e["id"] for e in call.get("me/calendars/AAMkteam/events")["value"]] == [made["id"]]


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


def test_a_patch_changes_what_it_names(call: Caller) -> None:
    made = make(call, body={"contentType": "text", "content": "a < b"}, location={"displayName": "Bar"})
    assert made["bodyPreview"] == "a < b"
    assert made["body"]["contentType"] == "html"
    change = {"subject": "Dinner", "end": when("2026-12-03T15:00:00"), "location": {"displayName": "Inn"}}
    changed = call("PATCH", f"me/events/{made['id']}", json=change).json()
    assert (changed["subject"], changed["bodyPreview"]) == ("Dinner", "a < b")
    assert (changed["start"], changed["end"]["dateTime"]) == (made["start"], "2026-12-03T23:00:00.0000000")
    assert [place["displayName"] for place in changed["locations"]] == ["Inn"]
    assert changed["changeKey"] != made["changeKey"]


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


def test_events_are_found_by_an_extended_property(call: Caller) -> None:
    made = make(call, singleValueExtendedProperties=[{"id": META, "value": "m-42"}])
    make(call)

    def found(value: str) -> list[str]:
        name = "singleValueExtendedProperties"
        text = f"{name}/Any(ep: ep/id eq '{META}' and ep/value eq '{value}')"
        return [e["id"] for e in call.get("me/events", **{"$filter": text})["value"]]

    assert found("M-42") == [made["id"]]
    assert found("m-43") == []


def test_the_same_transaction_twice_makes_one_event(call: Caller) -> None:
    first = make(call, transactionId="t-1")
    assert make(call, transactionId="t-1")["id"] == first["id"]
    other = call("POST", "me/events", json=LUNCH | {"transactionId": "t-1", "subject": "Other"})
    assert code(other) == (400, "ErrorDuplicateTransactionId")
    assert other.json()["error"]["@event.existingEventId"] == first["id"]


def test_a_recurrence_makes_a_series(call: Caller) -> None:
    recurrence = {
        "pattern": {"type": "weekly", "interval": 1, "daysOfWeek": ["thursday"], "firstDayOfWeek": "sunday"},
        "range": {"type": "endDate", "startDate": "2026-12-03", "endDate": "2026-12-17"},
    }
    made = make(call, recurrence=recurrence)
    assert (made["type"], made["recurrence"]) == ("seriesMaster", recurrence)
    window = {"startDateTime": "2026-12-01T00:00:00Z", "endDateTime": "2027-02-01T00:00:00Z"}
    days = [e["start"]["dateTime"][:10] for e in call.get("me/calendarView", **window)["value"]]
    assert days == ["2026-12-03", "2026-12-10", "2026-12-17"]
    instances = call.get(f"me/events/{made['id']}/instances", **window)["value"]
    assert [e["recurrence"] for e in instances] == [None, None, None]
    assert call("DELETE", f"me/events/{instances[1]['id']}").status_code == 204
    assert len(call.get("me/calendarView", **window)["value"]) == 2


@pytest.mark.parametrize(
    ("pattern", "days"),
    [
        ({"type": "daily", "interval": 2}, ["12-03", "12-05", "12-07"]),
        ({"type": "absoluteMonthly", "interval": 1, "dayOfMonth": 3}, ["12-03", "01-03", "02-03"]),
        (
            {"type": "relativeMonthly", "interval": 1, "daysOfWeek": ["thursday"], "index": "first"},
            ["12-03", "01-07", "02-04"],
        ),
    ],
)
def test_patterns(call: Caller, pattern: dict[str, Any], days: list[str]) -> None:
    make(call, recurrence={"pattern": pattern, "range": {"type": "numbered", "numberOfOccurrences": 3}})
    window = {"startDateTime": "2026-12-01T00:00:00Z", "endDateTime": "2027-03-01T00:00:00Z"}
    found = call.get("me/calendarView", **window)["value"]
    assert [e["start"]["dateTime"][5:10] for e in found] == days


def test_an_online_meeting_has_a_link(call: Caller) -> None:
    made = make(call, isOnlineMeeting=True, onlineMeetingProvider="teamsForBusiness")
    assert made["onlineMeeting"]["joinUrl"].startswith("https://teams.microsoft.com/")


TEXT = {"Prefer": 'outlook.timezone="UTC", outlook.body-content-type="text"'}
ONLINE = {"isOnlineMeeting": True, "onlineMeetingProvider": "teamsForBusiness"}
RULE = "_" * 80


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


def test_a_text_is_returned_as_html_with_its_lines_and_spaces(call: Caller) -> None:
    made = make(call, body={"contentType": "text", "content": "a  b\nc < d"})
    assert "a &nbsp;b<br>\r\nc &lt; d" in made["body"]["content"]


def test_an_online_meeting_invites_below_its_description(call: Caller) -> None:
    made = make(call, body={"contentType": "text", "content": "Agenda"}, **ONLINE)
    link = made["onlineMeeting"]["joinUrl"]
    assert "<" not in link
    described, rule, block = body_of(call, made["id"]).partition(RULE)
    assert described.strip() == "Agenda"
    assert rule
    assert f"<{link}>" in block
    assert block.rstrip().endswith(RULE)


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


def test_several_extended_properties_come_together(call: Caller) -> None:
    names = [META, META.replace("metaId", "other"), META.replace("metaId", "third")]
    made = make(call, singleValueExtendedProperties=[{"id": name, "value": name[-5:]} for name in names])
    asked = " or ".join(f"id eq '{name}'" for name in names[:2])
    expand = {"$expand": f"singleValueExtendedProperties($filter={asked})"}
    (seen,) = call.get("me/calendarView", **VIEW, **expand)["value"]
    for event in (seen, call.get(f"me/events/{made['id']}", **expand)):
        assert [entry["id"] for entry in event["singleValueExtendedProperties"]] == names[:2]
    assert "singleValueExtendedProperties" not in call.get("me/calendarView", **VIEW)["value"][0]


def test_transaction_id_of_deleted_event_stays_used(call: Caller) -> None:
    first = make(call, transactionId="t-1")
    call("DELETE", f"me/events/{first['id']}")
    other = call("POST", "me/events", json=LUNCH | {"transactionId": "t-1", "subject": "Other"})
    assert other.json()["error"]["@event.existingEventId"] == first["id"]


def test_attendees_wait_for_an_answer(call: Caller) -> None:
    made = make(call, attendees=[{"emailAddress": {"address": "eve@example.com"}, "type": "optional"}])
    (guest,) = made["attendees"]
    assert (guest["type"], guest["status"]["response"]) == ("optional", "none")


def test_a_stale_etag_is_refused(call: Caller) -> None:
    made = make(call)
    path = f"me/events/{made['id']}"
    match = {"If-Match": made["@odata.etag"]}
    assert call("PATCH", path, json={"subject": "A"}, headers=match).status_code == 200
    stale = [
        call("PATCH", path, json={"subject": "B"}, headers=match),
        call("DELETE", path, headers=match),
    ]
    for answer in stale:
        assert (answer.status_code, answer.json()["error"]["code"]) == (412, "ErrorIrresolvableConflict")
    fresh = {"If-Match": call.get(path)["@odata.etag"]}
    assert call("DELETE", path, headers=fresh).status_code == 204


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


def test_a_calendar_one_may_only_read_takes_no_event(sandbox: Sandbox) -> None:
    calendars = [{"primary": True}, {"id": "AAMkboss", "subject": "Boss", "accessRole": "reader"}]
    call = graph(sandbox, sandbox.account("microsoft", "bob@example.com", calendars=calendars))
    assert code(call("POST", "me/calendars/AAMkboss/events", json=LUNCH)) == (403, "ErrorAccessDenied")


def test_a_deleted_series_takes_its_changed_occurrences_with_it(call: Caller) -> None:
    recurrence = {
        "pattern": {"type": "daily", "interval": 1},
        "range": {"type": "numbered", "startDate": "2026-12-03", "numberOfOccurrences": 4},
    }
    master, other = make(call, recurrence=recurrence), make(call, recurrence=recurrence)
    window = {"startDateTime": "2026-12-01T00:00:00Z", "endDateTime": "2026-12-31T00:00:00Z"}

    def occurrences(series: str) -> list[str]:
        return [
            e["id"] for e in call.get("me/calendarView", **window)["value"] if e["seriesMasterId"] == series
        ]

    for series in (master["id"], other["id"]):
        moved, removed, *_ = occurrences(series)
        change = {"start": when("2026-12-20T12:00:00"), "end": when("2026-12-20T13:00:00")}
        assert call("PATCH", f"me/events/{moved}", json=change).status_code == 200
        assert call("DELETE", f"me/events/{removed}").status_code == 204
    assert call("DELETE", f"me/events/{master['id']}").status_code == 204
    assert occurrences(master["id"]) == []
    assert len(occurrences(other["id"])) == 3
    assert code(call("GET", f"me/events/{master['id']}")) == (404, "ErrorItemNotFound")

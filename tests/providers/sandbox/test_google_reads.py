"""Calendar lists, free and busy times, scopes and tokens of Google Calendar."""

from __future__ import annotations

from typing import Any

import pytest

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import DAY, MEETING, Caller, free_busy, google, reason

AUTH = "https://www.googleapis.com/auth/"
MANY = [{"primary": True}, *({"id": f"c{n}", "subject": f"Calendar {n}"} for n in range(6))]


def test_pages_may_be_short_or_empty_and_still_go_on(sandbox: Sandbox) -> None:
    call = google(sandbox, sandbox.account("google", "ada@example.com", calendars=MANY))
    pages, token = [], ""
    while True:
        page = call.get("users/me/calendarList", maxResults=3, **({"pageToken": token} if token else {}))
        pages.append([entry["id"] for entry in page["items"]])
        if not (token := page.get("nextPageToken", "")):
            break
        assert "nextSyncToken" not in page
    assert [len(page) for page in pages] == [2, 0, 3, 2]
    assert [i for page in pages for i in page] == ["ada@example.com", *(f"c{n}" for n in range(6))]


def test_what_is_false_is_left_out_of_an_entry(sandbox: Sandbox) -> None:
    calendars = [{"primary": True}, {"id": "team", "subject": "Team", "accessRole": "reader"}]
    call = google(sandbox, sandbox.account("google", "ada@example.com", calendars=calendars))
    team = call.get("users/me/calendarList")["items"][1]
    assert "primary" not in team
    assert "selected" not in team
    assert [e["id"] for e in call.get("users/me/calendarList", minAccessRole="writer")["items"]] == [
        "ada@example.com"
    ]


def test_a_mask_keeps_only_the_fields_named(sandbox: Sandbox) -> None:
    call = google(sandbox, sandbox.account("google", "ada@example.com"))
    answer = call.get("users/me/calendarList", fields="items(id,conferenceProperties/*),nextPageToken")
    assert answer == {
        "items": [
            {
                "id": "ada@example.com",
                "conferenceProperties": {"allowedConferenceSolutionTypes": ["hangoutsMeet"]},
            }
        ]
    }


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("calendar", {"list", "busy", "events", "write"}),
        ("calendar.readonly", {"list", "busy", "events"}),
        ("calendar.events", {"events", "write"}),
        ("calendar.freebusy", {"busy"}),
        ("calendar.calendarlist.readonly", {"list"}),
    ],
)
def test_each_method_wants_one_of_its_scopes(sandbox: Sandbox, scope: str, allowed: set[str]) -> None:
    call = google(sandbox, sandbox.account("google", "ada@example.com", scope=[AUTH + scope]))
    event = {"start": {"date": "2026-12-03"}, "end": {"date": "2026-12-04"}}
    answers = {
        "list": call("GET", "users/me/calendarList"),
        "busy": call("POST", "freeBusy", json={**DAY, "items": []}),
        "events": call("GET", "calendars/primary/events"),
        "write": call("POST", "calendars/primary/events", json=event),
    }
    assert {name for name, answer in answers.items() if answer.status_code == 200} == allowed
    for name in answers.keys() - allowed:
        assert reason(answers[name]) == (403, "insufficientPermissions")


BUSY = [{"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}]
ADA = "ada@example.com"


def ada(sandbox: Sandbox, *events: dict[str, Any], **more: Any) -> Caller:
    return google(sandbox, sandbox.account("google", ADA, events=events, **more))


def test_events_are_merged_and_clipped_to_the_window(sandbox: Sandbox) -> None:
    events = [
        {"start": "2026-12-02T22:00:00Z", "end": "2026-12-03T01:00:00Z"},
        {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T09:30:00Z"},
        {"start": "2026-12-03T09:30:00Z", "end": "2026-12-03T10:00:00Z"},
        {"start": "2026-12-03T12:00:00Z", "end": "2026-12-03T14:00:00Z"},
        {"start": "2026-12-03T13:00:00Z", "end": "2026-12-03T13:30:00Z"},
        {"start": "2026-12-03T15:00:00Z", "end": "2026-12-03T15:00:00Z"},
        {"start": "2026-12-03T23:00:00Z", "end": "2026-12-04T02:00:00Z"},
    ]
    busy = free_busy(ada(sandbox, *events), "primary")["primary"]["busy"]
    assert [(b["start"][11:16], b["end"][11:16]) for b in busy] == [
        ("00:00", "01:00"),
        ("09:00", "10:00"),
        ("12:00", "14:00"),
        ("23:00", "00:00"),
    ]


@pytest.mark.parametrize(
    ("event", "is_busy"),
    [
        ({"showAs": "busy"}, True),
        ({"showAs": "oof"}, True),
        ({"showAs": "tentative"}, True),
        ({"showAs": "free"}, False),
        ({"showAs": "workingElsewhere"}, False),
        ({"status": "cancelled"}, False),
        ({"isCancelled": True}, False),
        ({"responseStatus": "declined"}, False),
        ({"responseStatus": "tentative"}, True),
        ({"responseStatus": "needsAction"}, True),
    ],
)
def test_what_makes_an_event_busy(sandbox: Sandbox, event: dict[str, Any], is_busy: bool) -> None:
    answer = free_busy(ada(sandbox, MEETING | event), "primary")
    assert answer == {"primary": {"busy": BUSY if is_busy else []}}


def test_a_series_is_expanded_on_the_wall_clock_of_its_zone(sandbox: Sandbox) -> None:
    # Berlin leaves summer time on the 25th of October 2026.
    event = {
        "start": "2026-10-19T09:00:00",
        "end": "2026-10-19T10:00:00",
        "recurrence": ["RRULE:FREQ=WEEKLY;COUNT=3"],
    }
    call = ada(sandbox, event, time_zone="Europe/Berlin")
    answer = free_busy(call, "primary", timeMin="2026-10-18T00:00:00Z", timeMax="2026-11-30T00:00:00Z")
    assert [b["start"] for b in answer["primary"]["busy"]] == [
        "2026-10-19T07:00:00Z",
        "2026-10-26T08:00:00Z",
        "2026-11-02T08:00:00Z",
    ]


def test_more_than_fifty_calendars_are_refused_one_by_one(sandbox: Sandbox) -> None:
    ids = ["primary", *(f"c{n}@group.calendar.google.com" for n in range(50))]
    answer = free_busy(ada(sandbox, MEETING), *ids)
    assert len(answer) == 51
    assert answer["primary"]["errors"][0]["reason"] == "tooManyCalendarsRequested"
    assert free_busy(ada(sandbox, MEETING), *ids[:50])["primary"] == {"busy": BUSY}


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ({"timeMin": None}, "required"),
        ({"timeMax": None}, "required"),
        ({"timeMin": "2026-12-04T00:00:00Z"}, "timeRangeEmpty"),
        ({"timeMin": "2026-12-03T00:00:00"}, "badRequest"),
        ({"timeMin": "yesterday"}, "badRequest"),
        ({"timeMax": "2027-03-06T00:00:00Z"}, "timeRangeTooLong"),
        ({"items": "primary"}, "badRequest"),
        ({"timeZone": "Middle/Earth"}, "invalid"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(
    sandbox: Sandbox, window: dict[str, Any], expected: str
) -> None:
    asked = {**DAY, "items": [{"id": "primary"}], **window}
    assert reason(ada(sandbox)("POST", "freeBusy", json=asked)) == (400, expected)


def test_ninety_two_days_are_allowed(sandbox: Sandbox) -> None:
    asked = {"timeMin": "2026-12-03T00:00:00+01:00", "timeMax": "2027-03-05T00:00:00+01:00"}
    assert free_busy(ada(sandbox), "primary", **asked) == {"primary": {"busy": []}}

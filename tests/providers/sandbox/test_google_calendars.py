"""Calendar list, scopes and tokens of Google Calendar."""

from __future__ import annotations

import pytest

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import DAY, google, reason

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

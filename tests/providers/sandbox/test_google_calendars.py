"""Calendar list, scopes and tokens of Google Calendar."""

from __future__ import annotations

import pytest

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import DAY, Caller, google, reason

AUTH = "https://www.googleapis.com/auth/"
MANY = [{"primary": True}, *({"id": f"c{n}", "subject": f"Calendar {n}"} for n in range(6))]


def test_the_primary_calendars_id_is_the_address(sandbox: Sandbox) -> None:
    call = google(sandbox, sandbox.account("google", "ada@example.com", time_zone="Europe/Berlin"))
    (entry,) = call.get("users/me/calendarList")["items"]
    assert (entry["id"], entry["primary"], entry["accessRole"]) == ("ada@example.com", True, "owner")
    assert call.get("calendars/primary")["id"] == "ada@example.com"
    assert call.get("users/me/calendarList/ada%40example.com") == entry
    assert call.get("users/me/settings/timezone")["value"] == "Europe/Berlin"


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


def test_a_missing_scope_is_reported_by_the_front_end(sandbox: Sandbox) -> None:
    call = google(sandbox, sandbox.account("google", "ada@example.com", scope=AUTH + "calendar.events"))
    error = call("POST", "freeBusy", json={**DAY, "items": []}).json()["error"]
    assert error["status"] == "PERMISSION_DENIED"
    assert error["details"][0]["reason"] == "ACCESS_TOKEN_SCOPE_INSUFFICIENT"
    assert error["details"][0]["metadata"]["method"] == "calendar.v3.Freebusy.Query"


def test_a_dead_token_and_no_token_are_401(sandbox: Sandbox) -> None:
    account = sandbox.account("google", "ada@example.com", expires_in=0)
    for call in (google(sandbox, account), Caller(f"{sandbox.url}/google/calendar/v3", "nonsense")):
        answer = call("GET", "users/me/calendarList")
        assert reason(answer) == (401, "authError")
        assert "error=invalid_token" in answer.headers["WWW-Authenticate"]
    silent = Caller(f"{sandbox.url}/google/calendar/v3", "")("GET", "users/me/calendarList")
    assert reason(silent) == (401, "required")


def test_a_token_of_the_other_provider_opens_nothing(sandbox: Sandbox) -> None:
    account = sandbox.account("microsoft", "ada@example.com")
    assert reason(google(sandbox, account)("GET", "users/me/calendarList")) == (401, "authError")


def test_answers_carry_their_etag_and_type(sandbox: Sandbox) -> None:
    call = google(sandbox, sandbox.account("google", "ada@example.com"))
    answer = call("GET", "users/me/calendarList")
    assert answer.headers["ETag"] == answer.json()["etag"]
    assert answer.headers["Content-Type"] == "application/json; charset=UTF-8"
    assert answer.text.startswith("{\n")
    assert "\n" not in call("GET", "users/me/calendarList", params={"prettyPrint": "false"}).text

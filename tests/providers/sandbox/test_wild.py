"""Undocumented answers of real providers, as the sandbox sends them."""

from __future__ import annotations

import json

import pytest
import requests

from tests.providers.sandbox.callers import DAY, MEETING, VIEW, google, graph

ADA = "ada@example.com"


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_until_in_utc_includes_the_occurrence_of_that_instant(sandbox, provider):
    """It begins at 10:00 in Berlin, which is 09:00 in UTC."""
    series = {
        "subject": "Daily",
        "start": "2026-12-03T09:00:00Z",
        "end": "2026-12-03T09:30:00Z",
        "timeZone": "Europe/Berlin",
        "recurrence": "RRULE:FREQ=DAILY;UNTIL=20261205T090000Z",
    }
    account = sandbox.account(provider, ADA, time_zone="Europe/Berlin", events=[series])
    if provider == "google":
        query = {"timeMin": "2026-12-01T00:00:00Z", "timeMax": "2026-12-10T00:00:00Z", "singleEvents": "true"}
        found = google(sandbox, account).get("calendars/primary/events", **query)["items"]
    else:
        query = {"startDateTime": "2026-12-01T00:00:00Z", "endDateTime": "2026-12-10T00:00:00Z"}
        found = graph(sandbox, account).get("me/calendarView", **query)["value"]
    assert len(found) == 3


def test_a_broken_part_spoils_the_batch_and_not_the_call_itself(sandbox):
    account = sandbox.account("microsoft", ADA, events=[MEETING])
    call = graph(sandbox, account)
    sandbox.fault(operation="microsoft.calendarView.list", wild="brokenPart")
    path = f"me/calendarView?startDateTime={VIEW['startDateTime']}&endDateTime={VIEW['endDateTime']}"
    part = {"id": "1", "method": "GET", "url": f"/{path}"}
    answer = call("POST", "$batch", json={"requests": [part]})
    assert answer.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        json.loads(answer.content)
    assert len(call("GET", path).json()["value"]) == 1


def test_damage_to_bytes_is_in_the_bytes(sandbox):
    call = google(sandbox, sandbox.account("google", ADA))
    sandbox.fault(provider="google", wild="byteOrderMark", times=1)
    assert call("GET", "users/me/calendarList").content.startswith(b"\xef\xbb\xbf{")
    sandbox.fault(provider="google", wild="loneSurrogate", times=1)
    assert b'"summary": "\\ud83d' in call("GET", "users/me/calendarList").content
    assert call("POST", "freeBusy", json={**DAY, "items": []}).status_code == 200


def test_a_hidden_main_calendar_is_only_on_the_list_of_hidden_ones(sandbox):
    call = google(sandbox, sandbox.account("google", ADA))
    sandbox.fault(provider="google", wild="hiddenMain")
    assert call.get("users/me/calendarList")["items"] == []
    assert [each["hidden"] for each in call.get("users/me/calendarList", showHidden="true")["items"]] == [
        True
    ]


def test_an_unknown_kind_is_refused(sandbox):
    answer = requests.post(f"{sandbox.url}/sandbox/faults", json={"wild": "odd"}, timeout=10)
    assert answer.status_code == 400
    assert "loneSurrogate" in answer.json()["error"]

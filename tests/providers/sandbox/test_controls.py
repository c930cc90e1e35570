"""The sandbox's control API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import MEETING, VIEW, free_busy, google, graph

ADA = "ada@example.com"
BULK: dict[str, Any] = {"events_per_account": 20, "start": "2026-12-07", "days": 14}
FORTNIGHT = {"timeMin": "2026-12-07T00:00:00Z", "timeMax": "2026-12-21T00:00:00Z"}


def test_an_account_has_one_calendar_utc_and_every_scope_by_default(sandbox: Sandbox) -> None:
    account = sandbox.account("google", ADA)
    assert account.scope.split() == [
        "openid",
        "https://www.googleapis.com/auth/userinfo.email",
        "https://www.googleapis.com/auth/calendar",
    ]
    assert timedelta(minutes=59) < account.expires_at - datetime.now(UTC) <= timedelta(hours=1)
    (calendar,) = google(sandbox, account).get("users/me/calendarList")["items"]
    assert calendar["timeZone"] == "UTC"


def test_a_scope_may_be_a_list_or_a_string(sandbox: Sandbox) -> None:
    words = ["Calendars.Read", "offline_access"]
    assert sandbox.account("microsoft", ADA, scope=words).scope == "Calendars.Read offline_access"
    assert sandbox.account("microsoft", ADA, scope=" ".join(words)).scope == "Calendars.Read offline_access"


def test_times_without_an_offset_are_in_the_zone_of_the_account(sandbox: Sandbox) -> None:
    account = sandbox.account("microsoft", ADA, time_zone="Asia/Kolkata", events=[MEETING])
    (event,) = graph(sandbox, account).get("me/calendarView", **VIEW)["value"]
    assert event["start"]["dateTime"] == "2026-12-03T03:30:00.0000000"


def test_the_same_account_again_replaces_the_first(sandbox: Sandbox) -> None:
    first = sandbox.account("google", ADA, events=[MEETING])
    second = sandbox.account("google", ADA.upper())
    assert google(sandbox, first)("GET", "users/me/calendarList").status_code == 401
    assert free_busy(google(sandbox, second), "primary") == {"primary": {"busy": []}}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"provider": "yahoo", "email": ADA}, "provider is google or microsoft"),
        ({"provider": "google"}, "email is missing"),
        ({"timeZone": "Nowhere"}, "no time zone is called 'Nowhere'"),
        ({"events": [{"start": "soon", "end": "later"}]}, "events: start is not a time: 'soon'"),
        ({"events": [MEETING | {"calendarId": "x"}]}, "events: no calendar 'x'"),
        (
            {"events": [MEETING | {"showAs": "asleep"}]},
            "events: showAs is one of free, tentative, busy, oof, workingElsewhere",
        ),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(
    sandbox: Sandbox, spec: dict[str, Any], problem: str
) -> None:
    body = spec if "provider" in spec else {"provider": "google", "email": ADA, **spec}
    answer = requests.post(f"{sandbox.url}/sandbox/accounts", json=body, timeout=10)
    assert (answer.status_code, answer.json()) == (400, {"error": problem})


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_accounts_in_bulk_are_the_same_for_the_same_seed(sandbox: Sandbox, provider: str) -> None:
    def meetings(seed: int) -> list[Any]:
        made = sandbox.accounts_in_bulk(provider, 3, email_pattern="u{n}@example.com", seed=seed, **BULK)
        assert [account.email for account in made] == [f"u{n}@example.com" for n in range(3)]
        if provider == "google":
            return [free_busy(google(sandbox, account), "primary", **FORTNIGHT) for account in made]
        window = {"startDateTime": FORTNIGHT["timeMin"], "endDateTime": FORTNIGHT["timeMax"]}
        query = {**window, "$top": 1000, "$select": "subject,start,end"}
        return [
            [
                (e["subject"], e["start"], e["end"])
                for e in graph(sandbox, a).get("me/calendarView", **query)["value"]
            ]
            for a in made
        ]

    first = meetings(7)
    assert first == meetings(7)
    assert first != meetings(8)
    assert first[0] != first[1]


def test_bulk_meetings_keep_to_working_hours_and_days(sandbox: Sandbox) -> None:
    made = sandbox.accounts_in_bulk("google", 5, email_pattern="u%d@example.com", **BULK)
    for account in made:
        call = google(sandbox, account)
        events = call.get("calendars/primary/events", maxResults=2500)["items"]
        assert len(events) == 20
        for event in events:
            start = datetime.fromisoformat(event["start"]["dateTime"])
            end = datetime.fromisoformat(event["end"]["dateTime"])
            assert start.weekday() < 5
            assert start.hour >= 8
            assert end <= start.replace(hour=18, minute=0)
            assert start.minute % 15 == 0


def test_requests_are_counted_until_forgotten(sandbox: Sandbox) -> None:
    call = google(sandbox, sandbox.account("google", ADA))
    free_busy(call, "primary")
    free_busy(call, "primary")
    call("GET", "users/me/calendarList")
    call("GET", "nowhere")
    counted = sandbox.requests()
    assert counted.total == 4
    assert counted.by_operation == {"google.freebusy.query": 2, "google.calendarList.list": 1}
    sandbox.forget_requests()
    assert sandbox.requests().total == 0


def test_revoking_an_unknown_address_is_a_404(sandbox: Sandbox) -> None:
    with pytest.raises(requests.HTTPError, match="404"):
        sandbox.revoke("nosuch@example.com")


def test_forgetting_everything_ends_tokens_faults_and_counts(sandbox: Sandbox) -> None:
    account = sandbox.account("google", ADA)
    sandbox.fault(status=500)
    sandbox.reset()
    assert google(sandbox, account)("GET", "users/me/calendarList").status_code == 401
    assert sandbox.requests().total == 1


def test_health_route_answers_ok(sandbox: Sandbox) -> None:
    assert requests.get(f"{sandbox.url}/sandbox/health", timeout=10).json() == {"status": "ok"}
    assert requests.get(f"{sandbox.url}/elsewhere", timeout=10).status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        ("accounts", {"calendars": {}}, "calendars is not an array"),
        ("accounts", {"calendars": [{"primary": "yes"}]}, "calendars[0].primary is not true or false"),
        ("accounts", {"events": [None]}, "events holds null"),
        ("accounts", {"expiresIn": True}, "expiresIn is not a whole number"),
        ("accounts", {"scope": 5}, "scope is a list of names, or a text with spaces between them"),
        ("accounts/bulk", {"count": "many"}, "count is not a whole number"),
        ("accounts/bulk", {"emailPattern": "x", "count": 2, "start": "2026-12-01"}, "emailPattern needs {n}"),
        ("faults", {"latencyMs": "long"}, "latencyMs is not a number"),
        ("faults", {"body": "burnt"}, "body is truncated, reset, html, pending, lost or doubled"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(sandbox: Sandbox, path: str, body: Any, problem: str) -> None:
    known = {} if path == "faults" else {"provider": "google", "email": ADA}
    answer = requests.post(f"{sandbox.url}/sandbox/{path}", json={**known, **body}, timeout=10)
    assert (answer.status_code, answer.json()) == (400, {"error": problem})

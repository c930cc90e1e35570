"""Faults and latency on demand."""

from __future__ import annotations

import time
from typing import Any

import pytest
import requests

from providers.sandbox.client import Sandbox, SandboxAccount
from tests.providers.sandbox.callers import (
    DAY,
    VIEW,
    Caller,
    code,
    free_busy,
    google,
    graph,
    reason,
    token_call,
)

ADA, BOB = "ada@example.com", "bob@example.com"
CALENDARS = [{"primary": True}, {"id": "team", "subject": "Team"}]
FREE = {"busy": []}


@pytest.fixture
def ada(sandbox: Sandbox) -> SandboxAccount:
    return sandbox.account("google", ADA, calendars=CALENDARS)


@pytest.fixture
def call(sandbox: Sandbox, ada: SandboxAccount) -> Caller:
    return google(sandbox, ada)


def ask(call: Caller, *ids: str) -> requests.Response:
    return call("POST", "freeBusy", json={**DAY, "items": [{"id": i} for i in ids or ("primary",)]})


def test_a_fault_counts_down(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(email=ADA, status=503, times=2)
    assert [ask(call).status_code for _ in range(3)] == [503, 503, 200]


def test_a_fault_without_times_stays_until_it_is_lifted(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(provider="google", status=500)
    assert [ask(call).status_code for _ in range(3)] == [500, 500, 500]
    sandbox.clear_faults()
    assert ask(call).status_code == 200


def test_the_most_specific_fault_answers(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(email=ADA, operation="google.freebusy.query", status=429)
    sandbox.fault(email=ADA, status=503)
    sandbox.fault(provider="google", status=500)
    assert ask(call).status_code == 429
    assert call("GET", "users/me/calendarList").status_code == 503
    other = google(sandbox, sandbox.account("google", "eve@example.com"))
    assert ask(other).status_code == 500


def test_others_are_left_alone(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(email=BOB, status=500)
    sandbox.fault(provider="microsoft", status=500)
    sandbox.fault(operation="google.events.list", status=500)
    sandbox.fault(calendar_id="elsewhere", status=500)
    assert ask(call).status_code == 200


def test_latency_and_a_status_of_another_fault_go_together(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(provider="google", latency_ms=150)
    sandbox.fault(email=ADA, status=503)
    began = time.monotonic()
    assert ask(call).status_code == 503
    assert time.monotonic() - began >= 0.15


def test_latency_alone_answers_as_usual(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(latency_ms=150, times=1)
    began = time.monotonic()
    assert ask(call).status_code == 200
    assert time.monotonic() - began >= 0.15


def test_latency_counts_down_too(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(latency_ms=60_000, times=1)
    call.patience = 0.3
    with pytest.raises(requests.ReadTimeout):
        ask(call)
    call.patience = 10
    assert ask(call).status_code == 200


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"status": 429, "retry_after": 3}, (429, "rateLimitExceeded")),
        ({"status": 403, "reason": "userRateLimitExceeded"}, (403, "userRateLimitExceeded")),
        ({"reason": "quotaExceeded"}, (403, "quotaExceeded")),
        ({"status": 403}, (403, "forbidden")),
        ({"status": 503}, (503, "backendError")),
        ({"status": 401}, (401, "authError")),
        ({"reason": "insufficientPermissions"}, (403, "insufficientPermissions")),
    ],
)
def test_googles_errors(sandbox: Sandbox, call: Caller, fault: Any, expected: tuple[int, str]) -> None:
    sandbox.fault(email=ADA, **fault)
    answer = ask(call)
    assert reason(answer) == expected
    assert answer.headers.get("Retry-After") == ("3" if "retry_after" in fault else None)
    assert ("WWW-Authenticate" in answer.headers) == (expected[1] in ("authError", "insufficientPermissions"))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"status": 429, "retry_after": 3}, (429, "ApplicationThrottled")),
        ({"status": 403}, (403, "ErrorAccessDenied")),
        ({"status": 503}, (503, "serviceNotAvailable")),
        ({"status": 401}, (401, "InvalidAuthenticationToken")),
        ({"status": 504}, (504, "UnknownError")),
        ({"reason": "MailboxNotEnabledForRESTAPI"}, (404, "MailboxNotEnabledForRESTAPI")),
    ],
)
def test_graphs_errors(sandbox: Sandbox, fault: Any, expected: tuple[int, str]) -> None:
    call = graph(sandbox, sandbox.account("microsoft", BOB))
    sandbox.fault(email=BOB, **fault)
    answer = call("GET", "me/calendars")
    assert code(answer) == expected
    assert answer.json()["error"]["innerError"]["request-id"] == answer.headers["request-id"]
    assert answer.headers.get("Retry-After") == ("3" if "retry_after" in fault else None)


def test_a_calendars_fault_is_reported_inside_free_busy(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(email=ADA, calendar_id="team", reason="internalError", times=1)
    answer = free_busy(call, "primary", "team")
    assert answer["primary"] == FREE
    assert answer["team"]["errors"] == [{"domain": "global", "reason": "internalError"}]
    assert free_busy(call, "team")["team"] == FREE


@pytest.mark.parametrize(("status", "word"), [(404, "notFound"), (500, "internalError")])
def test_a_calendars_status_becomes_googles_word_for_it(
    sandbox: Sandbox, call: Caller, status: int, word: str
) -> None:
    sandbox.fault(calendar_id="team", status=status)
    assert free_busy(call, "team")["team"]["errors"][0]["reason"] == word
    assert call("GET", "calendars/team/events").status_code == status


def test_calendar_fault_with_status_fails_the_whole_call(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(calendar_id="team", operation="google.freebusy.query", status=500)
    assert ask(call, "primary").status_code == 200
    assert ask(call, "primary", "team").status_code == 500


@pytest.mark.parametrize("said", ["primary", ADA])
@pytest.mark.parametrize("asked", ["primary", ADA])
def test_primary_and_the_real_id_are_one_calendar(
    sandbox: Sandbox, call: Caller, said: str, asked: str
) -> None:
    sandbox.fault(email=ADA, calendar_id=said, reason="internalError")
    assert free_busy(call, asked)[asked]["errors"][0]["reason"] == "internalError"
    assert free_busy(call, "team")["team"] == FREE


def test_at_graph_too(sandbox: Sandbox) -> None:
    call = graph(sandbox, sandbox.account("microsoft", BOB))
    (calendar,) = call.get("me/calendars")["value"]
    sandbox.fault(email=BOB, calendar_id=calendar["id"], status=404)
    assert call("GET", "me/calendarView", params=VIEW).status_code == 404
    sandbox.clear_faults()
    sandbox.fault(email=BOB, calendar_id="primary", status=404)
    assert call("GET", f"me/calendars/{calendar['id']}/calendarView", params=VIEW).status_code == 404


def test_a_truncated_answer_ends_before_its_length(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(email=ADA, body="truncated", times=1)
    with pytest.raises(requests.RequestException):
        ask(call)
    assert ask(call).status_code == 200


def test_a_reset_connection_gives_no_answer(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(email=ADA, body="reset", times=1)
    with pytest.raises(requests.ConnectionError) as broken:
        ask(call)
    assert "reset by peer" in str(broken.value)
    assert ask(call).status_code == 200


@pytest.mark.parametrize("status", [200, 502])
def test_a_page_of_html_instead_of_json(sandbox: Sandbox, call: Caller, status: int) -> None:
    sandbox.fault(email=ADA, status=status, body="html")
    answer = ask(call)
    assert answer.status_code == status
    assert answer.headers["Content-Type"].startswith("text/html")
    assert answer.text.startswith("<!DOCTYPE html>")


def test_html_without_a_status_is_a_200(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(email=ADA, body="html")
    assert ask(call).status_code == 200


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_token_endpoints_can_fail_too(sandbox: Sandbox, provider: str) -> None:
    account = sandbox.account(provider, "eve@example.com")
    form = {"grant_type": "refresh_token", "refresh_token": account.refresh_token}
    sandbox.fault(email="eve@example.com", operation=f"{provider}.token", status=503, times=1)
    assert token_call(sandbox, provider, **form).status_code == 503
    sandbox.fault(operation=f"{provider}.token", reason="invalid_grant", times=1)
    gone = token_call(sandbox, provider, **form)
    assert (gone.status_code, gone.json()["error"]) == (400, "invalid_grant")
    assert token_call(sandbox, provider, **form).status_code == 200


def test_what_is_struck_is_still_counted(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(email=ADA, status=503)
    ask(call)
    assert sandbox.requests().by_operation == {"google.freebusy.query": 1}


def test_applied_faults_are_counted(sandbox: Sandbox, call: Caller) -> None:
    ask(call)
    assert sandbox.requests().struck == 0
    for fault in ({"status": 503}, {"latency_ms": 1}, {"calendar_id": ADA, "reason": "backendError"}):
        sandbox.clear_faults()
        sandbox.forget_requests()
        sandbox.fault(email=ADA, **fault)
        ask(call)
        assert sandbox.requests().struck == 1
    sandbox.forget_requests()
    assert sandbox.requests().struck == 0


def test_an_unknown_fault_is_refused(sandbox: Sandbox) -> None:
    answer = requests.post(f"{sandbox.url}/sandbox/faults", json={"latency": 5}, timeout=10)
    assert (answer.status_code, answer.json()) == (400, {"error": "a fault has no latency"})

"""Faults and latency on demand."""

from __future__ import annotations

import time
from typing import Any

import pytest
import requests

from providers.sandbox.client import Sandbox, SandboxAccount
from tests.providers.sandbox.callers import (
    DAY,
    Caller,
    code,
    google,
    graph,
    reason,
)

ADA, BOB = "ada@example.com", "bob@example.com"
CALENDARS = [{"primary": True}, {"id": "team", "subject": "Team"}]


@pytest.fixture
def ada(sandbox: Sandbox) -> SandboxAccount:
    return sandbox.account("google", ADA, calendars=CALENDARS)


@pytest.fixture
def call(sandbox: Sandbox, ada: SandboxAccount) -> Caller:
    return google(sandbox, ada)


def ask(call: Caller, *ids: str) -> requests.Response:
    return call("POST", "freeBusy", json={**DAY, "items": [{"id": i} for i in ids or ("primary",)]})


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


def test_calendar_fault_with_status_fails_the_whole_call(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(calendar_id="team", operation="google.freebusy.query", status=500)
    assert ask(call, "primary").status_code == 200
    assert ask(call, "primary", "team").status_code == 500

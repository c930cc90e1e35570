"""The fields of the client's errors, and the class for each status."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from almanac_client import (
    Conflict,
    ConnectionEnded,
    Forbidden,
    Invalid,
    KeyRefused,
    NotFound,
    OutcomeUnknown,
    RateLimited,
    ScopesMissing,
    Unavailable,
    UnderWay,
    Unreadable,
)
from almanac_client.errors import RequestFailed, error_of

FAILED = [
    {
        "calendarId": "primary",
        "provider": "google",
        "connectionId": "5f0c7a3e9b1d4c62a8e04f7d91b3c5aa",
        "reason": "rateLimited",
        "code": "rateLimited",
        "message": "Slow down",
    }
]


def error(status: int, code: str, headers: dict[str, str] | None = None, **fields: Any) -> RequestFailed:
    body = {"data": None, "error": "A sentence", "code": code, **fields}
    return error_of(status, httpx2.Headers(headers or {}), json.dumps(body).encode(), "GET /users")


def test_an_error_has_the_fields_of_its_body():
    found = error(
        429,
        "rateLimited",
        {"Retry-After": "7", "X-Request-Id": "abc"},
        reason="rateLimited",
        failedCalendars=FAILED,
        retryAfter=7,
    )

    assert (str(found), found.status, found.code, found.reason) == (
        "A sentence",
        429,
        "rateLimited",
        "rateLimited",
    )
    assert [each.as_json() for each in found.failed_calendars] == FAILED
    assert (found.retry_after, found.param) == (7, None)
    assert found.request_id == "abc"


def test_an_invalid_request_names_the_field():
    assert error(400, "validationFailed", param="schedules.0.start").param == "schedules.0.start"


@pytest.mark.parametrize(
    ("headers", "fields", "seconds"),
    [
        ({"Retry-After": "3"}, {"retryAfter": 5}, 3),
        ({}, {"retryAfter": 5}, 5),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, 0),
        ({}, {}, None),
    ],
)
def test_the_seconds_to_wait_are_in_the_header_or_in_the_body(headers, fields, seconds):
    assert error(503, "overloaded", headers, **fields).retry_after == seconds


@pytest.mark.parametrize(
    ("status", "code", "headers", "fields", "kind"),
    [
        (400, "rangeTooLarge", {}, {}, Invalid),
        (401, "apiKeyInvalid", {"WWW-Authenticate": "Bearer"}, {}, KeyRefused),
        (401, "authorizationInvalid", {}, {"reason": "authorizationInvalid"}, ConnectionEnded),
        (403, "keyReadOnly", {}, {}, Forbidden),
        (403, "insufficientScopes", {}, {"operation": "calendar.events.list"}, ScopesMissing),
        (403, "accessDenied", {}, {"operation": "calendar.events.list"}, Forbidden),
        (404, "noConnectedCalendars", {}, {}, NotFound),
        (409, "userExists", {}, {}, Conflict),
        (409, "idempotencyKeyInUse", {"Retry-After": "1"}, {"retryAfter": 1}, UnderWay),
        (413, "bodyTooLarge", {}, {}, Invalid),
        (422, "idempotencyKeyReused", {}, {}, Invalid),
        (429, "quotaExceeded", {"Retry-After": "1"}, {"quota": "waitingReads"}, RateLimited),
        (429, "keyRateLimited", {"Retry-After": "1"}, {"retryAfter": 1}, RateLimited),
        (502, "outcomeUnknown", {}, {"reason": "providerError"}, OutcomeUnknown),
        (503, "noWorker", {}, {}, Unavailable),
    ],
)
def test_each_error_has_its_class_and_code(status, code, headers, fields, kind):
    found = error(status, code, headers, **fields)

    assert (type(found), found.code) == (kind, code)


def test_an_answer_that_is_not_almanacs_has_no_code():
    found = error_of(404, {}, b"<html>", "GET /users")

    assert (type(found), found.code, found.param, found.retry_after) == (Unreadable, None, None, None)

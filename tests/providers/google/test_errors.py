"""Google's error answers: two formats, one exception for each error.

https://developers.google.com/workspace/calendar/api/guides/errors
"""

from __future__ import annotations

from typing import Any

import pytest

from providers.errors import (
    AccessDenied,
    AuthorizationInvalid,
    InsufficientScopes,
    InvalidCalendarId,
    NotFound,
    ProjectRateLimited,
    ProviderError,
    ProviderNotConfigured,
    RateLimited,
    Unavailable,
)
from providers.google.errors import error_for
from providers.http.calls import HttpReply


def back_end(code: int, reason: str, message: str = "", domain: str = "global") -> dict[str, Any]:
    detail = {"domain": domain, "reason": reason, "message": message}
    return {"error": {"errors": [detail], "code": code, "message": message}}


SCOPE = {
    "error": {
        "code": 403,
        "message": "Request had insufficient authentication scopes.",
        "errors": [
            {"message": "Insufficient Permission", "domain": "global", "reason": "insufficientPermissions"}
        ],
        "status": "PERMISSION_DENIED",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
                "domain": "googleapis.com",
            }
        ],
    }
}
QUOTA = {
    "error": {
        "code": 403,
        "status": "PERMISSION_DENIED",
        "details": [
            {"reason": "RATE_LIMIT_EXCEEDED", "metadata": {"quota_limit": "defaultPerMinutePerUser"}}
        ],
    }
}


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, back_end(401, "authError", "Invalid Credentials"), AuthorizationInvalid),
        (403, SCOPE, InsufficientScopes),
        (403, QUOTA, RateLimited),
        (403, back_end(403, "rateLimitExceeded", domain="usageLimits"), RateLimited),
        (403, back_end(403, "userRateLimitExceeded", domain="usageLimits"), RateLimited),
        (403, back_end(403, "quotaExceeded", domain="usageLimits"), RateLimited),
        (429, back_end(429, "rateLimitExceeded", domain="usageLimits"), RateLimited),
        (403, back_end(403, "requiredAccessLevel", domain="calendar"), AccessDenied),
        (403, back_end(403, "forbidden"), AccessDenied),
        (403, back_end(403, "notYetInvented"), AccessDenied),
        (404, back_end(404, "notFound", "Not Found"), NotFound),
        (410, back_end(410, "deleted"), NotFound),
        (400, back_end(400, "timeRangeTooLong", domain="calendar"), ProviderError),
        (400, back_end(400, "invalid", "Invalid resource id value."), InvalidCalendarId),
        (400, back_end(400, "invalid", "Invalid Value"), ProviderError),
        (409, back_end(409, "duplicate"), ProviderError),
        (500, back_end(500, "backendError"), Unavailable),
        (502, None, Unavailable),
        # A front end's page, or nothing: not an answer of the calendar.
        (403, None, Unavailable),
        *(
            (403, back_end(403, reason, domain="usageLimits"), RateLimited)
            for reason in (
                "variableTermLimitExceeded",
                "servingLimitExceeded",
                "concurrentLimitExceeded",
                "limitExceeded",
                "dailyLimitExceededUnreg",
                "userRateLimitExceededUnreg",
                "notYetInvented",
            )
        ),
        (403, back_end(403, "dailyLimitExceeded", domain="usageLimits"), ProjectRateLimited),
        (403, back_end(403, "accessNotConfigured", domain="usageLimits"), ProviderNotConfigured),
        (
            403,
            {"error": {"status": "RESOURCE_EXHAUSTED", "details": [{"reason": "NEW"}]}},
            RateLimited,
        ),
        (429, {"error": "odd"}, RateLimited),
        (400, {"error": {"errors": "odd", "details": [None, {"reason": 7}]}}, ProviderError),
    ],
)
def test_each_refusal_has_its_meaning(status, body, error, is_fit_for_people):
    raised = error_for(HttpReply("Google Calendar", "calendar.events.list", status, body))
    assert type(raised) is error
    assert raised.operation == "calendar.events.list"
    is_fit_for_people(raised)


def test_the_time_to_wait_is_kept():
    error = error_for(HttpReply("Google Calendar", "calendar.events.list", 429, None, retry_after=7.0))
    assert isinstance(error, RateLimited)
    assert error.retry_after == 7.0

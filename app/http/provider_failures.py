"""How responses report the failure of a provider: its status, its rank among others, and its fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.http.errors import ApiError, Invalid, NotFound, OutOfService
from providers.base import Failed
from providers.errors import Problem, Reason

# The order is a ranking: of several failures, the one whose reason comes first decides the status.
STATUS_OF_REASON = {
    Reason.INVALID_CALENDAR_ID: 400,
    Reason.TOO_MANY_CALENDARS: 400,
    Reason.AUTHORIZATION_INVALID: 401,
    Reason.ACCESS_DENIED: 403,
    Reason.MAILBOX_UNAVAILABLE: 403,
    Reason.INSUFFICIENT_SCOPES: 403,
    Reason.NOT_FOUND: 404,
    Reason.PROVIDER_NOT_CONFIGURED: 404,
    Reason.RATE_LIMITED: 429,
    Reason.PROVIDER_ERROR: 502,
}
STATUS_OF_PROBLEM = {
    Problem.EVENT_NOT_FOUND: 404,
    Problem.EVENT_EXISTS: 409,
    Problem.EVENT_REFUSED: 400,
    Problem.EVENT_UNREADABLE: 422,
    Problem.OUTCOME_UNKNOWN: 502,
}
_RANK = {reason: rank for rank, reason in enumerate(STATUS_OF_REASON)}


def reason_and_message(failed: Failed) -> dict[str, str]:
    """The fields that report a failure in ``failedCalendars`` and ``failedUsers``."""
    return {"reason": failed.reason, "message": failed.message}


def most_telling(failures: Iterable[Failed]) -> Failed:
    """The failure of highest rank, which decides the error for all of them."""
    return min(failures, key=lambda failed: _RANK[failed.reason])


def whole_request_failed(failed: Failed, valid_scopes: tuple[str, ...] | None = None) -> ApiError:
    """The error for a request that read nothing or too little, or could not write an event.

    ``valid_scopes`` is set when the request was refused before a provider call: the specification defines
    that body. Otherwise the body contains the ``reason`` of the failure.
    """
    if failed.problem is Problem.EVENT_NOT_FOUND:
        return NotFound("Event not found")
    if failed.problem is Problem.OUT_OF_SERVICE:
        return OutOfService()
    if failed.problem is not None:
        unclear = failed.problem is Problem.OUTCOME_UNKNOWN
        return ApiError(
            failed.message,
            status=STATUS_OF_PROBLEM[failed.problem],
            extra_fields={"reason": failed.reason} if unclear else {},
            section="of-one-event",
        )
    extra_fields: dict[str, Any] = {} if valid_scopes is not None else {"reason": failed.reason}
    headers: dict[str, str] = {}
    if failed.reason is Reason.INSUFFICIENT_SCOPES and failed.operation:
        extra_fields["operation"] = failed.operation
        if valid_scopes is not None:
            extra_fields["validScopes"] = list(valid_scopes)
    limited = failed.reason is Reason.RATE_LIMITED
    if failed.retry_after is not None and (limited or not failed.called):
        # Whole seconds, rounded up: a retry that comes too early is refused again.
        seconds = max(1, int(-(-failed.retry_after // 1)))
        headers["Retry-After"] = str(seconds)
        if limited:
            extra_fields["retryAfter"] = seconds
    return ApiError(
        failed.message,
        status=STATUS_OF_REASON[failed.reason],
        extra_fields=extra_fields,
        headers=headers,
        section=failed.reason.lower(),
    )


def one_calendar_failed(failed: Failed, valid_scopes: tuple[str, ...] | None) -> ApiError:
    """As ``whole_request_failed``, for a request about one calendar that its path names."""
    if failed.reason is Reason.NOT_FOUND and failed.problem is None:
        return NotFound("Calendar not found")
    return whole_request_failed(failed, valid_scopes)


def consent_failed(failed: Failed) -> ApiError:
    """The error for a consent whose code could not be exchanged."""
    if failed.reason is Reason.AUTHORIZATION_INVALID:
        # The provider rejected the code; no connection is affected.
        return Invalid(failed.message)
    return whole_request_failed(failed)

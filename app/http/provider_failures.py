"""How responses report the failure of a provider: its code, its rank among others, and its fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.http.errors import ApiError, NotFound, ServiceUnavailable
from app.schemas.error_codes import Code
from providers.base import Failed
from providers.errors import Problem, Reason

# Of several failures, the one whose reason comes first decides the error.
RANKING = (
    Reason.INVALID_CALENDAR_ID,
    Reason.TOO_MANY_CALENDARS,
    Reason.AUTHORIZATION_INVALID,
    Reason.ACCESS_DENIED,
    Reason.MAILBOX_UNAVAILABLE,
    Reason.INSUFFICIENT_SCOPES,
    Reason.NOT_FOUND,
    Reason.PROVIDER_NOT_CONFIGURED,
    Reason.RATE_LIMITED,
    Reason.PROVIDER_ERROR,
)
_RANK = {reason: rank for rank, reason in enumerate(RANKING)}


def reason_and_message(failed: Failed) -> dict[str, str]:
    """The fields that report a failure in ``failedCalendars`` and ``failedUsers``."""
    # The words of the reasons are codes.
    return {"code": failed.reason, "reason": failed.reason, "message": failed.message}


def most_telling(failures: Iterable[Failed]) -> Failed:
    """The failure of highest rank, which decides the error for all of them."""
    return min(failures, key=lambda failed: _RANK[failed.reason])


def request_failed(failed: Failed, valid_scopes: tuple[str, ...] | None = None) -> ApiError:
    """The error for a request that read nothing or too little, or could not write an event.

    It has a ``reason``, unless the failure concerns no calendar: a problem with one event, or an outage of
    Almanac. ``valid_scopes`` is set if the request was refused before a provider call.
    """
    if failed.problem is Problem.EVENT_NOT_FOUND:
        return NotFound("Event not found", Code.EVENT_NOT_FOUND)
    if failed.problem is Problem.OUT_OF_SERVICE:
        return ServiceUnavailable()
    # The other problems, and all reasons, have codes of the same names.
    code = Code[(failed.problem or failed.reason).name]
    if failed.problem not in (None, Problem.OUTCOME_UNKNOWN):
        return ApiError(failed.message, code, param=failed.param)
    extra_fields: dict[str, Any] = {"reason": failed.reason}
    # Graph does not say whether a scope or a share is missing.
    if failed.reason in (Reason.INSUFFICIENT_SCOPES, Reason.ACCESS_DENIED) and failed.operation:
        extra_fields["operation"] = failed.operation
        if valid_scopes is not None:
            extra_fields["validScopes"] = list(valid_scopes)
    return ApiError(failed.message, code, retry_after=_retry_after(failed), extra_fields=extra_fields)


def one_calendar_failed(failed: Failed, valid_scopes: tuple[str, ...] | None) -> ApiError:
    """As ``request_failed``, for a request about one calendar that its path names."""
    if failed.reason is Reason.NOT_FOUND and failed.problem is None:
        return NotFound("Calendar not found", Code.CALENDAR_NOT_FOUND, extra_fields={"reason": failed.reason})
    return request_failed(failed, valid_scopes)


def _retry_after(failed: Failed) -> int | None:
    """The seconds to wait, if they are known and the provider limits requests or has not been called."""
    limited = failed.reason is Reason.RATE_LIMITED
    if failed.retry_after is None or not (limited or not failed.called):
        return None
    # Whole seconds, rounded up: a retry that comes too early is refused again.
    return max(1, int(-(-failed.retry_after // 1)))

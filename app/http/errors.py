"""HTTP errors: a status, one readable sentence, and further fields of the body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from providers.base import Failed
from providers.errors import Problem, Reason
from workers.fanout.admission import NoWorker, Overloaded

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


class Code(StrEnum):
    """Values of the field ``code``, which distinguishes errors of one status. A value is never renamed."""

    OUTCOME_UNKNOWN = "outcomeUnknown"


class ApiError(Exception):
    """A response other than success. ``beside`` holds fields of the body besides ``data`` and ``error``.

    ``section`` is the anchor on the documentation page of errors; it defaults to the status.
    """

    status = 500

    def __init__(
        self,
        error: str,
        *,
        status: int | None = None,
        beside: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        section: str | None = None,
        code: Code | None = None,
    ) -> None:
        super().__init__(error)
        self.error = error
        self.status = status or self.status
        self.beside = dict(beside or {})
        self.headers = dict(headers or {})
        self.section = section or str(self.status)
        self.code = code

    def body(self) -> dict[str, Any]:
        """The body of the response."""
        code = {} if self.code is None else {"code": self.code}
        return {"data": None, "error": self.error, **code, **self.beside}


class Invalid(ApiError):
    """The request cannot be understood; the message names the field."""

    status = 400


class Unauthenticated(ApiError):
    """The request has no API key, or one that is not valid."""

    status = 401

    def __init__(self, error: str) -> None:
        super().__init__(error, headers={"WWW-Authenticate": "Bearer"})


class Forbidden(ApiError):
    """The API key does not allow this."""

    status = 403


class NotFound(ApiError):
    """The resource does not exist, or the API key does not reach it."""

    status = 404


class Conflict(ApiError):
    """The identifier is taken, or a limit on the number of resources is reached."""

    status = 409


class Busy(ApiError):
    """The queue for workers is full, or no worker is running: nothing was read or written."""

    status = 503

    def __init__(self, overloaded: Overloaded) -> None:
        seconds = str(overloaded.retry_after)
        sentence = f"Too much is waiting for Google and Microsoft just now; try again in {seconds} s"
        if isinstance(overloaded, NoWorker):
            sentence = f"Nobody is there to ask Google and Microsoft just now; try again in {seconds} s"
        super().__init__(sentence, headers={"Retry-After": seconds})


class OutOfService(ApiError):
    """Our own database, Redis or broker is down."""

    status = 503

    def __init__(self, beside: Mapping[str, Any] | None = None) -> None:
        sentence = "The service is not available for a moment; try again"
        super().__init__(sentence, beside=beside, headers={"Retry-After": "1"})


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
            beside={"reason": failed.reason} if unclear else {},
            section="of-one-event",
        )
    beside: dict[str, Any] = {} if valid_scopes is not None else {"reason": failed.reason}
    headers: dict[str, str] = {}
    if failed.reason is Reason.INSUFFICIENT_SCOPES and failed.operation:
        beside["operation"] = failed.operation
        if valid_scopes is not None:
            beside["validScopes"] = list(valid_scopes)
    limited = failed.reason is Reason.RATE_LIMITED
    if failed.retry_after is not None and (limited or not failed.called):
        # Whole seconds, rounded up: a retry that comes too early is refused again.
        seconds = max(1, int(-(-failed.retry_after // 1)))
        headers["Retry-After"] = str(seconds)
        if limited:
            beside["retryAfter"] = seconds
    return ApiError(
        failed.message,
        status=STATUS_OF_REASON[failed.reason],
        beside=beside,
        headers=headers,
        section=failed.reason.lower(),
    )

"""Errors, one class for each way to handle them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from almanac_client.answers import Answer
    from almanac_client.records import FailedCalendar


class AlmanacError(Exception):
    """A failed request. ``str(error)`` is a sentence that can be shown to users."""


class Incomplete(AlmanacError):
    """A calendar could not be read, and the complete answer was requested; ``answer`` has the rest."""

    def __init__(self, answer: Answer[Any]) -> None:
        super().__init__(f"{answer.what_failed()}; what could be read is in .partial")
        self.answer = answer


class RequestFailed(AlmanacError):
    """A request failed.

    ``status`` is the HTTP status, None without an answer. ``request_id`` identifies it in the server's log.
    """

    status: int | None

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        body: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.request_id = request_id
        self.body = dict(body or {})
        self.retry_after = retry_after

    @property
    def reason(self) -> str | None:
        """Why the provider failed, one of ten words; None when the error is not a provider's."""
        found: str | None = self.body.get("reason")
        return found

    @property
    def failed_calendars(self) -> list[FailedCalendar]:
        """The calendars that could not be read.

        After a change or deletion of a unified event: the accounts where it failed.
        """
        found: list[FailedCalendar] = self.body.get("failedCalendars", [])
        return found


class Refused(RequestFailed):
    """The same request would fail again: something has to change first."""


class Invalid(Refused):
    """The request is invalid; the message names the field."""


class KeyRefused(Refused):
    """The API key is missing, unknown, revoked or expired: use another."""


class ConnectionEnded(Refused):
    """The provider rejects the account's tokens: the user has to connect the account again."""


class Forbidden(Refused):
    """The API key, or the account at its provider, may not do this."""


class ScopesMissing(Forbidden):
    """The user's grant does not allow this operation: request one of ``valid_scopes``, where known."""

    @property
    def operation(self) -> str:
        """The rejected operation, such as ``calendar.events.insert``."""
        return str(self.body["operation"])

    @property
    def valid_scopes(self) -> list[str]:
        """Scopes that allow the operation, one suffices; empty when the provider rejected the request."""
        found: list[str] = self.body.get("validScopes", [])
        return found


class NotFound(Refused):
    """The resource does not exist, or is invisible to the API key."""


class Conflict(Refused):
    """The identifier is in use, or a limit is reached."""


class Unavailable(RequestFailed):
    """Almanac or the calendar provider is down or slow: the same request may succeed later."""


class RateLimited(Unavailable):
    """A rate limit was exceeded. ``retry_after`` is in seconds, None when unknown."""


class UnderWay(Unavailable):
    """The first request with this idempotency key is still running: repeat it to get its answer."""


class Unreadable(Unavailable):
    """The answer is not Almanac's, such as a proxy's page or a truncated answer."""


def error_of(
    status: int, headers: Mapping[str, str], body: Mapping[str, Any] | None, call: str
) -> RequestFailed:
    """The error for an answer; ``body`` is None when it is not one of Almanac's."""
    kind = Unreadable if body is None and status < 500 else _kind(status, headers, body or {})
    message = (body or {}).get("error") or f"{call} answered {status}"
    return kind(
        str(message),
        status=status,
        request_id=headers.get("X-Request-Id"),
        body=body,
        retry_after=_seconds(headers.get("Retry-After")),
    )


def _kind(status: int, headers: Mapping[str, str], body: Mapping[str, Any]) -> type[RequestFailed]:
    if status == 401:
        return KeyRefused if "WWW-Authenticate" in headers else ConnectionEnded
    if status == 403:
        return ScopesMissing if "operation" in body else Forbidden
    if status == 409 and "Retry-After" in headers:
        return UnderWay
    by_status = {400: Invalid, 404: NotFound, 409: Conflict, 413: Invalid, 415: Invalid, 422: Invalid}
    return {**by_status, 429: RateLimited}.get(status) or (Unavailable if status >= 500 else Refused)


def _seconds(retry_after: str | None) -> float | None:
    """Seconds of ``Retry-After``. Almanac writes whole seconds; a proxy's HTTP date is ignored."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else None

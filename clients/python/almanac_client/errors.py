"""What goes wrong, named by what the caller does next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from almanac_client.answers import Answer
    from almanac_client.records import FailedCalendar


class AlmanacError(Exception):
    """Whatever Almanac did not do. ``str(error)`` is a sentence that is fit to show."""


class Incomplete(AlmanacError):
    """Something could not be read, and the caller asked for everything; ``answer`` holds what there is."""

    def __init__(self, answer: Answer[Any]) -> None:
        super().__init__(f"{answer.what_failed()}; what could be read is in .partial")
        self.answer = answer


class RequestFailed(AlmanacError):
    """A request without the answer that it asked for.

    ``status`` is that of the answer, None when there was none. ``request_id`` finds it in the server's log.
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
        """Why the provider failed, one of ten words; None when the error did not come from a provider."""
        found: str | None = self.body.get("reason")
        return found

    @property
    def failed_calendars(self) -> list[FailedCalendar]:
        """The calendars that could not be read.

        After a change or deletion of a unified event: the accounts that it has not reached.
        """
        found: list[FailedCalendar] = self.body.get("failedCalendars", [])
        return found


class Refused(RequestFailed):
    """The same request would be refused again: something has to change first."""


class Invalid(Refused):
    """The request is at fault; the message names the field."""


class KeyRefused(Refused):
    """The API key is missing, unknown, revoked or expired: use another."""


class ConnectionEnded(Refused):
    """The provider rejects the account's tokens: the user has to connect the account again."""


class Forbidden(Refused):
    """The API key, or the account at its provider, may not do this."""


class ScopesMissing(Forbidden):
    """The user granted less than this needs: ask for one of ``valid_scopes``, where they are known."""

    @property
    def operation(self) -> str:
        """What was refused, like ``calendar.events.insert``."""
        return str(self.body["operation"])

    @property
    def valid_scopes(self) -> list[str]:
        """Scopes of which any suffices; empty when it is the provider that refused."""
        found: list[str] = self.body.get("validScopes", [])
        return found


class NotFound(Refused):
    """There is no such thing, or none that the API key may know of."""


class Conflict(Refused):
    """The identifier is taken, or there is room for no more."""


class Unavailable(RequestFailed):
    """Almanac, or the calendars' provider, is down or slow: the same request may work later."""


class RateLimited(Unavailable):
    """Throttled. ``retry_after`` says for how many seconds, where it is known."""


class UnderWay(Unavailable):
    """The first request with this idempotency key is still at work: repeat it for its answer."""


class Unreadable(Unavailable):
    """Something answered that is not Almanac: a proxy's page, or half an answer."""


def error_of(
    status: int, headers: Mapping[str, str], body: Mapping[str, Any] | None, call: str
) -> RequestFailed:
    """The error of an answer; ``body`` is None when it is not one of Almanac's."""
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
    """Almanac writes whole seconds; a proxy before it may write a date, which is not worth reading."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else None

"""Errors, one class for each way to handle them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import field

from almanac_client.records import Conflict as TakenTime
from almanac_client.records import FailedCalendar, FailedUser
from almanac_client.records.base import Record

if TYPE_CHECKING:
    from almanac_client.answers import Answer


class AlmanacError(Exception):
    """A failed request. ``str(error)`` is a sentence that can be shown to users."""

    @property
    def code(self) -> str | None:
        """The word that identifies the error; None without an answer that is an error."""
        return None


class Incomplete(AlmanacError):
    """The complete answer was requested, and a calendar could not be read; ``partial`` has the other ones."""

    def __init__(self, answer: Answer[Any]) -> None:
        super().__init__(f"{answer.what_failed()}; what could be read is in .partial")
        self.answer = answer
        self.partial = answer.partial
        self.failed_calendars = answer.failed_calendars
        self.failed_users = answer.failed_users


class NotVerified(AlmanacError):
    """A webhook does not come from Almanac, or is too old: do not act on it."""


class ErrorFields(Record, kw_only=True):
    """The fields of an error that this version knows. All are absent from the page of a proxy."""

    error: str | None = None
    code: str | None = None
    param: str | None = None
    reason: str | None = None
    failed_calendars: list[FailedCalendar] = field(default_factory=list)
    failed_users: list[FailedUser] = field(default_factory=list)
    conflicts: list[TakenTime] = field(default_factory=list)
    retry_after: float | None = None
    quota: str | None = None
    operation: str = ""
    valid_scopes: list[str] = field(default_factory=list)


class RequestFailed(AlmanacError):
    """A request failed.

    ``status`` is the HTTP status, None without an answer. ``request_id`` identifies the request in the
    server's log. ``retry_after`` is the number of seconds after which the request may be repeated, where the
    answer has it. ``body`` is the JSON of the answer.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        body: Mapping[str, Any] | None = None,
        fields: ErrorFields | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.request_id = request_id
        self.body = dict(body or {})
        self._fields = fields or ErrorFields()
        self.retry_after = self._fields.retry_after if retry_after is None else retry_after

    @property
    def code(self) -> str | None:
        """The word that identifies the error among those of its status; None from an older server."""
        return self._fields.code

    @property
    def param(self) -> str | None:
        """The invalid field of the request, as a path; None for other errors."""
        return self._fields.param

    @property
    def quota(self) -> str | None:
        """With the code ``quotaExceeded``: the name of the quota, such as ``waitingReads``."""
        return self._fields.quota

    @property
    def reason(self) -> str | None:
        """Why the provider failed, one of ten words; None when the error is not a provider's."""
        return self._fields.reason

    @property
    def failed_calendars(self) -> list[FailedCalendar]:
        """The calendars that could not be read.

        After a change or deletion of a unified event: the accounts where it failed.
        """
        return self._fields.failed_calendars

    @property
    def failed_users(self) -> list[FailedUser]:
        """The users of a hold that could not be read."""
        return self._fields.failed_users

    @property
    def conflicts(self) -> list[TakenTime]:
        """With the code ``slotTaken``: the parts of the time that are taken."""
        return self._fields.conflicts


class Refused(RequestFailed):
    """The same request would fail again: something has to change first."""


class Invalid(Refused):
    """The request is invalid; ``param`` and the message name the field."""


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
        return self._fields.operation

    @property
    def valid_scopes(self) -> list[str]:
        """Scopes that allow the operation, one suffices; empty when the provider rejected the request."""
        return self._fields.valid_scopes


class NotFound(Refused):
    """The resource does not exist, or is invisible to the API key."""


class Conflict(Refused):
    """The request does not fit the present state, such as an identifier in use or a changed event."""


class CursorExpired(Refused):
    """A provider no longer knows what has changed since the cursor: begin again without it."""


class Unavailable(RequestFailed):
    """Almanac or the calendar provider is down or slow: the same request may succeed later."""


class Unreachable(Unavailable):
    """Almanac could not be reached. The request was not sent, so it has changed nothing."""


class OutcomeUnknown(Unavailable):
    """The event may have been created, changed or deleted.

    It is safe to repeat an update or a delete, and a create with the same idempotency key or ``meta_id``.
    """


class RateLimited(Unavailable):
    """A rate limit was exceeded. ``retry_after`` is in seconds, None when unknown."""


class UnderWay(Unavailable):
    """The first request with this idempotency key is still running: repeat it to get its answer."""


class Unreadable(Unavailable):
    """The answer is not Almanac's, such as a proxy's page or a truncated answer."""


# The class by code, for statuses with several classes; any other code has the class of its status.
BY_CODE: dict[str | None, type[RequestFailed]] = {
    "apiKeyInvalid": KeyRefused,
    "apiKeyMissing": KeyRefused,
    "authorizationInvalid": ConnectionEnded,
    "idempotencyKeyInUse": UnderWay,
    "insufficientScopes": ScopesMissing,
    "metaIdInUse": UnderWay,
    "outcomeUnknown": OutcomeUnknown,
}
BY_STATUS: dict[int, type[RequestFailed]] = {
    400: Invalid,
    404: NotFound,
    409: Conflict,
    410: CursorExpired,
    412: Conflict,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: RateLimited,
}


def error_of(status: int, headers: Mapping[str, str], content: bytes, call: str) -> RequestFailed:
    """The error for an answer that is no success."""
    body, fields = _body(content)
    known = fields if fields is not None else ErrorFields()
    kind = Unreadable if fields is None and status < 500 else _kind(status, headers, known)
    return kind(
        known.error or f"{call} answered {status}",
        status=status,
        request_id=headers.get("X-Request-Id"),
        body=body,
        fields=known,
        retry_after=_seconds(headers.get("Retry-After")),
    )


def _body(content: bytes) -> tuple[dict[str, Any] | None, ErrorFields | None]:
    """The JSON of an error, and its fields; None for both when it is not one of Almanac's."""
    try:
        body = msgspec.json.decode(content)
        if not isinstance(body, dict) or "data" not in body:
            return None, None
        return body, msgspec.convert(body, ErrorFields)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, None


def _kind(status: int, headers: Mapping[str, str], fields: ErrorFields) -> type[RequestFailed]:
    """The class of an error. Older servers send no code: then status, headers and fields decide."""
    if fields.code in BY_CODE:
        return BY_CODE[fields.code]
    if status == 401:
        return KeyRefused if "WWW-Authenticate" in headers else ConnectionEnded
    if status == 403:
        return ScopesMissing if fields.operation and fields.code is None else Forbidden
    if status == 409 and "Retry-After" in headers:
        return UnderWay
    return BY_STATUS.get(status) or (Unavailable if status >= 500 else Refused)


def _seconds(retry_after: str | None) -> float | None:
    """Seconds of ``Retry-After``: Almanac writes whole seconds, a proxy may write an HTTP date."""
    if retry_after is None:
        return None
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        then = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    if then.tzinfo is None:
        return None
    return max((then - datetime.now(UTC)).total_seconds(), 0.0)

"""Calendars that could not be read, as answers list them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from app.availability.result import BusyResult
from app.availability.selection import main_calendar
from app.http.errors import ApiError
from app.http.provider_failures import most_telling, reason_and_message, request_failed
from app.schemas.error_codes import Code
from providers import registry
from providers.base import Failed
from providers.errors import Reason
from store.sql.queries.connection_rows import ConnectionRef

NO_CALENDARS = "User has no connected calendars"


class Failure(NamedTuple):
    """A calendar that could not be read. ``connection_failed``: none of its connection could be read."""

    calendar_id: str
    connection: ConnectionRef
    failed: Failed
    connection_failed: bool = False


def connection_failure(connection: ConnectionRef, failed: Failed) -> Failure:
    """The failure of a connection, listed under its main calendar."""
    return Failure(main_calendar(connection).shown, connection, failed, connection_failed=True)


class Failures:
    """The failures of one user, or of a whole request. ``something_read``: another calendar could be read."""

    def __init__(self, failures: Iterable[Failure], *, something_read: bool) -> None:
        self._failures = list(failures)
        self.something_read = something_read

    @classmethod
    def of(cls, result: BusyResult, user_index: int = 0) -> Failures:
        """The failures of one user in a result."""
        failed_connections = [
            connection_failure(*each) for each in result.failed_connections.get(user_index, ())
        ]
        indexes = result.target_indexes(user_index)
        calendars = [
            Failure(target.shown, target.connection, *result.unread[index])
            for index in indexes
            if index in result.unread
            for target in [result.targets[index]]
        ]
        return cls([*failed_connections, *calendars], something_read=len(calendars) < len(indexes))

    def __bool__(self) -> bool:
        return bool(self._failures)

    def __iter__(self) -> Iterator[Failure]:
        return iter(self._failures)

    def calendars(self) -> list[dict[str, Any]]:
        """Entries for ``failedCalendars``."""
        return [
            {
                "calendarId": failure.calendar_id,
                "provider": failure.connection.provider,
                "connectionId": failure.connection.public_id,
                **reason_and_message(failure.failed),
            }
            for failure in self._failures
        ]

    def as_failed_user(self, custom_id: str) -> dict[str, Any]:
        """The entry for ``failedUsers``; no calendars if only connections failed and nothing was read."""
        calendars = self.calendars() if self.something_read or not self._connections_only() else []
        return failed_user(custom_id, self._most_telling().failed, calendars)

    def as_error_entry(self, custom_id: str) -> dict[str, Any]:
        """The entry of the user in an answer for several users."""
        failed = self._most_telling().failed
        fields = reason_and_message(failed)
        error = _error_entry(custom_id, fields.pop("message"))
        return {**error, **fields, "failedCalendars": self.calendars()}

    def error(self) -> ApiError:
        """The error answer of a request that fails because of these calendars; it lists each of them.

        An outage of Almanac itself concerns no calendar, so its answer lists none.
        """
        failure = self._most_telling()
        return self.named_in(error_of(failure.connection, failure.failed))

    def named_in(self, error: ApiError) -> ApiError:
        """The error, with ``failedCalendars`` added if it has the reason of a provider."""
        if "reason" in error.extra_fields:
            error.extra_fields["failedCalendars"] = self.calendars()
        return error

    def _connections_only(self) -> bool:
        return all(failure.connection_failed for failure in self._failures)

    def _most_telling(self) -> Failure:
        failed = most_telling(failure.failed for failure in self._failures)
        return next(failure for failure in self._failures if failure.failed is failed)


def failed_user(
    custom_id: str,
    failed: Failed,
    failed_calendars: Sequence[dict[str, Any]] = (),
    *,
    code: Code | None = None,
) -> dict[str, Any]:
    """An entry for ``failedUsers``; its ``code`` is the reason unless it is given."""
    return {
        "customId": custom_id,
        "userId": custom_id,
        **reason_and_message(failed),
        **({} if code is None else {"code": code}),
        "failedCalendars": list(failed_calendars),
    }


def missing_entry(custom_id: str, *, exists: bool) -> dict[str, Any]:
    """The entry of an unknown user, or of one without calendars, in an answer for several users."""
    error, code = ("User not found", Code.USER_NOT_FOUND)
    if exists:
        error, code = (NO_CALENDARS, Code.NO_CONNECTED_CALENDARS)
    return {**_error_entry(custom_id, error), "code": code, "failedCalendars": []}


def _error_entry(custom_id: str, error: str) -> dict[str, Any]:
    return {"userId": custom_id, "status": "error", "error": error}


def error_of(connection: ConnectionRef, failed: Failed) -> ApiError:
    """The error answer of a request that fails because one account did."""
    return request_failed(failed, sufficient_scopes(connection, failed))


def sufficient_scopes(connection: ConnectionRef, failed: Failed) -> tuple[str, ...] | None:
    """The scopes of which the user has to grant one; None if the granted scopes are not the reason."""
    operation = failed.operation
    if failed.reason is not Reason.INSUFFICIENT_SCOPES or operation is None:
        return None
    provider = connection.provider
    if registry.scopes(provider).allows(connection.scope, operation):
        return None
    return registry.scopes(provider).valid_scopes(operation)

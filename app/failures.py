"""What could not be read, as answers name it."""

from __future__ import annotations

from typing import Any, NamedTuple

from app.availability import Picture
from app.errors import ApiError, most_telling, whole_request_failed
from app.targets import main_calendar
from providers.base import Failed, ProviderName, Read
from providers.errors import Reason
from providers.scopes import allows, valid_scopes
from store.queries.connections import ConnectionRef


class _Failure(NamedTuple):
    calendar_id: str
    connection: ConnectionRef
    failed: Failed
    of_account: bool


class Failures:
    """The failures in one picture."""

    def __init__(self, picture: Picture) -> None:
        # An account whose calendars are not known goes by its main one.
        self._failures = [
            _Failure(main_calendar(connection).shown, connection, failed, of_account=True)
            for connection, failed in picture.accounts
        ]
        self._failures += [
            _Failure(each.target.shown, each.target.connection, each.outcome, each.of_account)
            for each in picture.calendars
            if isinstance(each.outcome, Failed)
        ]
        self.something_read = any(isinstance(each.outcome, Read) for each in picture.calendars)

    def __bool__(self) -> bool:
        return bool(self._failures)

    def calendars(self) -> list[dict[str, Any]]:
        """Entries for ``failedCalendars``."""
        return [
            {
                "calendarId": failure.calendar_id,
                "provider": failure.connection.provider,
                "reason": failure.failed.reason,
                "message": failure.failed.message,
            }
            for failure in self._failures
        ]

    def user(self, custom_id: str) -> dict[str, Any]:
        """The entry for ``failedUsers``; no calendars are named when nothing at all of the user is known."""
        told = self._most_telling().failed
        return {
            "customId": custom_id,
            "reason": told.reason,
            "message": told.message,
            "failedCalendars": self.calendars() if self.something_read or not self._accounts_only() else [],
        }

    def entry(self) -> dict[str, Any]:
        """The fields that say why one of several users has no answer."""
        told = self._most_telling().failed
        return {"error": told.message, "reason": told.reason, "failedCalendars": self.calendars()}

    def error(self) -> ApiError:
        """The answer of a request that fails because of these."""
        told = self._most_telling()
        return whole_request_failed(told.failed, _scopes_that_would_do(told))

    def _accounts_only(self) -> bool:
        return all(failure.of_account for failure in self._failures)

    def _most_telling(self) -> _Failure:
        told = most_telling(failure.failed for failure in self._failures)
        return next(failure for failure in self._failures if failure.failed is told)


def _scopes_that_would_do(failure: _Failure) -> tuple[str, ...] | None:
    """The scopes to ask the user for; None when those granted should have done and the provider refused."""
    operation = failure.failed.operation
    if failure.failed.reason is not Reason.INSUFFICIENT_SCOPES or operation is None:
        return None
    provider = ProviderName(failure.connection.provider)
    if allows(provider, failure.connection.scope, operation):
        return None
    return valid_scopes(provider, operation)

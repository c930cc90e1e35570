"""What could not be read, as answers name it."""

from __future__ import annotations

from typing import Any, NamedTuple

from app.availability import Picture
from app.errors import ApiError, most_telling, whole_request_failed
from providers.base import PRIMARY, Failed, ProviderName
from providers.errors import Reason
from providers.scopes import allows, valid_scopes
from store.queries.connections import ConnectionRef


class _Failure(NamedTuple):
    calendar_id: str
    connection: ConnectionRef
    failed: Failed


class Failures:
    """The failures in one picture."""

    def __init__(self, picture: Picture) -> None:
        # An account whose calendars are not known goes by its main one.
        self._accounts = [
            _Failure(connection.email or PRIMARY, connection, failed)
            for connection, failed in picture.accounts
        ]
        self._calendars = [
            _Failure(target.shown, target.connection, outcome)
            for target, outcome, _ in picture.calendars
            if isinstance(outcome, Failed)
        ]
        self.something_read = len(self._calendars) < len(picture.calendars)

    def __bool__(self) -> bool:
        return bool(self._accounts or self._calendars)

    def calendars(self) -> list[dict[str, Any]]:
        """Entries for ``failedCalendars``."""
        return [
            {
                "calendarId": failure.calendar_id,
                "provider": failure.connection.provider,
                "reason": failure.failed.reason,
                "message": failure.failed.message,
            }
            for failure in [*self._accounts, *self._calendars]
        ]

    def user(self, custom_id: str) -> dict[str, Any]:
        """The entry for ``failedUsers``; no calendars are named when nothing at all of the user is known."""
        told = self._most_telling().failed
        return {
            "customId": custom_id,
            "reason": told.reason,
            "message": told.message,
            "failedCalendars": self.calendars() if self._calendars or self.something_read else [],
        }

    def entry(self) -> dict[str, Any]:
        """The fields that say why one of several users has no answer."""
        told = self._most_telling().failed
        return {"error": told.message, "reason": told.reason, "failedCalendars": self.calendars()}

    def error(self) -> ApiError:
        """The answer of a request that fails because of these."""
        told = self._most_telling()
        return whole_request_failed(told.failed, _scopes_that_would_do(told))

    def _most_telling(self) -> _Failure:
        failures = [*self._accounts, *self._calendars]
        told = most_telling(failure.failed for failure in failures)
        return next(failure for failure in failures if failure.failed is told)


def _scopes_that_would_do(failure: _Failure) -> tuple[str, ...] | None:
    """The scopes to ask the user for; None when those granted should have done and the provider refused."""
    operation = failure.failed.operation
    if failure.failed.reason is not Reason.INSUFFICIENT_SCOPES or operation is None:
        return None
    provider = ProviderName(failure.connection.provider)
    if allows(provider, failure.connection.scope, operation):
        return None
    return valid_scopes(provider, operation)

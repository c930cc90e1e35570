"""What could not be read, as answers name it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from app.availability.lookup import BusyResult
from app.availability.selection import main_calendar
from app.http.errors import ApiError, most_telling, whole_request_failed
from providers.base import Failed
from providers.errors import Reason
from providers.names import ProviderName
from providers.scopes import allows, valid_scopes
from store.sql.queries.connections import ConnectionRef


class Failure(NamedTuple):
    """One calendar that could not be read; ``of_account``: because its whole account could not."""

    calendar_id: str
    connection: ConnectionRef
    failed: Failed
    of_account: bool = False


def of_account(connection: ConnectionRef, failed: Failed) -> Failure:
    """The failure of an account whose calendars are not known: it goes by its main one."""
    return Failure(main_calendar(connection).shown, connection, failed, of_account=True)


class Failures:
    """The failures of one request, or of one user in it; ``something_read`` beside them."""

    def __init__(self, failures: Iterable[Failure], *, something_read: bool) -> None:
        self._failures = list(failures)
        self.something_read = something_read

    @classmethod
    def of(cls, picture: BusyResult, ask: int = 0) -> Failures:
        """The failures of one ask in a picture."""
        accounts = [of_account(connection, failed) for connection, failed in picture.accounts.get(ask, ())]
        places = picture.places(ask)
        calendars = [
            Failure(target.shown, target.connection, *picture.unread[place])
            for place in places
            if place in picture.unread
            for target in [picture.targets[place]]
        ]
        return cls([*accounts, *calendars], something_read=len(calendars) < len(places))

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
        """The answer of a request that fails because of these calendars; it names each of them.

        An outage of our own concerns no calendar, so its answer names none.
        """
        told = self._most_telling()
        error = error_of(told.connection, told.failed)
        if told.failed.problem is None:
            error.beside |= {"reason": told.failed.reason, "failedCalendars": self.calendars()}
        return error

    def _accounts_only(self) -> bool:
        return all(failure.of_account for failure in self._failures)

    def _most_telling(self) -> Failure:
        told = most_telling(failure.failed for failure in self._failures)
        return next(failure for failure in self._failures if failure.failed is told)


def error_of(connection: ConnectionRef, failed: Failed) -> ApiError:
    """The answer of a request that fails because one account did."""
    return whole_request_failed(failed, _scopes_that_would_do(connection, failed))


def _scopes_that_would_do(connection: ConnectionRef, failed: Failed) -> tuple[str, ...] | None:
    """The scopes to ask the user for; None when those granted should have done and the provider refused."""
    operation = failed.operation
    if failed.reason is not Reason.INSUFFICIENT_SCOPES or operation is None:
        return None
    provider = ProviderName(connection.provider)
    if allows(provider, connection.scope, operation):
        return None
    return valid_scopes(provider, operation)

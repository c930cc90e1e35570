"""CalDAV as a provider: an account's calendars, busy times and events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from providers.base import (
    PRIMARY,
    Account,
    Calendar,
    Failed,
    MainCalendar,
    Outcome,
    Read,
)
from providers.caldav import calendars, change_feed, discovery, events, identifiers, series
from providers.caldav.collection import Collection
from providers.caldav.credentials import BasicCredentials, BasicTokens
from providers.caldav.errors import PROVIDER
from providers.caldav.scopes import SCOPES
from providers.caldav.server import Server
from providers.changes import ChangePage
from providers.errors import (
    AccessDenied,
    AuthorizationInvalid,
    NotFound,
    ProviderError,
    TokenRejected,
)
from providers.events import Changes, CreateResult, Draft, Event, Response, Scope
from providers.http.calls import Bearer, token_refused_here
from providers.scopes import Operation

T = TypeVar("T")


class _Session:
    """The account of one operation."""

    def __init__(
        self, account: Account, operation: Operation, deadline: float, *, allow_private: bool
    ) -> None:
        SCOPES.require(account.scopes, operation)
        tokens = BasicTokens.of(account)
        self._bearer = Bearer(tokens, account.reporter, account.grace, account.request_id)
        self.known: BasicCredentials = tokens.credentials(deadline=deadline)
        self.server = Server(self._bearer, operation, deadline, allow_private)
        self._account = account

    def signs_in(self) -> bool:
        """Whether the server accepts the password, which it has rejected for a calendar."""
        if not self._bearer.accepted:
            with suppress(ProviderError):
                self.server.find(self.known.principal, calendars.PROPERTIES)
        return self._bearer.accepted

    def collection(self, calendar_id: str) -> Collection:
        """The calendar of an id.

        :raise InvalidCalendarId: for a text that is none
        """
        operation = self.server.operation
        url = (
            self.known.main
            if calendar_id == PRIMARY
            else identifiers.calendar_url(calendar_id, self.known, operation)
        )
        own, zone = sorted(self._account.addresses), self._account.zone
        return Collection(self.server, self.known, url, calendar_id, own, zone)


class CalDav:
    """CalDAV servers as a ``CalendarProvider`` and ``ChangeFeed``; see ``Server`` for ``allow_private``."""

    name = "caldav"

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private

    def calendars(self, account: Account, *, deadline: float) -> list[Calendar]:
        """The calendars of the account's homes that hold events, and the one whose address was entered."""
        session = self._session(account, Operation.LIST_CALENDARS, deadline)
        found = discovery.collections(session.server, session.known)
        return [calendars.parsed(each, session.known) for each in found]

    def main_calendar(self, account: Account, *, deadline: float) -> MainCalendar:
        """The main calendar, as it was chosen when the account was connected."""
        session = self._session(account, Operation.LIST_CALENDARS, deadline)
        found = session.server.one(session.known.main, calendars.PROPERTIES)
        if not calendars.holds_events(found):
            raise NotFound(f"{PROVIDER} does not know this calendar", operation=Operation.LIST_CALENDARS)
        return main_calendar(found.url, session.known, calendars.time_zone(found))

    def busy(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, Outcome]:
        """The outcome for each calendar, read one after the other."""
        session = self._session(account, Operation.FREE_BUSY, deadline)
        found = _each(session, calendar_ids, lambda collection: events.busy(collection, start, end))
        periods = {name: each for name, each in found.items() if not isinstance(each, Failed)}
        failed = {name: each for name, each in found.items() if isinstance(each, Failed)}
        return {**Read.of_each(periods, start, end), **failed}

    def busy_without(
        self, account: Account, calendar_id: str, event_id: str, start: int, end: int, *, deadline: float
    ) -> Read:
        """The busy periods of one calendar without one event."""
        collection = self._session(account, Operation.LIST_EVENTS, deadline).collection(calendar_id)
        return events.busy_without(collection, event_id, start, end)

    def events(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, tuple[Event, ...] | Failed]:
        """The events of each calendar, read one after the other."""
        session = self._session(account, Operation.LIST_EVENTS, deadline)
        return _each(session, calendar_ids, lambda collection: events.list_events(collection, start, end))

    def changes(
        self,
        account: Account,
        calendar_id: str,
        start: int,
        end: int,
        sync_token: str | None,
        *,
        deadline: float,
    ) -> ChangePage:
        """The changes in a calendar."""
        collection = self._session(account, Operation.LIST_EVENTS, deadline).collection(calendar_id)
        return change_feed.changes(collection, start, end, sync_token)

    def event(self, account: Account, calendar_id: str, event_id: str, *, deadline: float) -> Event:
        """One event."""
        collection = self._session(account, Operation.GET_EVENT, deadline).collection(calendar_id)
        return events.read(collection, event_id)

    def find_event(self, account: Account, calendar_id: str, meta_id: str, *, deadline: float) -> Event:
        """The event whose metaId is ``meta_id``."""
        collection = self._session(account, Operation.LIST_EVENTS, deadline).collection(calendar_id)
        return events.find_by_meta_id(collection, meta_id)

    def create_event(
        self, account: Account, calendar_id: str, draft: Draft, *, deadline: float
    ) -> CreateResult:
        """Create an event, once."""
        collection = self._session(account, Operation.INSERT_EVENT, deadline).collection(calendar_id)
        return events.create(collection, draft)

    def update_event(
        self,
        account: Account,
        calendar_id: str,
        event_id: str,
        changes: Changes,
        *,
        scope: Scope = Scope.OCCURRENCE,
        etag: str | None = None,
        deadline: float,
    ) -> Event:
        """Write ``changes`` and nothing else."""
        collection = self._session(account, Operation.UPDATE_EVENT, deadline).collection(calendar_id)
        if scope is Scope.OCCURRENCE:
            return events.update(collection, event_id, changes, required=etag)
        return series.update(collection, event_id, changes, scope, required=etag)

    def respond_to_event(
        self, account: Account, calendar_id: str, event_id: str, response: Response, *, deadline: float
    ) -> Event:
        """Write the response; the server sends it to the organizer."""
        collection = self._session(account, Operation.UPDATE_EVENT, deadline).collection(calendar_id)
        return events.respond(collection, event_id, response)

    def delete_event(
        self,
        account: Account,
        calendar_id: str,
        event_id: str,
        *,
        notify: bool | None,
        scope: Scope = Scope.OCCURRENCE,
        verified: bool = False,
        etag: str | None = None,
        deadline: float,
    ) -> None:
        """Delete an event. It is found in the calendar in any case, because that has its address."""
        collection = self._session(account, Operation.DELETE_EVENT, deadline).collection(calendar_id)
        if scope is Scope.OCCURRENCE:
            events.delete(collection, event_id, notify=notify, required=etag)
        else:
            series.delete(collection, event_id, scope, notify=notify, required=etag)

    def _session(self, account: Account, operation: Operation, deadline: float) -> _Session:
        return _Session(account, operation, deadline, allow_private=self._allow_private)


def main_calendar(url: str, known: BasicCredentials, zone: str) -> MainCalendar:
    """The main calendar at an address; ``zone`` is the name of its zone."""
    address = known.addresses[0] if known.addresses else ""
    return MainCalendar(identifiers.calendar_id(url), address, zone)


def _each(
    session: _Session, calendar_ids: Sequence[str], read: Callable[[Collection], T]
) -> dict[str, T | Failed]:
    """The result of each calendar, or its failure.

    An error that concerns no single calendar is raised when no calendar was read. A password that is rejected
    for one of several calendars may be accepted for the others; it is tried once more only, because a server
    may lock the account after a few attempts.
    """
    found: dict[str, T | Failed] = {}
    refused: dict[str, ProviderError] = {}
    names = list(dict.fromkeys(calendar_ids))
    for each in names:
        try:
            found[each] = read(session.collection(each))
        except TokenRejected:
            if len(names) == 1 or not session.signs_in():
                raise
            refused[each] = token_refused_here(PROVIDER, session.server.operation)
        except AuthorizationInvalid:
            raise
        except ProviderError as error:
            refused[each] = error
    general = [each for each in refused.values() if not isinstance(each, NotFound | AccessDenied)]
    if general and not found and len(general) == len(refused) and general[0].retryable:
        raise general[0]
    return found | {name: Failed.from_error(error) for name, error in refused.items()}

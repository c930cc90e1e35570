"""The calls to Google Calendar, by their names in the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import cast
from urllib.parse import urlencode

import orjson

from providers.base import (
    PRIMARY,
    Account,
    Calendar,
    Failed,
    MainCalendar,
    Member,
    MemberOutcome,
    Outcome,
    Period,
    Read,
    ReadAlone,
)
from providers.changes import ChangePage
from providers.errors import AuthorizationInvalid, ProviderError, Reason, TokenRejected
from providers.events import Changes, CreateResult, Draft, Event, Response, Scope
from providers.google import CALENDARS_PER_QUERY, RANGE_PER_QUERY, change_feed, events, parse, series
from providers.google.calendars import GoogleCalendar
from providers.google.errors import PROVIDER, error_for
from providers.google.oauth import GoogleEndpoints
from providers.google.parse import every_page
from providers.google.payloads import CalendarListEntry, CalendarListPage
from providers.google.scopes import SCOPES
from providers.http.calls import Bearer, Call, Json, token_refused_here
from providers.http.send import send
from providers.scopes import Operation
from providers.timestamps import utc_text

# Maximum of entries on a page: https://developers.google.com/workspace/calendar/api/v3/reference
CALENDARS_PER_PAGE = 250

# The end of an id that means another calendar for each account: the birthdays of its own contacts.
_OF_EACH_ACCOUNT = "#contacts@group.v.calendar.google.com"
_NOT_SHARED = Failed(Reason.NOT_FOUND, "Only its own account can read this calendar", Operation.FREE_BUSY)


class Google:
    """Google Calendar as a ``CalendarProvider`` and ``ChangeFeed``."""

    name = "google"

    def __init__(self, endpoints: GoogleEndpoints) -> None:
        self._api = endpoints.api.rstrip("/")

    def calendars(self, account: Account, *, deadline: float) -> list[Calendar]:
        """Every calendar on the account's list, each once; a short or empty page may be followed by others.

        The main calendar is included also if it is hidden.
        """
        SCOPES.require(account.scopes, Operation.LIST_CALENDARS)
        pages = self._calendar_pages(Bearer.of(account), deadline)
        found = (each for page in pages for each in parse.calendars(page, Operation.LIST_CALENDARS))
        return list({each.id: each for each in found}.values())

    def main_calendar(self, account: Account, *, deadline: float) -> MainCalendar:
        """The main calendar, whose id is the account's address."""
        operation = Operation.LIST_CALENDARS
        SCOPES.require(account.scopes, operation)
        call = Call(PROVIDER, operation, "GET", f"{self._api}/users/me/calendarList/{PRIMARY}")
        entry = send(call, error_for, deadline=deadline, bearer=Bearer.of(account))
        return parse.main_calendar(cast("CalendarListEntry", entry), operation)

    def busy(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, Outcome]:
        """The outcome for every calendar, with fifty calendars and sixty days in a call, one call at a time.

        A failed call fails its calendars; when every call failed, the error is raised. An invalid
        authorization is raised at once, unless only a token is rejected: another call may show that it is
        valid.
        """
        SCOPES.require(account.scopes, Operation.FREE_BUSY)
        bearer = Bearer.of(account)
        outcomes: dict[str, Outcome] = {}
        refused: dict[str, ProviderError] = {}
        for chunk in _chunks(list(dict.fromkeys(calendar_ids))):
            try:
                outcomes |= self._read(bearer, chunk, start, end, deadline)
            except ProviderError as error:
                _raise_if_access_ended(error)
                refused |= dict.fromkeys(chunk, error)
        if refused and not outcomes:
            raise next(iter(refused.values()))
        return outcomes | _failures(refused, bearer, Operation.FREE_BUSY)

    def busy_without(
        self, account: Account, calendar_id: str, event_id: str, start: int, end: int, *, deadline: float
    ) -> Read:
        """The busy periods of one calendar without one event, from the list of its events."""
        calendar = self._calendar(account, calendar_id, Operation.LIST_EVENTS, deadline)
        return events.busy_without(calendar, event_id, start, end)

    def busy_of_members(
        self, account: Account, members: Sequence[Member], start: int, end: int, *, deadline: float
    ) -> list[MemberOutcome]:
        """The calendars of several members, read by ``account``. The id of a main calendar is the address.

        A calendar that is not shared with ``account`` is ``notFound`` to it, and its member may be read
        separately: https://developers.google.com/workspace/calendar/api/v3/reference/freebusy/query
        """
        ids_of = [
            {each: member.address if each == PRIMARY else each for each in member.calendars}
            for member in members
        ]
        shared = [each for ids in ids_of for each in ids.values() if not each.endswith(_OF_EACH_ACCOUNT)]
        outcomes = self.busy(account, shared, start, end, deadline=deadline)
        return [
            _of_member({calendar: outcomes.get(each, _NOT_SHARED) for calendar, each in ids.items()})
            for ids in ids_of
        ]

    def events(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, tuple[Event, ...] | Failed]:
        """The events of each calendar, read one after the other; failures are returned per calendar."""
        bearer = Bearer.of(account)
        found: dict[str, tuple[Event, ...] | Failed] = {}
        refused: dict[str, ProviderError] = {}
        for each in dict.fromkeys(calendar_ids):
            calendar = self._calendar(account, each, Operation.LIST_EVENTS, deadline, bearer)
            try:
                found[each] = events.list_events(calendar, start, end)
            except ProviderError as error:
                _raise_if_access_ended(error)
                refused[each] = error
        rejected = [error for error in refused.values() if isinstance(error, TokenRejected)]
        if rejected and not bearer.accepted:
            raise rejected[0]
        return found | _failures(refused, bearer, Operation.LIST_EVENTS)

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
        """A page of changes in a calendar."""
        calendar = self._calendar(account, calendar_id, Operation.LIST_EVENTS, deadline)
        return change_feed.changes(calendar, start, end, sync_token)

    def event(self, account: Account, calendar_id: str, event_id: str, *, deadline: float) -> Event:
        """One event."""
        return events.read(self._calendar(account, calendar_id, Operation.GET_EVENT, deadline), event_id)

    def find_event(self, account: Account, calendar_id: str, meta_id: str, *, deadline: float) -> Event:
        """The event whose metaId is ``meta_id``."""
        return events.find_by_meta_id(
            self._calendar(account, calendar_id, Operation.LIST_EVENTS, deadline), meta_id
        )

    def create_event(
        self, account: Account, calendar_id: str, draft: Draft, *, deadline: float
    ) -> CreateResult:
        """Create an event, once."""
        return events.create(self._calendar(account, calendar_id, Operation.INSERT_EVENT, deadline), draft)

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
        calendar = self._calendar(account, calendar_id, Operation.UPDATE_EVENT, deadline)
        if scope is Scope.OCCURRENCE:
            return events.update(calendar, event_id, changes, required=etag)
        return series.update(calendar, event_id, changes, scope, required=etag)

    def respond_to_event(
        self, account: Account, calendar_id: str, event_id: str, response: Response, *, deadline: float
    ) -> Event:
        """Write the response of the account to its entry among the attendees."""
        calendar = self._calendar(account, calendar_id, Operation.UPDATE_EVENT, deadline)
        return events.respond(calendar, event_id, response)

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
        """Delete an event. Google finds only events of the calendar in the path."""
        calendar = self._calendar(account, calendar_id, Operation.DELETE_EVENT, deadline)
        if scope is Scope.OCCURRENCE:
            events.delete(calendar, event_id, notify=notify, required=etag)
        else:
            series.delete(calendar, event_id, scope, notify=notify, required=etag)

    def _calendar(
        self,
        account: Account,
        calendar_id: str,
        operation: Operation,
        deadline: float,
        bearer: Bearer | None = None,
    ) -> GoogleCalendar:
        return GoogleCalendar(self._api, account, calendar_id, operation, deadline=deadline, bearer=bearer)

    def _read(
        self, bearer: Bearer, chunk: Sequence[str], start: int, end: int, deadline: float
    ) -> dict[str, Outcome]:
        """A calendar counts as read when every part of the range was."""
        answers = [
            self._free_busy(bearer, chunk, since, min(since + RANGE_PER_QUERY, end), deadline)
            for since in range(start, end, RANGE_PER_QUERY)
        ]
        found: dict[str, list[Period]] = {}
        failed: dict[str, Failed] = {}
        for each in chunk:
            try:
                parts = (parse.busy(answer, each, Operation.FREE_BUSY) for answer in answers)
                found[each] = list(chain.from_iterable(parts))
            except ProviderError as error:
                failed[each] = Failed.from_error(error)
        return {**Read.of_each(found, start, end), **failed}

    def _free_busy(
        self, bearer: Bearer, chunk: Sequence[str], since: int, until: int, deadline: float
    ) -> Json:
        query = {
            "timeMin": utc_text(since),
            "timeMax": utc_text(until),
            "items": [{"id": each} for each in chunk],
        }
        call = Call(PROVIDER, Operation.FREE_BUSY, "POST", f"{self._api}/freeBusy", orjson.dumps(query))
        return send(call, error_for, deadline=deadline, bearer=bearer)

    def _calendar_pages(self, bearer: Bearer, deadline: float) -> Iterator[CalendarListPage]:
        def fetch(query: Mapping[str, str]) -> Json:
            url = f"{self._api}/users/me/calendarList?{urlencode(query)}"
            call = Call(PROVIDER, Operation.LIST_CALENDARS, "GET", url)
            return send(call, error_for, deadline=deadline, bearer=bearer)

        query = {"maxResults": str(CALENDARS_PER_PAGE), "showHidden": "true"}
        return cast("Iterator[CalendarListPage]", every_page(fetch, query, Operation.LIST_CALENDARS))


def _raise_if_access_ended(error: ProviderError) -> None:
    """Raise an error of the whole account. A rejected token may be accepted for other calendars."""
    if isinstance(error, AuthorizationInvalid) and not isinstance(error, TokenRejected):
        raise error


def _failures(refused: Mapping[str, ProviderError], bearer: Bearer, operation: str) -> dict[str, Failed]:
    """The failure of each calendar. A token that was accepted for another calendar is valid."""
    here = token_refused_here(PROVIDER, operation)
    return {
        calendar: Failed.from_error(here if isinstance(error, TokenRejected) and bearer.accepted else error)
        for calendar, error in refused.items()
    }


def _chunks(calendar_ids: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(calendar_ids), CALENDARS_PER_QUERY):
        yield calendar_ids[first : first + CALENDARS_PER_QUERY]


def _of_member(outcomes: Mapping[str, Outcome]) -> MemberOutcome:
    for each in outcomes.values():
        if isinstance(each, Failed) and each.reason is Reason.NOT_FOUND:
            return ReadAlone(each)
    return outcomes

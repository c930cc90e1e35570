"""The calls to Microsoft Graph calendars, by their names in the API."""

from __future__ import annotations

from collections.abc import Sequence

from providers.base import (
    PRIMARY,
    Account,
    Calendar,
    Failed,
    MainCalendar,
    Member,
    MemberOutcome,
    Outcome,
    Read,
)
from providers.changes import ChangePage
from providers.errors import EventNotFound, ProviderError
from providers.events import Changes, CreateResult, Draft, Event, Response, Scope
from providers.microsoft import busy, change_feed, creation, events, parse, series
from providers.microsoft.batch import BatchGet
from providers.microsoft.errors import PROVIDER
from providers.microsoft.mailbox import SETTINGS, Mailbox
from providers.microsoft.oauth import MicrosoftEndpoints
from providers.scopes import Operation

CALENDARS_PER_PAGE = 100

# Id of the part for the calendar list; parts for single calendars have numbers.
_CALENDARS = "calendars"


class Microsoft:
    """Microsoft 365 as a ``CalendarProvider`` and ``ChangeFeed``.

    Graph notifies attendees of every created, changed or deleted event. That cannot be turned off, so
    ``notify`` has no effect.
    """

    name = "microsoft"

    def __init__(self, endpoints: MicrosoftEndpoints) -> None:
        self._graph = endpoints.graph.rstrip("/")

    def calendars(self, account: Account, *, deadline: float) -> list[Calendar]:
        """Every calendar of the mailbox, with its zone: UTC when that is not known."""
        operation = Operation.LIST_CALENDARS
        mailbox = self._mailbox(account, operation, deadline)
        parts = [
            BatchGet(_CALENDARS, f"{mailbox.path}/calendars?$top={CALENDARS_PER_PAGE}"),
            *mailbox.settings(),
        ]
        answers = mailbox.fetch(parts)
        listed = answers[_CALENDARS]
        if isinstance(listed, ProviderError):
            raise listed
        zone = parse.mailbox_zone(answers.get(SETTINGS))
        known = zone if isinstance(zone, str) else "UTC"
        return parse.calendars(listed, account.email, known, operation)

    def main_calendar(self, account: Account, *, deadline: float) -> MainCalendar:
        """The default calendar of the mailbox, its owner's address and its zone, ``""`` if not readable."""
        operation = Operation.LIST_CALENDARS
        mailbox = self._mailbox(account, operation, deadline)
        calendar = BatchGet(PRIMARY, f"{mailbox.calendar_path(PRIMARY)}?$select=id,owner")
        answers = mailbox.fetch([calendar, *mailbox.settings()])
        entries = answers[PRIMARY]
        if isinstance(entries, ProviderError):
            raise entries
        zone = parse.mailbox_zone(answers.get(SETTINGS))
        return parse.main_calendar(entries[0], zone if isinstance(zone, str) else "", operation)

    def busy(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, Outcome]:
        """The outcome for every calendar; see :func:`busy.of_calendars`."""
        mailbox = self._mailbox(account, Operation.FREE_BUSY, deadline)
        return busy.of_calendars(mailbox, calendar_ids, start, end)

    def busy_without(
        self, account: Account, calendar_id: str, event_id: str, start: int, end: int, *, deadline: float
    ) -> Read:
        """The busy periods of one calendar without one event; see :func:`busy.without`."""
        return busy.without(
            self._mailbox(account, Operation.LIST_EVENTS, deadline), calendar_id, event_id, start, end
        )

    def busy_of_members(
        self, account: Account, members: Sequence[Member], start: int, end: int, *, deadline: float
    ) -> list[MemberOutcome]:
        """The calendars of several members; see :func:`busy.of_members`."""
        return busy.of_members(self._graph, account, members, start, end, deadline=deadline)

    def events(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, tuple[Event, ...] | Failed]:
        """The events of every calendar; all-day events span midnights of the mailbox's zone.

        An unknown zone is UTC; when reading it fails for now, calendars with such events fail.
        """
        return events.list_events(
            self._mailbox(account, Operation.LIST_EVENTS, deadline), calendar_ids, start, end
        )

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
        mailbox = self._mailbox(account, Operation.LIST_EVENTS, deadline)
        return change_feed.changes(mailbox, calendar_id, start, end, sync_token)

    def event(self, account: Account, calendar_id: str, event_id: str, *, deadline: float) -> Event:
        """One event; its id stays the same when it moves to another calendar."""
        mailbox = self._mailbox(account, Operation.GET_EVENT, deadline)
        return events.with_html(mailbox, calendar_id, events.read(mailbox, calendar_id, event_id))

    def find_event(self, account: Account, calendar_id: str, meta_id: str, *, deadline: float) -> Event:
        """The event whose metaId is ``meta_id``; of several, the one created first."""
        mailbox = self._mailbox(account, Operation.LIST_EVENTS, deadline)
        found = events.find_by_meta_id(mailbox, calendar_id, meta_id)
        if found is None:
            raise EventNotFound(f"{PROVIDER} knows no event of this metaId", operation=mailbox.operation)
        return events.parsed(mailbox, calendar_id, found)

    def create_event(
        self, account: Account, calendar_id: str, draft: Draft, *, deadline: float
    ) -> CreateResult:
        """Create an event, once; Graph chooses its id and ``draft.id`` is ignored.

        In a mailbox without online meetings (personal accounts), ``meeting`` makes an event without one.
        """
        mailbox = self._mailbox(account, Operation.INSERT_EVENT, deadline)
        return creation.create(mailbox, calendar_id, draft)

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
        """Write ``changes``; a time without a zone keeps the event's own, UTC when that is unknown."""
        mailbox = self._mailbox(account, Operation.UPDATE_EVENT, deadline)
        if scope is Scope.OCCURRENCE:
            return events.update(mailbox, calendar_id, event_id, changes, required=etag)
        return series.update(mailbox, calendar_id, event_id, changes, scope, required=etag)

    def respond_to_event(
        self, account: Account, calendar_id: str, event_id: str, response: Response, *, deadline: float
    ) -> Event:
        """Send the response; Graph moves a declined event out of the calendar."""
        mailbox = self._mailbox(account, Operation.UPDATE_EVENT, deadline)
        return events.respond(mailbox, calendar_id, event_id, response)

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
        """Delete an event. Of a series: one occurrence by its own id, all by the id of the series."""
        mailbox = self._mailbox(account, Operation.DELETE_EVENT, deadline)
        if scope is Scope.OCCURRENCE:
            events.delete(mailbox, calendar_id, event_id, verified=verified, required=etag)
        else:
            series.delete(mailbox, calendar_id, event_id, scope, required=etag)

    def _mailbox(self, account: Account, operation: Operation, deadline: float) -> Mailbox:
        return Mailbox(self._graph, account, operation, deadline=deadline)

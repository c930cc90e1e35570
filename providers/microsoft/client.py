"""The calls to Microsoft Graph calendars, by their names in the API."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from providers import periods
from providers.base import PRIMARY, Account, Calendar, Failed, Outcome, ProviderName
from providers.endpoints import MicrosoftEndpoints
from providers.errors import ProviderError
from providers.http import Bearer
from providers.instants import DAY, utc_text
from providers.microsoft import parse
from providers.microsoft.batch import Batches, Part
from providers.microsoft.pages import Pages, every_page
from providers.scopes import Operation, has_scope, require

# Events on a page of calendarView: the most there are, 10 when nothing is said.
# https://learn.microsoft.com/en-us/graph/api/calendar-list-calendarview
EVENTS_PER_PAGE = 1000
CALENDARS_PER_PAGE = 100

_FIELDS = "start,end,showAs,isAllDay,isCancelled,responseStatus"

# Ids of parts; those of calendars are numbers.
_SETTINGS = "settings"
_CALENDARS = "calendars"


class Microsoft:
    """Microsoft 365 as a ``CalendarProvider``."""

    name = ProviderName.MICROSOFT

    def __init__(self, endpoints: MicrosoftEndpoints) -> None:
        self._graph = endpoints.graph.rstrip("/")

    def calendars(self, account: Account, *, deadline: float) -> list[Calendar]:
        """Every calendar of the mailbox, with its zone: UTC when that may not be read or is custom."""
        operation = Operation.LIST_CALENDARS
        parts = [Part(_CALENDARS, f"/me/calendars?$top={CALENDARS_PER_PAGE}"), *_settings(account)]
        answers = self._fetch(account, parts, operation, deadline)
        listed = answers[_CALENDARS]
        if isinstance(listed, ProviderError):
            raise listed
        zone = parse.mailbox_zone(answers.get(_SETTINGS), operation)
        if zone is None or isinstance(zone, parse.UnknownZone):
            zone = "UTC"
        if isinstance(zone, ProviderError):
            raise zone
        return parse.calendars(listed, account.email, zone, operation)

    def busy(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, Outcome]:
        """The outcome of every calendar, each read as a part of a batch.

        The mailbox's zone is a part of the first batch. Where it may not be read, all-day events cover
        their days in every zone; when it fails to be read, calendars with busy ones fail, the others do not.
        """
        operation = Operation.FREE_BUSY
        names = {str(number): each for number, each in enumerate(dict.fromkeys(calendar_ids))}
        # Graph selects all-day events as if their dates were in UTC, and an event of the UTC days [d, e) is
        # busy from d - 14 h to e + 12 h at most: what touches the range is within a day of it.
        views = [Part(number, _view(each, start - DAY, end + DAY)) for number, each in names.items()]
        answers = self._fetch(account, [*_settings(account), *views] if views else [], operation, deadline)
        zone = parse.mailbox_zone(answers.get(_SETTINGS), operation)
        return {each: _outcome(answers[number], zone, start, end) for number, each in names.items()}

    def _fetch(
        self, account: Account, parts: Sequence[Part], operation: Operation, deadline: float
    ) -> dict[str, Pages]:
        require(self.name, account.scopes, operation)
        batches = Batches(self._graph, Bearer(account.tokens), operation, deadline=deadline)
        return every_page(batches, parts)


def _settings(account: Account) -> list[Part]:
    """The part that asks for the mailbox's zone, where the grant allows to."""
    if not has_scope(ProviderName.MICROSOFT, account.scopes, "MailboxSettings.Read"):
        return []
    return [Part(_SETTINGS, "/me/mailboxSettings")]


def _view(calendar_id: str, start: int, end: int) -> str:
    calendar = "/me/calendar" if calendar_id == PRIMARY else f"/me/calendars/{quote(calendar_id, safe='')}"
    return (
        f"{calendar}/calendarView?startDateTime={utc_text(start)}&endDateTime={utc_text(end)}"
        f"&$select={_FIELDS}&$top={EVENTS_PER_PAGE}"
    )


def _outcome(pages: Pages, zone: parse.Zone, start: int, end: int) -> Outcome:
    if isinstance(pages, ProviderError):
        return Failed.because(pages)
    try:
        found = parse.busy(pages, zone, Operation.FREE_BUSY)
    except ProviderError as error:
        return Failed.because(error)
    return periods.read(found, start, end)

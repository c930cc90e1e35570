"""One mailbox during one operation: its calls, its token, its zone."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from urllib.parse import quote

import orjson

from providers.base import PRIMARY, Account
from providers.errors import ProviderError
from providers.event_writes import with_outcome, write_with_known_zone
from providers.http.calls import Bearer, Call, Decode, Json, json_object
from providers.http.send import send
from providers.microsoft import parse
from providers.microsoft.batch import Batches, BatchGet, Pages, correlation_header, every_page, relative
from providers.microsoft.errors import PROVIDER, error_for, write_error_for
from providers.microsoft.scopes import SCOPES, may_read_zone
from providers.scopes import Operation
from providers.timestamps import utc_text
from scheduling.zones import iana_zone, windows_zone

# Id of the part for the mailbox's zone; parts for calendars have numbers.
SETTINGS = "settings"
_SETTINGS_PATH = "/mailboxSettings"

# Other event ids change when an event moves: https://learn.microsoft.com/en-us/graph/outlook-immutable-id
_IMMUTABLE = 'IdType="ImmutableId"'
AS_TEXT = f'{_IMMUTABLE}, outlook.timezone="UTC", outlook.body-content-type="text"'
AS_HTML = f'{_IMMUTABLE}, outlook.timezone="UTC", outlook.body-content-type="html"'


class Mailbox:
    """The mailbox of an account during one operation.

    :raise InsufficientScopes: on construction, when the grant does not allow the operation
    """

    def __init__(self, graph: str, account: Account, operation: Operation, *, deadline: float) -> None:
        SCOPES.require(account.scopes, operation)
        self.addresses = account.addresses
        self._former_calendars = account.former_calendars
        self.path = account_path(account)
        self.operation = operation
        self._graph = graph
        self.deadline = deadline
        self._bearer = Bearer.of(account)
        self._tells_zone = may_read_zone(account.scopes)

    def until(self, deadline: float) -> Mailbox:
        """The same mailbox with another deadline."""
        other = copy(self)
        other.deadline = deadline
        return other

    def fetch(self, parts: Sequence[BatchGet], decode: Decode = json_object) -> dict[str, Pages]:
        """Every page of every part; see :func:`every_page`. ``decode`` reads the answer to a batch."""
        batches = Batches(self._graph, self._bearer, self.operation, deadline=self.deadline, decode=decode)
        return every_page(batches, parts)

    def get(self, path: str, prefer: str = AS_TEXT) -> Json:
        """One resource; ``path`` begins with a slash and is already quoted.

        :raise ProviderError: NotFound or InvalidCalendarId also for a missing event
        """
        call = self._call("GET", path, headers={"Prefer": prefer})
        return send(call, error_for, deadline=self.deadline, bearer=self._bearer)

    def write(self, method: str, path: str, body: Json | None = None, *, match: str | None = None) -> Json:
        """The answer to a write, ``{}`` when it is empty or unreadable.

        ``match`` is the etag that the event must still have.

        :raise EventOutdated: when the etag differs
        :raise DuplicateTransaction, EventRefused: see :func:`write_error_for`
        :raise OutcomeUnknown: when Graph may have executed it
        """
        headers = {"Prefer": AS_TEXT} | ({"If-Match": match} if match else {})

        def write(spelling: Json | None) -> Json:
            content = None if spelling is None else orjson.dumps(spelling)
            call = self._call(method, path, body=content, answers=False, headers=dict(headers))
            return send(call, write_error_for, deadline=self.deadline, bearer=self._bearer)

        try:
            return write_with_known_zone(body, _other_name, write)
        except ProviderError as error:
            raise with_outcome(error) from None

    def linked(self, link: str) -> str:
        """The path of a link in an answer, which is absolute; see :func:`relative`."""
        return relative(link, self._graph, self.operation)

    def settings(self) -> list[BatchGet]:
        """The part for the mailbox's zone; empty without permission to read it."""
        return [BatchGet(SETTINGS, settings_path(self.path))] if self._tells_zone else []

    @cached_property
    def zone(self) -> parse.Zone:
        """The mailbox's zone, requested once."""
        if not self._tells_zone:
            return None
        try:
            pages: Pages = [self.get(settings_path(self.path))]
        except ProviderError as error:
            pages = error
        return parse.mailbox_zone(pages)

    def calendar_path(self, calendar_id: str) -> str:
        """The path of a calendar of this mailbox."""
        return calendar_path(self.path, PRIMARY if self.is_main(calendar_id) else calendar_id)

    def is_main(self, calendar_id: str) -> bool:
        """Whether an id is the alias of the main calendar, or an earlier id of it."""
        return calendar_id == PRIMARY or calendar_id in self._former_calendars

    def event_path(self, calendar_id: str, event_id: str) -> str:
        """The path of an event in a calendar."""
        return f"{self.calendar_path(calendar_id)}/events/{quote(event_id, safe='')}"

    def view_path(self, calendar_id: str, start: int, end: int) -> str:
        """The path of a calendar's events in a window; see :func:`view_path`."""
        return view_path(self.calendar_path(calendar_id), start, end)

    def _call(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str],
        body: bytes | None = None,
        answers: bool = True,
    ) -> Call:
        headers |= correlation_header(self._bearer)
        return Call(
            PROVIDER, self.operation, method, self._graph + path, body, answers=answers, headers=headers
        )


def _other_name(zone: str) -> str | None:
    """Windows' name of an IANA zone, or the other way round."""
    other = windows_zone(zone) or iana_zone(zone)
    return other if other != zone else None


def account_path(account: Account) -> str:
    """The path of an account's mailbox: the one of the token, unless that is for the whole tenant."""
    return user_path(account.email or "") if account.delegated else "/me"


def user_path(address: str) -> str:
    """The path of a user's mailbox, for an application that reads the mailboxes of its tenant.

    https://learn.microsoft.com/en-us/graph/api/user-get
    """
    return f"/users/{quote(address, safe='@')}"


def settings_path(mailbox_path: str) -> str:
    return mailbox_path + _SETTINGS_PATH


def calendar_path(mailbox_path: str, calendar_id: str) -> str:
    if calendar_id == PRIMARY:
        return f"{mailbox_path}/calendar"
    return f"{mailbox_path}/calendars/{quote(calendar_id, safe='')}"


def view_path(calendar: str, start: int, end: int) -> str:
    """The path of a calendar's events from ``start`` to ``end``: series expanded, all-day events by UTC days.

    ``calendar`` is the path of the calendar.

    https://learn.microsoft.com/en-us/graph/api/calendar-list-calendarview
    """
    window = f"startDateTime={utc_text(start)}&endDateTime={utc_text(end)}"
    return f"{calendar}/calendarView?{window}"

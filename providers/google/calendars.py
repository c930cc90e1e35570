"""One calendar during one operation: its calls, its token, its zone."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from urllib.parse import quote, urlencode

import orjson

from providers.base import Account
from providers.errors import EventNotFound, InvalidCalendarId, ProviderError
from providers.etags import strong
from providers.event_writes import with_outcome, write_with_known_zone
from providers.google.errors import PROVIDER, error_for, write_error_for
from providers.google.parse import canonical, every_page
from providers.google.parse_events import Reader
from providers.google.scopes import SCOPES
from providers.http.calls import Bearer, Call, Json
from providers.http.send import send
from providers.scopes import Operation
from scheduling.zones import iana_zone, renamed_zone

# Maximum: https://developers.google.com/workspace/calendar/api/v3/reference/events/list
EVENTS_PER_PAGE = 2500

# Never ids; in a path they mean another resource: "/events/.." is the calendar itself.
NOT_SEGMENTS = frozenset({"", ".", ".."})


class GoogleCalendar:
    """A calendar of an account during one operation."""

    def __init__(
        self,
        api: str,
        account: Account,
        calendar_id: str,
        operation: Operation,
        *,
        deadline: float,
        bearer: Bearer | None = None,
    ) -> None:
        SCOPES.require(account.scopes, operation)
        self.operation = operation
        self.deadline = deadline
        own = frozenset(map(canonical, account.addresses))
        self.reader = Reader(calendar_id, own, operation)
        self._calendar_id = calendar_id
        self._events = f"{api}/calendars/{quote(calendar_id, safe='')}/events"
        self._bearer = bearer or Bearer.of(account)

    def event_path(self, event_id: str) -> str:
        """The path of one event below the calendar's events.

        :raise EventNotFound: for a text that cannot be an event id
        """
        if event_id in NOT_SEGMENTS:
            raise self.missing()
        return f"/{quote(event_id, safe='')}"

    def until(self, deadline: float) -> GoogleCalendar:
        """The same calendar with another deadline."""
        other = copy(self)
        other.deadline = deadline
        return other

    def get(self, path: str = "", **query: str) -> Json:
        """One resource at or below the calendar's events."""
        call = self._call("GET", path, query)
        return send(call, error_for, deadline=self.deadline, bearer=self._bearer)

    def write(
        self,
        method: str,
        path: str = "",
        body: Json | None = None,
        *,
        query: dict[str, str],
        match: str | None = None,
    ) -> Json:
        """The answer to a write, ``{}`` when it is empty or unreadable.

        ``match`` is the etag that the event must still have; Google knows strong ones only.

        :raise EventOutdated: when the etag differs
        :raise EventExists, EventRefused, Deleted: see :func:`write_error_for`
        :raise OutcomeUnknown: when Google may have executed it
        """
        headers = {"If-Match": strong(match)} if match else {}

        def write(spelling: Json | None) -> Json:
            content = None if spelling is None else orjson.dumps(spelling)
            call = self._call(method, path, query, content, answers=False, headers=headers)
            return send(call, write_error_for, deadline=self.deadline, bearer=self._bearer)

        try:
            return write_with_known_zone(body, renamed_zone, write)
        except ProviderError as error:
            raise with_outcome(error) from None

    def pages(self, **query: str) -> Iterator[Json]:
        """Every page of the calendar's events."""
        whole = {**query, "maxResults": str(EVENTS_PER_PAGE)}
        return every_page(lambda parameters: self.get(**parameters), whole, self.operation)

    @cached_property
    def zone(self) -> str:
        """The calendar's zone, requested once; it is part of the event list, which every reader may call."""
        return zone_of(self.get(maxResults="1", fields="timeZone"))

    def missing(self) -> EventNotFound:
        """The error for a missing event: Google answers the same when the calendar does not exist.

        :raise NotFound, InvalidCalendarId: when the calendar does not exist
        """
        _ = self.zone
        return EventNotFound(f"{PROVIDER} does not know this event", operation=self.operation)

    def _call(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: bytes | None = None,
        *,
        answers: bool = True,
        headers: dict[str, str] | None = None,
    ) -> Call:
        if self._calendar_id in NOT_SEGMENTS:
            raise InvalidCalendarId(f"{PROVIDER} cannot read this calendar id", operation=self.operation)
        url = self._events + path + (f"?{urlencode(query)}" if query else "")
        return Call(PROVIDER, self.operation, method, url, body, answers=answers, headers=headers or {})


def zone_of(page: Json) -> str:
    """The calendar's zone, from a page of its events; UTC when that has none, or one that is not known."""
    return known_zone_of(page) or "UTC"


def known_zone_of(page: Json) -> str | None:
    """The same; None when the page has none, or one that is not known."""
    zone = page.get("timeZone")
    return iana_zone(zone) if isinstance(zone, str) else None

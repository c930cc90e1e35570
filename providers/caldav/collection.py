"""One calendar during one operation: its calls, its zone, and the events that they find."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from providers.caldav import calendars, identifiers, xml
from providers.caldav.credentials import BasicCredentials
from providers.caldav.errors import PROVIDER, of_status
from providers.caldav.server import Server
from providers.caldav.writing import Author
from providers.caldav.xml import CALDAV, DAV, Resource
from providers.errors import AccessDenied, EventNotFound, NotFound, ProviderError, Unavailable
from providers.http.calls import unreadable
from providers.ical import calendar as ical
from providers.ical.bounds import InvalidCalendar
from providers.ical.calendar import CalendarText
from providers.ical.clocks import Clock
from providers.timestamps import DAY, utc_text

_DATA = f"{CALDAV}calendar-data"
_ETAG = f"{DAV}getetag"
_SYNC_TOKEN = f"{DAV}sync-token"
_CUT_OFF = 507
# Objects in one report by their addresses.
_AT_ONCE = 100
_GONE = {404, 410}
_EVENT = re.compile(r"^BEGIN:VEVENT\s*$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An event with its exceptions, as the server stores it."""

    url: str
    etag: str | None
    text: str = field(repr=False)


class Collection:
    """A calendar of an account during one operation; ``calendar_id`` is its id as it was asked for.

    ``zone`` is that of the person, for a calendar whose server has none for it.
    """

    def __init__(
        self,
        server: Server,
        known: BasicCredentials,
        url: str,
        calendar_id: str,
        own: Iterable[str],
        zone: ZoneInfo | None = None,
    ) -> None:
        self.server = server
        self.url = url
        self.calendar_id = calendar_id
        self.operation = server.operation
        self.author = Author(tuple(dict.fromkeys([*known.addresses, *own])), server.operation)
        self._origin = known.origin
        self._own_zone = zone

    @property
    def own(self) -> frozenset[str]:
        """The addresses of the account, in lower case."""
        return frozenset(each.lower() for each in self.author.addresses)

    @property
    def id(self) -> str:
        """The real id of the calendar."""
        return identifiers.calendar_id(self.url)

    def until(self, deadline: float) -> Collection:
        """The same calendar with another deadline."""
        other = copy(self)
        other.server = self.server.until(deadline)
        return other

    @cached_property
    def stated_zone(self) -> ZoneInfo | None:
        """The zone that the server has for the calendar, asked for once; else the person's."""
        name = calendars.time_zone(self.server.one(self.url, calendars.TIME_ZONE))
        return ZoneInfo(name) if name else self._own_zone

    def zone_for(self, text: CalendarText) -> ZoneInfo | None:
        """The calendar's zone, which is asked for only when events have days, or times without a zone."""
        return self.stated_zone if _needs_zone(text) else None

    def zone_of(self, text: CalendarText) -> Clock:
        """The zone of days and of times without one."""
        return text.zone_or(self.zone_for(text))

    def between(self, start: int, end: int) -> list[StoredObject]:
        """The objects with an event in ``[start, end)``, and some around it.

        Servers read days and times without a zone in zones of their own: the query adds a day on both sides.

        :raise ProviderError: when the server could not give one of them
        """
        span = (_basic(start - DAY), _basic(end + DAY))
        found = self._objects(self.server.report(self.url, xml.events_between(*span)))
        if not found:
            self.require()
        return found

    def require(self) -> None:
        """Check that there is such a calendar: servers find no events in other collections either.

        :raise NotFound: when there is none
        """
        if not calendars.holds_events(self.server.one(self.url, calendars.KIND)):
            raise NotFound(f"{PROVIDER} does not know this calendar", operation=self.operation)

    def at(self, url: str) -> StoredObject | None:
        """The object at an address; None when there is none."""
        found = self.server.report(self.url, xml.multiget(urlsplit(url).path))
        return next(iter(self._objects(each for each in found if not _is_gone(each))), None)

    @cached_property
    def sync_token(self) -> str:
        """The token of its present state, empty if the server has none (RFC 6578, 4)."""
        return self.server.one(self.url, (_SYNC_TOKEN,)).text(_SYNC_TOKEN)

    def changed(self, sync_token: str) -> tuple[list[str], list[str], str, bool]:
        """The addresses of changed and of deleted objects since a token, the next token, and ``more``.

        ``more``: the server has cut off its report, and the next token continues it (RFC 6578, 3.6).

        :raise ProviderError: when the server could not report one of them
        """
        found, token = self.server.changed(self.url, sync_token)
        members = [each for each in found if not calendars.is_same(each.url, self.url)]
        cut_off = any(each.status == _CUT_OFF for each in found)
        for each in members:
            if not each.ok and each.status not in _GONE:
                raise self._failed(each.status)
        changed, gone = ([each.url for each in members if each.ok is ok] for ok in (True, False))
        return changed, gone, token, cut_off

    def events_at(self, urls: Sequence[str]) -> list[StoredObject]:
        """The objects with events at some addresses. An address may be that of a task, or have no object."""
        paths = [urlsplit(each).path for each in urls]
        found: list[StoredObject] = []
        for first in range(0, len(paths), _AT_ONCE):
            report = self.server.report(self.url, xml.multiget(*paths[first : first + _AT_ONCE]))
            found += self._objects(each for each in report if not _is_gone(each) and not _is_other(each))
        return found

    def containing(self, name: str, value: str) -> list[StoredObject]:
        """The objects of which the server says that an event has a property with this value in it.

        XML cannot express every value; no event has the others.
        """
        if xml.UNWRITABLE.search(value):
            return []
        return self._objects(self.server.report(self.url, xml.events_with(name, value)))

    def read(self, objects: Iterable[StoredObject]) -> CalendarText:
        """The events of some objects. A zone that one states for a whole feed is not that of the calendar.

        :raise InvalidCalendar: when one cannot be parsed
        """
        contents = [each.text.encode() for each in objects] or [b"BEGIN:VCALENDAR\r\nEND:VCALENDAR"]
        try:
            return ical.read(*contents, states_zone=False, deadline=self.server.deadline)
        except InvalidCalendar as error:
            error.operation = self.operation
            raise

    def missing(self) -> EventNotFound:
        """The error for a missing event."""
        return EventNotFound(f"{PROVIDER} does not know this event", operation=self.operation)

    def _objects(self, found: Iterable[Resource]) -> list[StoredObject]:
        """The objects of a report. One failed part fails the calendar: it may be an event."""
        objects = []
        for each in found:
            if not each.ok:
                raise self._failed(each.status)
            data = each.properties.get(_DATA)
            if data is None and calendars.is_same(each.url, self.url):
                # Some servers list the collection itself.
                continue
            if data is None or not data.text:
                raise self._failed(each.refused.get(_DATA, 500))
            if not _EVENT.search(data.text):
                # The server has found an event in it.
                raise unreadable(PROVIDER, self.operation)
            if not each.url.startswith(f"{self._origin}/"):
                # A write would send the password there.
                raise unreadable(PROVIDER, self.operation)
            objects.append(StoredObject(each.url, each.text(_ETAG) or None, data.text))
        return objects

    def _failed(self, status: int) -> ProviderError:
        """The error for a part. A missing event is not a missing calendar."""
        error = of_status(status, self.operation)
        if isinstance(error, NotFound) or not isinstance(error, Unavailable | AccessDenied):
            message = f"{PROVIDER} could not give all events, status {status}"
            return Unavailable(message, operation=self.operation)
        return error


def _is_gone(found: Resource) -> bool:
    return bool({found.status, found.refused.get(_DATA)} & _GONE)


def _is_other(found: Resource) -> bool:
    """Whether an object has no event: a task, for example."""
    data = found.properties.get(_DATA)
    return found.ok and data is not None and bool(data.text) and not _EVENT.search(data.text or "")


def _needs_zone(text: CalendarText) -> bool:
    """Whether an event states a day or a floating time."""
    series = text.series.values()
    entries = chain(text.singles, *(each.masters for each in series), *(each.exceptions for each in series))
    return any(
        edge is not None and edge.zone is None
        for entry in entries
        if entry.span is not None
        for edge in (entry.span.start, entry.span.end, entry.replaces)
    )


def _basic(milliseconds: int) -> str:
    """``20261120T090000Z``."""
    return f"{utc_text(milliseconds)[:19].replace('-', '').replace(':', '')}Z"

"""Subscribed calendars as a provider: one calendar, which can be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from providers.base import (
    PRIMARY,
    Account,
    Calendar,
    Failed,
    MainCalendar,
    Outcome,
    Read,
)
from providers.changes import ChangePage, Digests, compared, decoded, encoded
from providers.errors import EventNotFound, NotFound, ProviderError
from providers.events import Event
from providers.ical import events
from providers.ical.bounds import InvalidCalendar
from providers.ical.busy import busy_periods
from providers.ical.events import Reader
from providers.ics import address
from providers.ics.feeds import Feed, Feeds
from providers.ics.fetching import PROVIDER
from providers.ics.scopes import SCOPES
from providers.scopes import Operation

NAME = "ics"

# Many servers write the time of the request into it (RFC 5545, 3.8.7.2).
_TIME_STAMP = re.compile(r"^DTSTAMP[;:].*$", re.MULTILINE | re.IGNORECASE)

# The colours of a calendar that states none.
_BACKGROUND, _FOREGROUND = "#616161", "#ffffff"


class SubscribedCalendars:
    """Feeds as a ``CalendarProvider`` and ``ChangeFeed``.

    The address of a feed is the token of its account.
    """

    name = NAME

    def __init__(self, feeds: Feeds) -> None:
        self._feeds = feeds

    def calendars(self, account: Account, *, deadline: float) -> list[Calendar]:
        """The calendar of the feed."""
        url, feed = self._feed(account, Operation.LIST_CALENDARS, deadline)
        zone = feed.calendar.zone.name if feed.calendar.zone else ""
        return [
            Calendar(
                id=address.hashed(url),
                provider=NAME,
                subject=feed.calendar.name or "Subscribed calendar",
                access_role="reader",
                primary=True,
                selected=True,
                background_color=_BACKGROUND,
                foreground_color=_FOREGROUND,
                time_zone=zone or "UTC",
                original={"name": feed.calendar.name, "timeZone": zone},
            )
        ]

    def main_calendar(self, account: Account, *, deadline: float) -> MainCalendar:
        """The calendar of the feed."""
        url, feed = self._feed(account, Operation.LIST_CALENDARS, deadline)
        return main_calendar(url, feed)

    def busy(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, Outcome]:
        """The outcome for the calendar, and ``NotFound`` for every other id."""
        url, feed = self._feed(account, Operation.FREE_BUSY, deadline)
        found: dict[str, Outcome] = {}
        for each in calendar_ids:
            try:
                _require(each, url, Operation.FREE_BUSY)
                read = feed.busy(start, end, account.addresses, account.zone, deadline=deadline)
                found[each] = replace(read, age=self._feeds.age(feed))
            except (NotFound, InvalidCalendar) as error:
                found[each] = _failed(error, Operation.FREE_BUSY)
        return found

    def busy_without(
        self, account: Account, calendar_id: str, event_id: str, start: int, end: int, *, deadline: float
    ) -> Read:
        """The busy periods without one event."""
        url, feed = self._feed(account, Operation.LIST_EVENTS, deadline)
        _require(calendar_id, url, Operation.LIST_EVENTS)
        periods = busy_periods(
            feed.calendar,
            start,
            end,
            own_addresses=account.addresses,
            zone=account.zone,
            without=event_id,
            deadline=deadline,
        )
        read = Read.of_each({calendar_id: periods}, start, end)[calendar_id]
        return replace(read, age=self._feeds.age(feed))

    def events(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, tuple[Event, ...] | Failed]:
        """The events of the calendar."""
        operation = Operation.LIST_EVENTS
        url, feed = self._feed(account, operation, deadline)
        found: dict[str, tuple[Event, ...] | Failed] = {}
        for each in calendar_ids:
            try:
                _require(each, url, operation)
                reader = Reader(NAME, each, account.addresses)
                found[each] = tuple(
                    events.events(feed.calendar, reader, start, end, zone=account.zone, deadline=deadline)
                )
            except (NotFound, InvalidCalendar) as error:
                found[each] = _failed(error, operation)
        return found

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
        """The changes since the feed was read before: the sync token has digests of its events."""
        operation = Operation.LIST_EVENTS
        known = None if sync_token is None else decoded(sync_token, Digests, PROVIDER, operation)
        url, feed = self._feed(account, operation, deadline)
        _require(calendar_id, url, operation)
        reader = Reader(NAME, calendar_id, account.addresses)
        listed = events.events(feed.calendar, reader, start, end, zone=account.zone, deadline=deadline)
        updated, deleted, digests = compared(listed, _version, known)
        return ChangePage(updated, deleted, encoded(digests))

    def event(self, account: Account, calendar_id: str, event_id: str, *, deadline: float) -> Event:
        """One event, series or occurrence."""
        url, feed = self._feed(account, Operation.GET_EVENT, deadline)
        _require(calendar_id, url, Operation.GET_EVENT)
        reader = Reader(NAME, calendar_id, account.addresses)
        found = events.event(feed.calendar, reader, event_id, zone=account.zone, deadline=deadline)
        if found is None:
            raise _missing(Operation.GET_EVENT)
        return found

    def find_event(self, account: Account, calendar_id: str, meta_id: str, *, deadline: float) -> Event:
        """The event with a metaId: a feed may be that of a calendar in which Almanac writes."""
        url, feed = self._feed(account, Operation.LIST_EVENTS, deadline)
        _require(calendar_id, url, Operation.LIST_EVENTS)
        reader = Reader(NAME, calendar_id, account.addresses)
        found = events.find(feed.calendar, reader, meta_id, zone=account.zone)
        if found is None:
            raise _missing(Operation.LIST_EVENTS)
        return found

    def _feed(self, account: Account, operation: Operation, deadline: float) -> tuple[str, Feed]:
        SCOPES.require(account.scopes, operation)
        url = account.tokens.access_token(deadline=deadline).reveal
        return url, self._feeds.read(url, account, operation, deadline=deadline)


def main_calendar(url: str, feed: Feed) -> MainCalendar:
    """The calendar of a feed."""
    zone = feed.calendar.zone
    return MainCalendar(address.hashed(url), "", zone.name if zone else "")


def _version(event: Event) -> str:
    """When an event is, and its text without the time of the request."""
    return f"{event.start} {event.end}\n{_TIME_STAMP.sub('', event.original['icalendar'])}"


def _require(calendar_id: str, url: str, operation: Operation) -> None:
    if calendar_id not in (PRIMARY, address.hashed(url)):
        raise NotFound(f"{PROVIDER} has no such calendar", operation=operation)


def _missing(operation: Operation) -> EventNotFound:
    return EventNotFound(f"{PROVIDER} does not have this event", operation=operation)


def _failed(error: ProviderError, operation: Operation) -> Failed:
    error.operation = operation
    return Failed.from_error(error)

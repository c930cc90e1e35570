"""The time of an all-day event, and moves: updates that give an event another time, if that is free.

The time that a moved event has now counts as free, because the move ends it. Other events in it do not.

An all-day event lasts from midnight to midnight in the zone of its calendar: the providers write it as days.
The zone of the request does not matter then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from app.availability import connections
from app.availability.selection import CalendarRequest, CalendarSelector, counting_targets, is_main
from app.events import worker_calls
from app.events.bookings import Time
from app.http.errors import ApiError, Invalid
from app.schemas.error_codes import Code
from providers.base import PRIMARY, Calendar, Failed
from providers.events import Changes, Day, Event, Moment
from providers.scopes import Operation
from providers.timestamps import DAY, FIRST_MIDNIGHT, LAST_MIDNIGHT, wall_instant
from scheduling.intervals import Intervals
from scheduling.windows import zone_exists
from store.sql.queries.connection_rows import ConnectionRef
from workers.jobs import GetEvent, ReadBusyWithout, ShowCalendars


class Moved(NamedTuple):
    """The event that a request moves, and the time that it may have now, in milliseconds."""

    ref: ConnectionRef
    calendar: str
    id: str
    start: int
    end: int

    def is_near(self, time: Time) -> bool:
        """Whether the event may count as busy in the time that the request wants."""
        start, end = time.busy_range()
        return self.start < end and self.end > start

    def busy_without(self, time: Time) -> Intervals:
        """The busy periods of its calendar without the event, by a new read.

        :raise ApiError: when the calendar could not be read
        """
        job = ReadBusyWithout(self.ref.id, self.calendar, self.id, *time.busy_range())
        reply = worker_calls.read_one(self.ref, job)
        outcome = reply.failed or reply.outcomes[self.calendar]
        if isinstance(outcome, Failed):
            raise connections.error(self.ref, outcome, self.calendar)
        return outcome.busy


def find(ref: ConnectionRef, calendar_id: str, event_id: str, content: Changes) -> tuple[Moved, Changes]:
    """The event that an update moves, and the changes with both a start and an end.

    An edge that they lack is written too: if another client changes it meanwhile, the event must not end up
    in time that was not checked.

    :raise ApiError: when the event could not be read, or cannot be moved like this
    """
    connections.require(ref, Operation.GET_EVENT, Operation.LIST_EVENTS, calendar_id=calendar_id)
    event = _read(ref, calendar_id, event_id)
    if event.is_series:
        raise Invalid(
            "ifFree must not be given for a series: move its occurrences one by one", param="ifFree"
        )
    if content.has_one_edge:
        content = _completed(content, event)
    # The days of the calendar may lie elsewhere than where they were read, if its zone is not known.
    margin = DAY if event.all_day else 0
    return Moved(ref, calendar_id, event.id, event.start - margin, event.end + margin), content


def others(calendars: CalendarRequest, moved: Moved, *, in_main: bool) -> CalendarRequest:
    """The calendars that count, without that of the event; ``in_main``: if it is the main one there."""
    if counting := calendars.selector.counting:
        of_event = moved.calendar if not in_main else PRIMARY
        kept = [
            each
            for each in counting_targets(calendars.connections, counting)
            if each.key != (moved.ref.id, of_event)
        ]
        connections = {each.connection.id: each.connection for each in kept}
        keys = tuple([each.key for each in kept])
        return CalendarRequest(list(connections.values()), CalendarSelector(counting=keys))
    refs = [ref for ref in calendars.connections if not (in_main and ref.id == moved.ref.id)]
    return CalendarRequest(refs, CalendarSelector())


def _read(ref: ConnectionRef, calendar_id: str, event_id: str) -> Event:
    job = GetEvent(ref.id, calendar_id, event_id)
    reply = worker_calls.read_one(ref, job)
    outcome = reply.failed or reply.events[calendar_id]
    if isinstance(outcome, Failed):
        raise connections.error(ref, outcome, calendar_id)
    return outcome[0]


def _completed(content: Changes, event: Event) -> Changes:
    """The changes with the edge that they lack.

    :raise ApiError: when their edge does not fit that of the event
    """
    if (fault := content.edge_error_for(event)) is not None:
        raise ApiError(fault, Code.EVENT_REFUSED)
    if event.all_day:
        missing = "start" if content.start is None else "end"
        raise Invalid(f"{missing} must be given too, to move an all-day event with ifFree", param=missing)
    return replace(content, start=content.start or Moment(event.start), end=content.end or Moment(event.end))


def all_day_span(
    first: Day, end: Day, calendars: Sequence[tuple[ConnectionRef, str]], fallback: ZoneInfo | None
) -> tuple[int, int]:
    """The time of an event in these calendars, each with its connection, in milliseconds.

    ``fallback`` is the zone of calendars whose zone is not known. Without it, that may be any zone of the
    earth.
    """
    if_unknown = [FIRST_MIDNIGHT, LAST_MIDNIGHT] if fallback is None else [fallback]
    zones = _zones(calendars, if_unknown) or if_unknown
    begins, ends = f"{first.date}T00:00:00", f"{end.date}T00:00:00"
    return (
        min(wall_instant(begins, zone) for zone in zones),
        max(wall_instant(ends, zone, up=True) for zone in zones),
    )


def _zones(calendars: Sequence[tuple[ConnectionRef, str]], if_unknown: Sequence[tzinfo]) -> list[tzinfo]:
    """The zones of these calendars, from the provider: their owner may have changed a stored one."""
    jobs = {ref.id: ShowCalendars(ref.id) for ref, _ in calendars}
    replies = worker_calls.read(jobs)
    zones: list[tzinfo] = []
    for ref, calendar in calendars:
        name = _zone_name(ref, calendar, replies[ref.id].calendars)
        zones += [ZoneInfo(name)] if name is not None else if_unknown
    return zones


def _zone_name(ref: ConnectionRef, calendar: str, listed: Sequence[Calendar]) -> str | None:
    for each in listed:
        if each.id == calendar or (each.primary and is_main(ref, calendar)):
            name = each.known_time_zone or (ref.time_zone if each.primary else None)
            return name if name and zone_exists(name) else None
    return None

"""The busy periods of a calendar."""

from __future__ import annotations

from collections.abc import Set
from datetime import tzinfo

from providers.base import Period
from providers.ical.bounds import Budget
from providers.ical.calendar import CalendarText
from providers.ical.clocks import Clock
from providers.ical.entries import Entry
from providers.ical.occurrences import Occurrence, occurrence_id, occurrences


def busy_periods(
    calendar: CalendarText,
    start: int,
    end: int,
    *,
    zone: tzinfo | None = None,
    own_addresses: Set[str] = frozenset(),
    without: str | None = None,
    deadline: float,
) -> list[Period]:
    """The periods in ``[start, end)`` in which the person is busy, in UTC milliseconds, in no order.

    ``zone`` is that of floating times and whole days if the calendar states none; else it is UTC.
    ``own_addresses`` are the person's, in lower case: an event that they have declined is free.
    ``without`` is the id of an event, a series or an occurrence that does not count.

    :raise InvalidCalendar: when an event that may lie in the range cannot be understood, or series recur more
        often than the limits allow
    :raise Unavailable: when the deadline has passed
    """
    budget = Budget(calendar.limits, deadline)
    clock = calendar.zone_or(zone)

    def blocks(entry: Entry) -> bool:
        return entry.blocks(own_addresses)

    return [
        (each.start, each.end)
        for each in occurrences(calendar, start, end, clock, budget, blocks)
        if each.start < end and each.end > start and each.start < each.end
        if without is None or not _is(each, without, clock)
    ]


def _is(found: Occurrence, event_id: str, zone: Clock) -> bool:
    if found.entry.uid == event_id:
        return True
    return found.original is not None and occurrence_id(found, zone) == event_id

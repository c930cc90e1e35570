"""The time that an all-day event takes: from midnight to midnight in the zone of its calendar.

The providers write an all-day event as days. The zone of the request does not matter then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from zoneinfo import ZoneInfo

from app.availability.selection import is_main
from app.events import worker_calls
from providers.base import Calendar
from providers.events import Day
from providers.timestamps import FIRST_MIDNIGHT, LAST_MIDNIGHT, wall_instant
from scheduling.windows import zone_exists
from store.sql.queries.connection_rows import ConnectionRef
from workers.jobs import ShowCalendars
from workers.queues import Queue


def span(
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
    replies = worker_calls.gather(jobs, Queue.READS, deadline=worker_calls.deadline())
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

"""The time that an all-day event takes: from midnight to midnight in the zone of its calendar.

The providers write an all-day event as days. The zone of the request does not matter then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from app.availability.selection import is_main
from app.events import worker_calls
from providers.base import Calendar
from providers.events import Day
from providers.names import ProviderName
from scheduling.windows import zone_exists
from store.sql.queries.connection_refs import ConnectionRef
from workers.jobs import ShowCalendars
from workers.queues import Queue

# Where a day begins first, and where it ends last.
FIRST_ZONE, LAST_ZONE = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))


def span(
    first: Day, end: Day, calendars: Sequence[tuple[ConnectionRef, str]], fallback: ZoneInfo | None
) -> tuple[int, int]:
    """The time of an event in these calendars, each with its connection, in milliseconds.

    ``fallback`` is the zone of calendars whose zone is not known. Without it, that may be any zone of the
    earth.
    """
    unknown = [FIRST_ZONE, LAST_ZONE] if fallback is None else [fallback]
    zones = _zones(calendars, unknown) or unknown
    return min(_midnight(first, zone) for zone in zones), max(_midnight(end, zone) for zone in zones)


def _zones(calendars: Sequence[tuple[ConnectionRef, str]], unknown: Sequence[tzinfo]) -> list[tzinfo]:
    """The zones of these calendars, from the provider: their owner may have changed a stored one."""
    jobs = {ref.id: ShowCalendars(ref.id) for ref, _ in calendars}
    replies = worker_calls.gather(jobs, Queue.READS, deadline=worker_calls.deadline())
    zones: list[tzinfo] = []
    for ref, calendar in calendars:
        name = _zone_name(ref, calendar, replies[ref.id].calendars)
        zones += [ZoneInfo(name)] if name is not None else unknown
    return zones


def _zone_name(ref: ConnectionRef, calendar: str, listed: Sequence[Calendar]) -> str | None:
    for each in listed:
        if each.id == calendar or (each.primary and is_main(ref, calendar)):
            # In Microsoft's list, UTC also stands for a mailbox's zone that could not be read.
            is_unclear = each.provider == ProviderName.MICROSOFT and each.time_zone == "UTC"
            name = ref.time_zone if is_unclear else each.time_zone
            return name if name and zone_exists(name) else None
    return None


def _midnight(day: Day, zone: tzinfo) -> int:
    return int(datetime.fromisoformat(day.date).replace(tzinfo=zone).timestamp() * 1000)

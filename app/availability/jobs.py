"""Jobs for the workers that read calendars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from app.availability.selection import CalendarRequest
from store.cache.busy_buckets import CalendarKey
from workers.jobs import GrantRef, ReadBusy


def grants_of(calendar_requests: Iterable[CalendarRequest]) -> dict[str, GrantRef]:
    """The organization grants of delegated connections, by connection id."""
    return {
        each.id: GrantRef(each.grant, each.provider)
        for calendar_request in calendar_requests
        for each in calendar_request.connections
        if each.grant is not None
    }


def read_jobs(
    keys: Sequence[CalendarKey],
    ranges: Mapping[int, tuple[int, int]],
    grants: Mapping[str, GrantRef],
) -> dict[str, ReadBusy]:
    """One job for each connection, by connection id; ``ranges`` has what to read, by the index of the key.

    A connection's job reads all its calendars over one range that covers theirs. ``grants`` has those of
    delegated connections, whose main calendars workers read together.
    """
    by_connection: dict[str, list[tuple[str, tuple[int, int]]]] = {}
    for index, span in ranges.items():
        key = keys[index]
        by_connection.setdefault(key.connection, []).append((key.calendar, span))
    return {
        connection: ReadBusy(
            connection,
            tuple(calendar for calendar, _ in calendars),
            min(start for _, (start, _) in calendars),
            max(end for _, (_, end) in calendars),
            grants.get(connection),
        )
        for connection, calendars in by_connection.items()
    }

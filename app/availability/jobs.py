"""Jobs for the workers that read calendars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from store.cache.busy_cache import CalendarKey
from workers.fanout.jobs import ReadBusy


def read_jobs(keys: Sequence[CalendarKey], ranges: Mapping[int, tuple[int, int]]) -> dict[str, ReadBusy]:
    """One job for each connection, by connection id; ``ranges`` has what to read, by the index of the key.

    A connection's job reads all its calendars over one range that covers theirs.
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
        )
        for connection, calendars in by_connection.items()
    }

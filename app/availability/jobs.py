"""Jobs for the workers that read calendars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from app.availability.selection import CalendarRequest, is_main
from store.cache.busy_cache import CalendarKey
from workers.jobs import GrantRef, ReadBusy


def grants_of(calendar_requests: Iterable[CalendarRequest]) -> dict[str, GrantRef]:
    """The organization grants of delegated connections whose reads can be bundled, by connection id.

    A calendar that the request names is read by the member's own account only: the account that reads for
    the whole grant may see calendars that the member may not.
    """
    named: set[str] = set()
    found: dict[str, GrantRef] = {}
    for calendar_request in calendar_requests:
        for each in calendar_request.connections:
            if each.grant is not None:
                found[each.id] = GrantRef(each.grant, each.provider)
                if not all(is_main(each, calendar) for calendar in calendar_request.selector.ids):
                    named.add(each.id)
    return {connection: grant for connection, grant in found.items() if connection not in named}


def read_jobs(
    keys: Sequence[CalendarKey],
    ranges: Mapping[int, tuple[int, int]],
    grants: Mapping[str, GrantRef],
) -> dict[str, ReadBusy]:
    """One job for each connection, by connection id; ``ranges`` has what to read, by the index of the key.

    A connection's job reads all its calendars over one range that covers theirs. ``grants`` has those of
    delegated connections, which workers read together.
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

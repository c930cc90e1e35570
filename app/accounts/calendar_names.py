"""Names of main calendars in responses, if the real id became known during the request.

A worker learns the id with the first provider call for a connection and stores it with the connection. The
first response looks it up; later requests load it with the connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from app.availability.selection import Target, shown_as
from app.services import services
from providers.base import PRIMARY
from store.sql.queries import connections
from store.sql.queries.connection_rows import ConnectionRef


def renamed(targets: Sequence[Target]) -> Sequence[Target]:
    """The targets with the names that are known by now."""
    unnamed = [each.connection for each in targets if _unnamed(each)]
    if not unnamed:
        return targets
    found = _main_calendars(unnamed)
    return [
        each._replace(shown=found.get(each.connection.id, each.shown)) if _unnamed(each) else each
        for each in targets
    ]


def calendar_name(connection: ConnectionRef, calendar_id: str) -> str:
    """The name, in responses, of a calendar that has been read or written."""
    if calendar_id == PRIMARY and connection.main_calendar_id is None:
        found = _main_calendars([connection]).get(connection.id)
        connection = replace(connection, main_calendar_id=found)
    return shown_as(connection, calendar_id)


def _unnamed(target: Target) -> bool:
    connection = target.connection
    return connection.main_calendar_id is None and target.shown in (PRIMARY, shown_as(connection, PRIMARY))


def _main_calendars(refs: Iterable[ConnectionRef]) -> Mapping[str, str]:
    with services().stores.database.reading() as session:
        return connections.main_calendars(session, {ref.id for ref in refs})

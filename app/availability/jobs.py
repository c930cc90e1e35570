"""Jobs for the workers that read calendars: for an answer, or to refresh stale data that an answer uses."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from app.availability.parameters import now_ms
from app.availability.selection import CalendarRequest, Lists, is_main
from app.services import services
from store.cache.busy_cache import CachedBusy, CalendarKey
from workers.fanout.admission import Overloaded
from workers.fanout.client import CoalescingPolicy
from workers.jobs import GrantRef, Job, ListCalendars, ReadBusy
from workers.queues import Queue


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
                selector = calendar_request.selector
                counting = [calendar for connection, calendar in selector.counting if connection == each.id]
                if not all(is_main(each, calendar) for calendar in (*selector.ids, *counting)):
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


log = logging.getLogger(__name__)


def stale_calendars(keys: Sequence[CalendarKey], cached: CachedBusy) -> list[int]:
    """The indexes of the keys whose cached periods are stale.

    Watched calendars are never stale: the provider reports every change, and the cache is invalidated.
    """
    busy = services().stores.busy
    old = busy.stale(cached, now_ms())
    watched = busy.watched([keys[index] for index in old])
    return [index for index, channel in zip(old, watched, strict=True) if channel is None]


def list_refresh_jobs(calendar_requests: Sequence[CalendarRequest], lists: Lists) -> Iterator[ListCalendars]:
    """Jobs for the stale calendar lists of accounts from which every calendar is requested."""
    calendar_lists = services().stores.calendar_lists
    for calendar_request in calendar_requests:
        for connection in calendar_request.connections if calendar_request.selector.everything else ():
            cached = lists.get(connection.id)
            if cached is not None and not calendar_lists.fresh(cached, now_ms()):
                yield ListCalendars(connection.id)


def refresh_later(jobs: Sequence[Job], *, deadline: float, coalescing: CoalescingPolicy) -> None:
    """Send refresh jobs to the workers. A failure is only logged: the stale data still makes an answer."""
    try:
        services().fanout.refresh(jobs, queue=Queue.READS, deadline=deadline, coalescing=coalescing)
    except (RedisError, OperationalError, Overloaded) as error:
        log.warning("stale calendars could not be refreshed: %s", type(error).__name__)

"""Background refresh of stale data that an answer uses: the answer does not wait for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from app.availability.freshness import now_ms
from app.availability.selection import CalendarRequest, Lists
from app.services import services
from store.cache.busy_cache import CachedBusy, CalendarKey
from workers.fanout.admission import Overloaded
from workers.fanout.client import CoalescingPolicy
from workers.jobs import Job, ListCalendars
from workers.queues import Queue

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


def enqueue(jobs: Sequence[Job], *, deadline: float, coalescing: CoalescingPolicy) -> None:
    """Send refresh jobs to the workers. A failure is only logged: the stale data still makes an answer."""
    try:
        services().fanout.refresh(jobs, queue=Queue.READS, deadline=deadline, coalescing=coalescing)
    except (RedisError, OperationalError, Overloaded) as error:
        log.warning("stale calendars could not be refreshed: %s", type(error).__name__)

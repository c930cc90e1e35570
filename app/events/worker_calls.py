"""Sends reads and writes of calendars and events to the workers, and awaits their replies."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from sqlalchemy.exc import SQLAlchemyError

from app.services import services
from providers.errors import Reason
from store.cache.busy_cache import CalendarKey
from store.cache.cache_tags import write_tags
from store.sql.queries import connection_rows
from workers.jobs import CreateEvent, DeleteEvent, Job, Reply, UpdateEvent
from workers.queues import Queue

log = logging.getLogger(__name__)


def deadline() -> float:
    """The deadline for the replies to a request that begins now, in seconds of ``time.monotonic()``."""
    return time.monotonic() + services().settings.fanout_deadline_seconds


def gather(
    jobs: Mapping[str, Job], queue: Queue, *, deadline: float, bypass_admission: bool = False
) -> dict[str, Reply]:
    """The reply to each job, under the keys of ``jobs``."""
    replies = services().fanout.gather(
        list(jobs.values()), queue=queue, deadline=deadline, bypass_admission=bypass_admission
    )
    return dict(zip(jobs, replies, strict=True))


def write_events(
    jobs: Mapping[str, CreateEvent | UpdateEvent | DeleteEvent],
    *,
    deadline: float,
    bypass_admission: bool = False,
) -> dict[str, Reply]:
    """The reply to each event write, by connection. ``bypass_admission`` as for ``Fanout.gather``.

    Every failed write invalidates what is cached of its own connection. If the write may have succeeded, its
    calendar is also invalidated for the other connections that read it, because the worker may have died
    before it did so.
    """
    replies = gather(jobs, Queue.WRITES, deadline=deadline, bypass_admission=bypass_admission)
    failed = {each: reply.failed for each, reply in replies.items() if reply.failed is not None}
    if failed:
        services().stores.busy.invalidate_connections(failed)
    may_have_succeeded = [
        each for each, why in failed.items() if why.reason is Reason.PROVIDER_ERROR or why.repeated
    ]
    if may_have_succeeded:
        _invalidate(jobs, may_have_succeeded)
    return replies


def _invalidate(
    jobs: Mapping[str, CreateEvent | UpdateEvent | DeleteEvent], connection_ids: Sequence[str]
) -> None:
    stores = services().stores
    try:
        with stores.database.reading() as session:
            rows = connection_rows.sealed(session, connection_ids)
    except SQLAlchemyError as error:
        # Workers invalidate their own writes. Only if one died do other connections stay stale for the TTL.
        log.warning("failed write invalidated for its own connection only: %s", type(error).__name__)
        return
    for each, row in rows.items():
        calendar = jobs[each].calendar
        owner = stores.calendar_lists.owner(row, CalendarKey(each, calendar))
        stores.busy.invalidate_tags(write_tags(row, calendar, owner), [each])

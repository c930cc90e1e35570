"""The Celery tasks; ``workers.webhooks.tasks`` has those of webhooks. Arguments are ids and timestamps."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from celery import shared_task

from store.cache.busy_cache import CalendarKey
from store.coordination.single_flight import ReadTerms
from workers.execution import reads, writes
from workers.fanout import steps
from workers.fanout.work import Request
from workers.queues import TERMS
from workers.upkeep import channel_maintenance, channel_opening, renewals

RENEW_AHEAD = timedelta(minutes=10)
# Tokens that expired earlier are refreshed by the next request that needs them.
RENEW_BEHIND = timedelta(hours=1)


@shared_task(name="reads.drain", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def drain_reads(self: Any, *, fanout: str, deadline: float, most: int) -> None:
    """Read for one request until its list is empty or ``deadline``, in seconds since 1970, has passed.

    ``most`` is the number of jobs that are this task's share.
    """
    used = partial(channel_opening.note_use, self.app.runtime, self.app.send_task)
    steps.run(self.app.runtime, _request(self, fanout, deadline), reads.perform, most, used)


@shared_task(name="writes.drain", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def drain_writes(self: Any, *, fanout: str, deadline: float, most: int) -> None:
    """Write for one request until its list is empty or ``deadline`` has passed; arguments as for reads."""
    steps.run(self.app.runtime, _request(self, fanout, deadline), writes.perform, most)


@shared_task(name="upkeep.renew_tokens", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def renew_tokens(self: Any) -> None:
    """Refresh access tokens that expire soon, so that requests need not wait and dead grants are noticed."""
    now = datetime.now(UTC)
    renewals.renew_tokens(
        self.app.runtime,
        after=now - RENEW_BEHIND,
        before=now + RENEW_AHEAD,
        deadline=time.monotonic() + renewals.ROUND_SECONDS,
    )


@shared_task(name="upkeep.purge_idempotency_keys", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def purge_idempotency_keys(self: Any) -> None:
    """Delete expired idempotency keys, because the stored answers contain personal data."""
    renewals.purge_idempotency_keys(self.app.runtime)


@shared_task(name="upkeep.purge_holds", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def purge_holds(self: Any) -> None:
    """Delete expired holds, and record that they expired. They block nothing before that either."""
    renewals.purge_holds(self.app.runtime)


@shared_task(name="upkeep.open_channels", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def open_channels(self: Any, *, calendars: list[tuple[str, str]]) -> None:
    """Open notification channels for calendars that were read, given as (connection, calendar)."""
    keys = [CalendarKey(*each) for each in calendars]
    channel_opening.open_channels(self.app.runtime, keys, deadline=time.monotonic() + renewals.ROUND_SECONDS)


@shared_task(name="upkeep.keep_channels", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def keep_channels(self: Any) -> None:
    """Renew channels that expire soon, and check that the others still report changes."""
    channel_maintenance.keep(self.app.runtime, deadline=time.monotonic() + renewals.ROUND_SECONDS)


def _request(task: Any, fanout: str, deadline: float) -> Request:
    terms = task.request.get(TERMS)
    # Hosts share the wall clock only; within a process, deadlines are on the monotonic clock.
    ends = time.monotonic() + deadline - time.time()
    return Request(fanout, ends, None if terms is None else ReadTerms(*terms))

"""The Celery tasks; ``workers.webhooks.tasks`` has those of webhooks. Arguments are ids and timestamps."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from celery import shared_task
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from store.cache.busy_cache import CalendarKey
from store.coordination.single_flight import ReadTerms
from workers.execution import reads, writes
from workers.fanout import steps
from workers.fanout.work import FanoutRequest
from workers.queues import TERMS
from workers.runtime import Runtime
from workers.upkeep import (
    account_checks,
    channel_maintenance,
    channel_opening,
    event_feeds,
    identities,
    renewals,
)

log = logging.getLogger(__name__)

# Calendars in one task.
CALENDARS_PER_TASK = 500


@shared_task(name="reads.drain", bind=True)  # type: ignore[untyped-decorator]
def drain_reads(self: Any, *, fanout: str, deadline: float, most: int) -> None:
    """Read for one request until its list is empty or ``deadline``, in seconds since 1970, has passed.

    ``most`` is the number of elements of the list that are this task's share.
    """
    used = partial(note_use, self.app.runtime, self.app.send_task)
    steps.run(self.app.runtime, _request(self, fanout, deadline), reads.perform, most, used)


@shared_task(name="writes.drain", bind=True)  # type: ignore[untyped-decorator]
def drain_writes(self: Any, *, fanout: str, deadline: float, most: int) -> None:
    """Write for one request until its list is empty or ``deadline`` has passed; arguments as for reads."""
    steps.run(self.app.runtime, _request(self, fanout, deadline), writes.perform, most)


@shared_task(name="upkeep.renew_tokens", bind=True)  # type: ignore[untyped-decorator]
def renew_tokens(self: Any) -> None:
    """Refresh access tokens that expire soon, so that requests need not wait and dead grants are noticed."""
    renewals.renew_tokens(self.app.runtime, deadline=time.monotonic() + renewals.ROUND_SECONDS)


@shared_task(name="upkeep.check_identities", bind=True)  # type: ignore[untyped-decorator]
def check_identities(self: Any) -> None:
    """Ask the identity provider whether the people who sign in by it are still there, and their roles."""
    identities.check(self.app.runtime, deadline=time.monotonic() + renewals.ROUND_SECONDS)


@shared_task(name="upkeep.check_accounts", bind=True)  # type: ignore[untyped-decorator]
def check_accounts(self: Any) -> None:
    """Read accounts that no request has read for a while, to know which accounts cannot be read."""
    account_checks.check(self.app.runtime, deadline=time.monotonic() + renewals.ROUND_SECONDS)


@shared_task(name="upkeep.purge_idempotency_keys", bind=True)  # type: ignore[untyped-decorator]
def purge_idempotency_keys(self: Any) -> None:
    """Delete expired idempotency keys, because the stored answers contain personal data."""
    renewals.purge_idempotency_keys(self.app.runtime)


@shared_task(name="upkeep.purge_audit_records", bind=True)  # type: ignore[untyped-decorator]
def purge_audit_records(self: Any) -> None:
    """Delete the records of the audit log that are older than ``ALMANAC_AUDIT_DAYS``."""
    renewals.purge_audit_records(self.app.runtime)


@shared_task(name="upkeep.purge_holds", bind=True)  # type: ignore[untyped-decorator]
def purge_holds(self: Any) -> None:
    """Delete expired holds, and record that they expired. They block nothing before that either."""
    renewals.purge_holds(self.app.runtime)


@shared_task(name="upkeep.open_channels", bind=True)  # type: ignore[untyped-decorator]
def open_channels(self: Any, *, calendars: list[tuple[str, str]]) -> None:
    """Open notification channels for calendars that were read, given as (connection, calendar)."""
    keys = [CalendarKey(*each) for each in calendars]
    channel_opening.open_channels(self.app.runtime, keys, deadline=time.monotonic() + renewals.ROUND_SECONDS)


def note_use(
    runtime: Runtime, send_task: Callable[..., object], read: Sequence[tuple[str, CalendarKey]]
) -> None:
    """Record which calendars were read, and enqueue a task that opens channels for those without one."""
    notifying = {
        name
        for name in {provider for provider, _ in read}
        if name in runtime.with_push_address and runtime.provider(name).channels is not None
    }
    keys = [key for provider, key in read if provider in notifying]
    if not keys:
        return
    stores = runtime.stores
    try:
        stores.channel_usage.use(keys)
        watched = stores.busy.watched(keys)
        unwatched = [key for key, channel in zip(keys, watched, strict=True) if channel is None]
        wanted = stores.channel_usage.claim(unwatched, channel_opening.FAILED_SECONDS) if unwatched else []
        for first in range(0, len(wanted), CALENDARS_PER_TASK):
            calendars = wanted[first : first + CALENDARS_PER_TASK]
            # Shown in Flower: the id of a calendar may be a person's address.
            shown = f"{{'calendars': {len(calendars)}}}"
            send_task("upkeep.open_channels", kwargs={"calendars": calendars}, kwargsrepr=shown)
    except (RedisError, BrokerError) as error:
        # The reads have been answered. The next read of these calendars tries again.
        log.warning("channels could not be requested: %s", type(error).__name__)


@shared_task(name="upkeep.follow_events", bind=True)  # type: ignore[untyped-decorator]
def follow_events(self: Any, *, connection: str, calendar: str) -> None:
    """Record which events of a calendar have changed, for webhooks about single events."""
    event_feeds.follow(self.app.runtime, CalendarKey(connection, calendar))


@shared_task(name="upkeep.keep_channels", bind=True)  # type: ignore[untyped-decorator]
def keep_channels(self: Any) -> None:
    """Renew channels that expire soon, and check that the others still report changes."""
    channel_maintenance.keep(self.app.runtime, deadline=time.monotonic() + renewals.ROUND_SECONDS)


def _request(task: Any, fanout: str, deadline: float) -> FanoutRequest:
    terms = task.request.get(TERMS)
    # Hosts share the wall clock only; within a process, deadlines are on the monotonic clock.
    ends = time.monotonic() + deadline - time.time()
    return FanoutRequest(fanout, ends, None if terms is None else ReadTerms(*terms))

"""The tasks: ids in, outcomes out, a few lines between."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from celery import shared_task

from store.cache.busy_cache import CalendarKey
from workers.execution import reads, writes
from workers.fanout.client import work_list
from workers.fanout.drain import Drain, Perform
from workers.fanout.handover import HandOver
from workers.queues import Queue
from workers.runtime import Runtime
from workers.upkeep import channel_maintenance, channel_opening, renewals

RENEW_AHEAD = timedelta(minutes=10)
# What has failed for longer is left to whoever asks for it: a request refreshes what it needs.
RENEW_BEHIND = timedelta(hours=1)


@shared_task(name="reads.drain", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def drain_reads(self: Any, *, fanout: str, deadline: float, most: int, handed: str | None = None) -> None:
    """Read for one request until its list is empty or ``deadline``, in seconds since 1970, has passed.

    ``most`` are taken at once: as many are left to each other process. ``handed`` is the name of a list of
    jobs that another worker has handed over.
    """
    drained = _drain(self.app, Queue.READS, reads.perform, fanout, deadline, most, handed)
    channel_opening.note_use(self.app, drained.read)


@shared_task(name="writes.drain", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def drain_writes(self: Any, *, fanout: str, deadline: float, most: int, handed: str | None = None) -> None:
    """Write for one request until its list is empty or ``deadline`` has passed; the rest as for reads."""
    _drain(self.app, Queue.WRITES, writes.perform, fanout, deadline, most, handed)


@shared_task(name="upkeep.renew_tokens", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def renew_tokens(self: Any) -> None:
    """Refresh access tokens that end soon, so that no request waits for it and dead grants are noticed."""
    now = datetime.now(UTC)
    renewals.renew_tokens(
        self.app.runtime,
        after=now - RENEW_BEHIND,
        before=now + RENEW_AHEAD,
        deadline=time.monotonic() + renewals.ROUND_SECONDS,
    )


@shared_task(name="upkeep.purge_idempotency_keys", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def purge_idempotency_keys(self: Any) -> None:
    """Delete what nobody may repeat any more: the answers hold people's data."""
    renewals.purge_idempotency_keys(self.app.runtime)


@shared_task(name="upkeep.open_channels", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def open_channels(self: Any, *, calendars: list[tuple[str, str]]) -> None:
    """Have providers tell of changes in calendars that were read; each is a connection and a calendar."""
    keys = [CalendarKey(*each) for each in calendars]
    channel_opening.open_channels(self.app.runtime, keys, deadline=time.monotonic() + renewals.ROUND_SECONDS)


@shared_task(name="upkeep.keep_channels", bind=True, ignore_result=True)  # type: ignore[untyped-decorator]
def keep_channels(self: Any) -> None:
    """Renew channels that end soon, and see to it that the others still tell of changes."""
    channel_maintenance.keep(self.app.runtime, deadline=time.monotonic() + renewals.ROUND_SECONDS)


def _drain(
    app: Any, queue: Queue, perform: Perform, fanout: str, deadline: float, most: int, handed: str | None
) -> Drain:
    runtime: Runtime = app.runtime
    # The clock of the day crosses hosts; from here on only the monotonic one counts.
    ends = time.monotonic() + deadline - time.time()
    if handed is not None:
        drain = Drain(runtime, fanout, ends, perform, most=most, work=work_list(handed))
    else:
        others = HandOver(app, runtime.stores.redis, runtime.egress, queue, fanout, deadline)
        drain = Drain(runtime, fanout, ends, perform, most=most, others=others)
    drain.run()
    return drain

"""Audits of watched calendars: compare what is cached with a new read before it is too old to be used.

A notification can be lost, so cached periods are used for ``ALMANAC_MAX_AGE`` at most. Shortly before that,
an audit reads the calendar again if requests have used them. If nothing has changed, it stores what it has
read. If something has, the provider sent no notification: the audit invalidates the cache and closes the
channel. The cached periods of calendars that no request asks for expire.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from providers.base import Failed, Outcome
from providers.errors import ProviderError, Reason
from scheduling.intervals import Intervals, clip
from store.cache.busy_cache import BusyRead, now_ms
from store.coordination.provider_limits import Access, rejection_key
from store.sql.models import Channel
from store.sql.queries import channels
from store.sql.queries.connection_rows import Credentials
from workers.execution import reads
from workers.execution.call_policy import calls
from workers.jobs import ReadBusy, Reply
from workers.runtime import Runtime
from workers.upkeep.batches import SECONDS_FOR_EACH, Batch
from workers.upkeep.channel_opening import close_channel, credentials_of
from workers.upkeep.rate_limit import acquire
from workers.upkeep.watches import remove_and_allow_reopening

log = logging.getLogger(__name__)

PAGE = 1000

# Milliseconds from now that an audit compares: a quarter of a year.
AUDITED = 92 * 86_400_000

# The share of the time for which cached periods are used after which they are audited. There are
# ``ROUNDS`` rounds in that time, so two of them can fail or be late.
DUE = 0.75
ROUNDS = 10


@dataclass(slots=True)
class _Audit:
    """A watched calendar whose cached periods are due, and those periods by bucket."""

    row: Channel
    # The earliest time at which any of them was read.
    read_at: int
    cached: dict[tuple[int, int], Intervals] = field(default_factory=dict)


def audit_all(runtime: Runtime, deadline: float) -> None:
    """Audit the watched calendars that requests ask for and whose cached periods are due."""
    for rows in pages(runtime):
        asked_for = runtime.stores.asked_calendars.asked_for([channels.calendar_of(row) for row in rows])
        wanted = [row for row, asked in zip(rows, asked_for, strict=True) if asked]
        Batch(runtime, _due(runtime, wanted), lambda audit: _audit(runtime, audit), deadline).run()


def pages(runtime: Runtime) -> Iterator[Sequence[Channel]]:
    """The channels on which the cache relies, one for each calendar, in pages."""
    after = ""
    while True:
        with runtime.stores.database.reading() as session:
            rows = channels.watching_channels(session, after=after, limit=PAGE)
        if rows:
            yield rows
            after = rows[-1].id
        if len(rows) < PAGE:
            return


def _due(runtime: Runtime, rows: Sequence[Channel]) -> list[_Audit]:
    settings = runtime.settings
    until = now_ms() - int(settings.watched_seconds * DUE * 1000)
    audits = _load(runtime, [_Audit(row, now_ms()) for row in rows])
    return [audit for audit in audits if audit.cached and audit.read_at <= until]


def _load(runtime: Runtime, audits: Sequence[_Audit]) -> Sequence[_Audit]:
    """Fill in what is cached of each calendar."""
    busy, length = runtime.stores.busy, runtime.settings.busy_bucket
    now = now_ms()
    keys = [channels.calendar_of(audit.row) for audit in audits]
    for start in range(*busy.hull(now, now + AUDITED), length) if keys else ():
        known = busy.load(keys, start, start + length)
        for index, audit in enumerate(audits):
            if index not in known.missing:
                audit.cached[start, start + length] = known.busy.group(index)
                audit.read_at = min(audit.read_at, int(known.read_at[index]))
    return audits


def _audit(runtime: Runtime, due: _Audit) -> bool:
    """Audit one calendar; returns whether its cached periods were confirmed.

    After a temporary failure of the read, the channel stays in use.
    """
    row, stores = due.row, runtime.stores
    credentials = credentials_of(runtime, row.connection_id)
    if credentials is None:
        return False
    key = channels.calendar_of(row)
    stores.asked_calendars.forget(key)
    start, end = min(due.cached)[0], max(due.cached)[1]
    job = ReadBusy(credentials.id, (key.calendar,), start, end)
    # A notification or a write from here on replaces the generation. It has then invalidated the cache, and a
    # difference from what was cached before says nothing.
    generation = reads.begin_reads(stores, [(job, credentials)])[credentials.id]
    (audit,) = _load(runtime, [_Audit(row, due.read_at)])
    reply = _read(runtime, credentials, job)
    outcome: Outcome = reply.failed or reply.outcomes[key.calendar]
    if isinstance(outcome, Failed):
        _handle_failed_read(runtime, row, outcome.reason)
        return False
    if all(_same(cached, outcome.busy, *edges) for edges, cached in audit.cached.items()):
        with stores.redis.pipeline(transaction=False) as pipe:
            stores.busy.store(pipe, [BusyRead(key, outcome.busy, start, end, reply.read_at, generation)])
            pipe.execute()
        return True
    if stores.busy.begin_reads([credentials.id], {})[credentials.id] != generation:
        return False
    log.warning(
        "provider sent no notification for a change: cache invalidated, channel closed",
        extra={"connection": row.connection_id},
    )
    stores.busy.invalidate_changed(credentials, key, stores.calendar_lists.owner(credentials, key))
    _end(runtime, row)
    return False


def _read(runtime: Runtime, credentials: Credentials, job: ReadBusy) -> Reply:
    """Read the calendar from the provider."""
    deadline = time.monotonic() + SECONDS_FOR_EACH
    cost = calls(credentials.provider, job)
    try:
        with acquire(runtime, credentials, cost, Access.READS, deadline=deadline):
            reply = reads.perform(runtime, job, credentials, deadline)
    except ProviderError as error:
        return Reply(failed=Failed.from_error(error))
    if reply.failed is None:
        runtime.stores.redis.delete(rejection_key(credentials.id))
    return reply


def _handle_failed_read(runtime: Runtime, row: Channel, reason: Reason) -> None:
    """Close the channel of a calendar to which access is lost.

    A temporary failure changes nothing: the next rounds retry, and then the cached periods expire.
    """
    if reason in (Reason.RATE_LIMITED, Reason.PROVIDER_ERROR):
        return
    log.warning("watched calendar not readable: %s", reason, extra={"connection": row.connection_id})
    _end(runtime, row)


def _end(runtime: Runtime, row: Channel) -> None:
    """Stop relying on a channel, and close it at its provider."""
    remove_and_allow_reopening(runtime.stores, channels.calendar_of(row), row.id)
    close_channel(runtime, row)


def _same(cached: Intervals, read: Intervals, start: int, end: int) -> bool:
    """Whether a cached bucket equals what was read."""
    now = clip(read, start, end)
    return np.array_equal(cached.starts, now.starts) and np.array_equal(cached.ends, now.ends)

"""Scheduled maintenance of notification channels: renews, removes and audits them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from providers.base import Failed, Outcome
from providers.errors import ProviderError, Reason
from providers.names import ProviderName
from scheduling.intervals import Intervals, clip
from store.cache.busy_invalidation import after_notification
from store.coordination.circuit_breaker import Family
from store.coordination.locks import LockTimeout, try_lock
from store.sql.models import Channel
from store.sql.queries import channels
from store.sql.queries.connection_tokens import Credentials
from workers.execution.account_context import mark_dead_on_revoked_grant, open_account
from workers.execution.call_policy import calls
from workers.jobs import ReadBusy
from workers.runtime import Runtime
from workers.upkeep.batches import SECONDS_FOR_EACH, Batch
from workers.upkeep.channel_opening import (
    REFUSED_SECONDS,
    close,
    credentials_of,
    open_one,
    remove_and_allow_reopening,
    remove_channel,
    watch,
)
from workers.upkeep.rate_limit import acquire

log = logging.getLogger(__name__)

# Channels for one run; the next run takes the rest.
MAX_AT_ONCE = 2000
PAGE = 1000

# Seconds until the retry of a renewal that failed or cannot be finished yet.
AGAIN_SECONDS = 60.0
# The same for the channel of an unused calendar: it expires unless a request reads the calendar by then.
UNUSED_SECONDS = 3600.0

# Milliseconds from now that an audit compares: the range of most requests.
AUDITED = 28 * 86_400_000


def keep(runtime: Runtime, *, deadline: float) -> None:
    """Run all maintenance until ``deadline``. Does nothing while another run holds the lock."""
    try:
        with try_lock(runtime.stores.redis, "channels", deadline=deadline):
            _renew_all(runtime, deadline)
            _remove_ended(runtime, deadline)
            _restore_watches(runtime)
            _audit_all(runtime, deadline)
    except LockTimeout:
        log.info("the previous run is still maintaining channels")


def _renew_all(runtime: Runtime, deadline: float) -> None:
    with runtime.stores.database.reading() as session:
        rows = channels.due(session, limit=MAX_AT_ONCE)
    used = runtime.stores.channel_usage.used([channels.calendar_of(row) for row in rows])
    for row, in_use in zip(rows, used, strict=True):
        if not in_use:
            _later(runtime, row, UNUSED_SECONDS)
    wanted = [row for row, in_use in zip(rows, used, strict=True) if in_use]
    Batch(runtime, wanted, lambda row: _renew(runtime, row), deadline).run()


def _renew(runtime: Runtime, row: Channel) -> bool:
    """Extend a channel, or open a successor; the old one is closed when that is confirmed."""
    credentials = credentials_of(runtime, row.connection_id)
    if credentials is None or runtime.settings.push_address(credentials.provider) is None:
        _later(runtime, row, UNUSED_SECONDS)
        return False
    with runtime.stores.database.reading() as session:
        successor = channels.successor(session, row)
    if successor is not None:
        return _succeeded(runtime, row, successor)
    _, account = open_account(runtime, credentials, Family.CHANNELS)
    provider = runtime.providers[ProviderName(credentials.provider)]
    try:
        deadline = time.monotonic() + SECONDS_FOR_EACH
        with (
            mark_dead_on_revoked_grant(runtime, row.connection_id),
            acquire(runtime, credentials, 1, Family.CHANNELS, deadline=deadline),
        ):
            expires_at = provider.channels.extend(account, row.provider_id or "", deadline=deadline)
    except ProviderError as error:
        if error.retryable:
            _later(runtime, row, AGAIN_SECONDS)
            return False
        log.warning(
            "a channel could not be renewed: %s", error.reason, extra={"connection": row.connection_id}
        )
        remove_and_allow_reopening(runtime.stores, channels.calendar_of(row), row.id)
        return open_one(runtime, channels.calendar_of(row))
    if expires_at is None:
        _later(runtime, row, AGAIN_SECONDS)
        return open_one(runtime, channels.calendar_of(row))
    with runtime.stores.database.writing() as session:
        extended = channels.extended(session, row.id, expires_at)
    if extended is not None:
        watch(runtime.stores, extended)
    return extended is not None


def _succeeded(runtime: Runtime, row: Channel, successor: Channel) -> bool:
    """Close a channel that has a successor, if the successor is open and confirmed."""
    if channels.watches_for(successor) <= 0:
        _later(runtime, row, AGAIN_SECONDS)
        return False
    # The cache now relies on the successor, and stops when the successor is lost.
    watch(runtime.stores, successor)
    _close(runtime, row)
    with runtime.stores.database.writing() as session:
        channels.remove(session, [row.id])
    return True


def _remove_ended(runtime: Runtime, deadline: float) -> None:
    """Remove channels that have expired, and those on which no provider notification has arrived."""
    with runtime.stores.database.reading() as session:
        rows = channels.expired_or_unconfirmed(session, limit=MAX_AT_ONCE)
    Batch(runtime, rows, lambda row: _remove(runtime, row), deadline).run()


def _remove(runtime: Runtime, row: Channel) -> bool:
    key = channels.calendar_of(row)
    if row.confirmed_at is None and row.expires_at is not None:
        log.warning(
            "push channel not confirmed: its provider does not reach ALMANAC_PUBLIC_URL",
            extra={"connection": row.connection_id},
        )
        _close(runtime, row)
        runtime.stores.channel_usage.block_claims(key, REFUSED_SECONDS)
    # This also handles a notification that has arrived meanwhile.
    remove_channel(runtime.stores, key, row.id)
    return True


def _restore_watches(runtime: Runtime) -> None:
    """Store the watches again that Redis has lost."""
    stores = runtime.stores
    for rows in _pages(runtime):
        watches = stores.busy.watched([channels.calendar_of(row) for row in rows])
        for row, channel in zip(rows, watches, strict=True):
            if channel is None:
                watch(stores, row)


@dataclass(slots=True)
class _Audit:
    """A channel without notifications, and the cached busy periods of its calendar, by bucket."""

    row: Channel
    kept: dict[tuple[int, int], Intervals] = field(default_factory=dict)


def _audit_all(runtime: Runtime, deadline: float) -> None:
    """Compare the cached busy periods of calendars without notifications with the provider's."""
    for rows in _pages(runtime):
        confirmed = runtime.stores.channel_usage.confirmed([row.id for row in rows])
        silent = [_Audit(row) for row, spoke in zip(rows, confirmed, strict=True) if not spoke]
        _load(runtime, silent)
        audits = [audit for audit in silent if audit.kept]
        Batch(runtime, audits, lambda audit: _audit(runtime, audit), deadline).run()


def _load(runtime: Runtime, audits: Sequence[_Audit]) -> None:
    busy, length = runtime.stores.busy, runtime.settings.busy_bucket
    now = time.time_ns() // 1_000_000
    keys = [channels.calendar_of(audit.row) for audit in audits]
    if not keys:
        return
    for start in range(*busy.hull(now, now + AUDITED), length):
        known = busy.load(keys, start, start + length)
        for index, audit in enumerate(audits):
            if index not in known.missing:
                audit.kept[start, start + length] = known.busy.group(index)


def _audit(runtime: Runtime, audit: _Audit) -> bool:
    """Audit one channel; returns whether the audit confirmed it.

    After a temporary failure of the read, the channel stays in use.
    """
    row, stores = audit.row, runtime.stores
    credentials = credentials_of(runtime, row.connection_id)
    if credentials is None:
        return False
    outcome = _read(runtime, credentials, audit)
    if isinstance(outcome, Failed):
        _handle_failed_read(runtime, row, outcome.reason)
        return False
    (confirmed,) = stores.channel_usage.confirmed([row.id])
    same = all(_same(kept, outcome.busy, *edges) for edges, kept in audit.kept.items())
    if confirmed or same:
        stores.channel_usage.confirm(row.id, runtime.settings.push_audit_seconds)
        return True
    log.warning(
        "provider sent no notification for a change: cache invalidated, channel closed",
        extra={"connection": row.connection_id},
    )
    after_notification(stores, credentials, channels.calendar_of(row))
    _end(runtime, row)
    return False


def _read(runtime: Runtime, credentials: Credentials, audit: _Audit) -> Outcome:
    """Read the calendar from the provider, over the cached range."""
    provider, account = open_account(runtime, credentials, Family.BUSY)
    calendar = audit.row.calendar
    start, end = min(audit.kept)[0], max(audit.kept)[1]
    deadline = time.monotonic() + SECONDS_FOR_EACH
    cost = calls(provider.name, ReadBusy(credentials.id, (calendar,), start, end))
    try:
        with (
            mark_dead_on_revoked_grant(runtime, credentials.id),
            acquire(runtime, credentials, cost, Family.BUSY, deadline=deadline),
        ):
            return provider.busy(account, [calendar], start, end, deadline=deadline)[calendar]
    except ProviderError as error:
        return Failed.from_error(error)


def _handle_failed_read(runtime: Runtime, row: Channel, reason: Reason) -> None:
    """Invalidate the cache of an unreadable calendar; close its channel if access is lost.

    A rate limit changes nothing.
    """
    match reason:
        case Reason.RATE_LIMITED:
            # This says nothing about the calendar, and a retry now makes it worse: the next run retries.
            return
        case Reason.PROVIDER_ERROR:
            runtime.stores.busy.invalidate_calendar(channels.calendar_of(row))
        case _:
            log.warning(
                "watched calendar not readable: %s",
                reason,
                extra={"connection": row.connection_id},
            )
            _end(runtime, row)


def _end(runtime: Runtime, row: Channel) -> None:
    """Stop relying on a channel, and close it at its provider."""
    remove_and_allow_reopening(runtime.stores, channels.calendar_of(row), row.id)
    _close(runtime, row)


def _same(kept: Intervals, read: Intervals, start: int, end: int) -> bool:
    """Whether a cached bucket equals what was read."""
    now = clip(read, start, end)
    return np.array_equal(kept.starts, now.starts) and np.array_equal(kept.ends, now.ends)


def _pages(runtime: Runtime) -> Iterator[Sequence[Channel]]:
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


def _close(runtime: Runtime, row: Channel) -> None:
    credentials = credentials_of(runtime, row.connection_id)
    if credentials is not None and row.provider_id is not None:
        close(runtime, credentials, row.provider_id, row.resource or "")


def _later(runtime: Runtime, row: Channel, seconds: float) -> None:
    with runtime.stores.database.writing() as session:
        channels.postpone(session, row.id, seconds)

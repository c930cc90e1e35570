"""Scheduled maintenance of notification channels: renews, removes and audits them."""

from __future__ import annotations

import logging
import time

from providers.errors import ProviderError
from store.coordination.provider_limits import Access
from store.sql.models import Channel
from store.sql.queries import channels
from workers.execution.accounts import mark_dead_on_revoked_grant, open_account
from workers.runtime import Runtime
from workers.upkeep import event_feeds
from workers.upkeep.batches import SECONDS_FOR_EACH, Batch, one_at_a_time
from workers.upkeep.channel_audits import audit_all, pages
from workers.upkeep.channel_opening import (
    REFUSED_SECONDS,
    channels_of,
    close_channel,
    credentials_of,
    open_one,
)
from workers.upkeep.rate_limit import acquire
from workers.upkeep.watches import remove_and_allow_reopening, remove_channel, watch

log = logging.getLogger(__name__)

# Channels for one run; the next run takes the rest.
MAX_AT_ONCE = 2000

# Seconds until the retry of a renewal that failed or cannot be finished yet.
AGAIN_SECONDS = 60.0
# The same for the channel of an unused calendar: it expires unless a request reads the calendar by then.
UNUSED_SECONDS = 3600.0


@one_at_a_time("channels")
def keep(runtime: Runtime, *, deadline: float) -> int:
    """Run all maintenance until ``deadline``; returns how many channels were renewed."""
    renewed = _renew_all(runtime, deadline)
    _remove_ended(runtime, deadline)
    _restore_watches(runtime)
    audit_all(runtime, deadline)
    event_feeds.follow_due(runtime, deadline)
    return renewed


def _renew_all(runtime: Runtime, deadline: float) -> int:
    with runtime.stores.database.reading() as session:
        rows = channels.due(session, limit=MAX_AT_ONCE)
    used = runtime.stores.channel_usage.used([channels.calendar_of(row) for row in rows])
    for row, in_use in zip(rows, used, strict=True):
        if not in_use:
            _later(runtime, row, UNUSED_SECONDS)
    wanted = [row for row, in_use in zip(rows, used, strict=True) if in_use]
    return Batch(runtime, wanted, lambda row: _renew(runtime, row), deadline).run()


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
    _, account = open_account(runtime, credentials, Access.WRITES)
    try:
        deadline = time.monotonic() + SECONDS_FOR_EACH
        with (
            mark_dead_on_revoked_grant(runtime, row.connection_id),
            acquire(runtime, credentials, 1, Access.WRITES, deadline=deadline),
        ):
            expires_at = channels_of(runtime, credentials).extend(
                account, row.provider_id or "", deadline=deadline
            )
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
    close_channel(runtime, row)
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
        close_channel(runtime, row)
        runtime.stores.channel_usage.block_claims(key, REFUSED_SECONDS)
    # This also handles a notification that has arrived meanwhile.
    remove_channel(runtime.stores, key, row.id)
    return True


def _restore_watches(runtime: Runtime) -> None:
    """Store the watches again that Redis has lost."""
    stores = runtime.stores
    for rows in pages(runtime):
        watches = stores.busy.watched([channels.calendar_of(row) for row in rows])
        for row, channel in zip(rows, watches, strict=True):
            if channel is None:
                watch(stores, row)


def _later(runtime: Runtime, row: Channel, seconds: float) -> None:
    with runtime.stores.database.writing() as session:
        channels.postpone(session, row.id, seconds)

"""Channels by which providers tell of changes: opened for calendars in use, ended with their connections."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Sequence

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from providers.base import ChannelOpened, ChannelWanted, Token
from providers.errors import ProviderError
from providers.names import ProviderName
from store.cache.busy_cache import CalendarKey
from store.coordination.circuit_breaker import Family
from store.security.crypto import Undecipherable
from store.sql.models import Channel, now
from store.sql.queries import channels, connections
from store.sql.queries.connections import Credentials
from store.stores import Stores
from workers.celery_app import Almanac
from workers.execution.account_context import mark_dead_on_revoked_grant, open_account
from workers.runtime import Runtime
from workers.upkeep.batches import SECONDS_FOR_EACH, Batch
from workers.upkeep.rate_limit import acquire

log = logging.getLogger(__name__)

# Seconds after which a calendar is tried again whose channel could not be opened: because the provider was
# not there, or because it refused.
FAILED_SECONDS = 600.0
REFUSED_SECONDS = 3600.0

# Calendars in one task.
CALENDARS_PER_TASK = 500


def note_use(celery: Almanac, read: Sequence[tuple[str, CalendarKey]]) -> None:
    """Note which calendars were read, and have channels opened for those that nobody watches yet."""
    runtime = celery.runtime
    telling = {name for name in ProviderName if runtime.settings.push_address(name)}
    keys = [key for provider, key in read if provider in telling]
    if not keys:
        return
    stores = runtime.stores
    try:
        stores.channel_usage.use(keys)
        watched = stores.busy.watched(keys)
        alone = [key for key, channel in zip(keys, watched, strict=True) if channel is None]
        wanted = stores.channel_usage.claim(alone, FAILED_SECONDS) if alone else []
        for first in range(0, len(wanted), CALENDARS_PER_TASK):
            calendars = wanted[first : first + CALENDARS_PER_TASK]
            # Shown in Flower: the id of a calendar may be a person's address.
            shown = f"{{'calendars': {len(calendars)}}}"
            celery.send_task("upkeep.open_channels", kwargs={"calendars": calendars}, kwargsrepr=shown)
    except (RedisError, BrokerError) as error:
        # The reads are answered; who reads these calendars later finds them as they are.
        log.warning("no channels are opened just now: %s", type(error).__name__)


def open_channels(runtime: Runtime, keys: Sequence[CalendarKey], *, deadline: float) -> int:
    """Open a channel for each calendar; returns how many were.

    Those for which there is no room or no time are left to who reads them next.
    """
    opening = Batch(runtime, keys, lambda key: open_one(runtime, key), deadline, waits=False)
    opened = opening.run()
    for key in opening.left:
        runtime.stores.channel_usage.release(key)
    return opened


def open_one(runtime: Runtime, key: CalendarKey) -> bool:
    """Open a channel for a calendar. A failure is remembered, so that not every read tries again."""
    credentials = credentials_of(runtime, key.connection)
    if credentials is None or (address := runtime.settings.push_address(credentials.provider)) is None:
        return False
    stores = runtime.stores
    wanted = ChannelWanted(secrets.token_hex(16), Token(secrets.token_urlsafe(32)), address)
    # Known before the provider is asked: it may speak to us before it has answered.
    with stores.database.writing() as session:
        if not channels.add(session, wanted.id, key, wanted.secret.reveal):
            return False
    try:
        opened = _open(runtime, credentials, key, wanted)
    except ProviderError as error:
        with stores.database.writing() as session:
            channels.remove(session, [wanted.id])
        stores.channel_usage.hold(key, FAILED_SECONDS if error.retryable else REFUSED_SECONDS)
        return False
    with stores.database.writing() as session:
        if opened.confirmed:
            channels.confirmed(session, wanted.id)
        row = channels.opened(
            session,
            wanted.id,
            provider_id=opened.id,
            resource=opened.resource,
            expires_at=opened.expires_at,
        )
    if row is None:
        # The connection was deleted meanwhile.
        close(runtime, credentials, opened.id, opened.resource)
        return False
    # Until it ends there is no need for another, whether or not it comes to be confirmed.
    stores.channel_usage.hold(key, (opened.expires_at - now()).total_seconds())
    watch(stores, row)
    return True


def watch(stores: Stores, row: Channel) -> None:
    """Let the cache rely on a channel, if it is open and confirmed."""
    if (seconds := channels.watches_for(row)) <= 0:
        return
    key = channels.calendar_of(row)
    stores.channel_usage.hear(row.id, stores.settings.push_audit_seconds)
    stores.busy.watch(key, row.id, seconds)
    with stores.database.reading() as session:
        known = channels.known(session, [row.id])
    if not known:
        # Forgotten meanwhile, perhaps before there was a watch to end.
        stores.busy.empty(key, unwatch=row.id)


def lose(stores: Stores, key: CalendarKey, channel: str) -> None:
    """Rely no more on a channel that is gone; who reads the calendar next has another opened."""
    forget(stores, key, channel)
    stores.channel_usage.release(key)


def forget(stores: Stores, key: CalendarKey, channel: str) -> None:
    """Remove a channel and end its watch, in whatever order others set it."""
    # Before its row goes: when Redis is down the channel stays, and is found and forgotten again.
    stores.busy.empty(key, unwatch=channel)
    with stores.database.writing() as session:
        channels.remove(session, [channel])
    # And after: whoever sets a watch looks for the row once it is set, and finds none from now on.
    stores.busy.empty(key, unwatch=channel)


def close_all(runtime: Runtime, credentials: Credentials, deadline: float) -> None:
    """End the channels of a connection at its provider."""
    with runtime.stores.database.reading() as session:
        rows = channels.of_connections(session, [credentials.id])
    for row in rows:
        if row.provider_id is not None and time.monotonic() < deadline:
            close(runtime, credentials, row.provider_id, row.resource or "", deadline=deadline)


def close(
    runtime: Runtime,
    credentials: Credentials,
    provider_id: str,
    resource: str,
    *,
    deadline: float | None = None,
) -> None:
    """End a channel at its provider, if it lets us; else it ends by itself, and what it tells is refused."""
    _, account = open_account(runtime, credentials, Family.CHANNELS)
    provider = runtime.providers[ProviderName(credentials.provider)]
    deadline = deadline or _deadline()
    try:
        with acquire(runtime, credentials, 1, Family.CHANNELS, deadline=deadline):
            provider.channels.close(account, provider_id, resource, deadline=deadline)
    except ProviderError as error:
        log.info("a channel could not be closed: %s", error.reason, extra={"connection": credentials.id})


def credentials_of(runtime: Runtime, connection: str) -> Credentials | None:
    """A living connection with its tokens; None when there is none that opens."""
    with runtime.stores.database.reading() as session:
        row = connections.sealed(session, [connection]).get(connection)
    if row is None or not row.alive:
        return None
    try:
        return connections.open_credentials(row, runtime.stores.keyring)
    except Undecipherable:
        log.exception("tokens cannot be opened", extra={"connection": connection})
        return None


def _open(
    runtime: Runtime, credentials: Credentials, key: CalendarKey, wanted: ChannelWanted
) -> ChannelOpened:
    _, account = open_account(runtime, credentials, Family.CHANNELS)
    provider = runtime.providers[ProviderName(credentials.provider)]
    deadline = _deadline()
    with (
        mark_dead_on_revoked_grant(runtime, credentials.id),
        acquire(runtime, credentials, 1, Family.CHANNELS, deadline=deadline),
    ):
        return provider.channels.open(account, key.calendar, wanted, deadline=deadline)


def _deadline() -> float:
    return time.monotonic() + SECONDS_FOR_EACH

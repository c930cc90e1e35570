"""Opens notification channels for calendars in use, and closes them with their connections."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Sequence

from providers import registry
from providers.base import ChannelRequest, Channels, OpenChannel, Token
from providers.definition import required
from providers.errors import ProviderError
from store.cache.busy_cache import CalendarKey
from store.coordination.provider_limits import Access
from store.security.crypto import Undecipherable
from store.sql.models import Channel, now
from store.sql.queries import channels, connection_rows
from store.sql.queries.connection_rows import Credentials
from workers.execution.accounts import mark_dead_on_revoked_grant, open_account
from workers.runtime import Runtime
from workers.upkeep.batches import SECONDS_FOR_EACH, Batch
from workers.upkeep.rate_limit import acquire
from workers.upkeep.watches import watch

log = logging.getLogger(__name__)

# Seconds until the retry for a calendar whose channel could not be opened: after an outage of the provider,
# and after a refusal.
FAILED_SECONDS = 600.0
REFUSED_SECONDS = 3600.0


def open_channels(runtime: Runtime, keys: Sequence[CalendarKey], *, deadline: float) -> int:
    """Open a channel for each calendar; returns the number of channels opened.

    Calendars for which there is no thread or no time are released: the next read of one tries again.
    """
    opening = Batch(runtime, keys, lambda key: open_one(runtime, key), deadline, waits=False)
    opened = opening.run()
    for key in opening.not_started:
        runtime.stores.channel_usage.release(key)
    return opened


def open_one(runtime: Runtime, key: CalendarKey) -> bool:
    """Open a channel for a calendar. After a failure, reads do not retry for a while."""
    credentials = credentials_of(runtime, key.connection)
    if credentials is None or (address := runtime.settings.push_address(credentials.provider)) is None:
        return False
    if runtime.provider(credentials.provider).channels is None:
        return False
    stores = runtime.stores
    wanted = ChannelRequest(secrets.token_hex(16), Token(secrets.token_urlsafe(32)), address)
    # Stored before the call: the provider may send a notification before its answer arrives.
    with stores.database.writing() as session:
        if not channels.add(session, wanted.id, key, wanted.secret.reveal):
            return False
    try:
        opened = _open(runtime, credentials, key, wanted)
    except ProviderError as error:
        with stores.database.writing() as session:
            channels.remove(session, [wanted.id])
        stores.channel_usage.block_claims(key, FAILED_SECONDS if error.retryable else REFUSED_SECONDS)
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
    # No other channel is opened until this one expires, whether or not it is confirmed.
    stores.channel_usage.block_claims(key, (opened.expires_at - now()).total_seconds())
    watch(stores, row)
    return True


def close_all(runtime: Runtime, credentials: Credentials, deadline: float) -> None:
    """Close the channels of a connection at its provider."""
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
    """Close a channel at its provider. If that fails, it expires, and its notifications are refused."""
    _, account = open_account(runtime, credentials, Access.WRITES)
    deadline = deadline or _deadline()
    try:
        with acquire(runtime, credentials, 1, Access.WRITES, deadline=deadline):
            channels_of(runtime, credentials).close(account, provider_id, resource, deadline=deadline)
    except ProviderError as error:
        log.info("a channel could not be closed: %s", error.reason, extra={"connection": credentials.id})


def close_channel(runtime: Runtime, row: Channel) -> None:
    """Close a channel at its provider, if it was opened and its connection still exists."""
    credentials = credentials_of(runtime, row.connection_id)
    if credentials is not None and row.provider_id is not None:
        close(runtime, credentials, row.provider_id, row.resource or "")


def credentials_of(runtime: Runtime, connection: str) -> Credentials | None:
    """A connection with its tokens; None if it is dead or removed, or its tokens cannot be decrypted."""
    with runtime.stores.database.reading() as session:
        row = connection_rows.sealed(session, [connection]).get(connection)
    if row is None or not row.alive:
        return None
    try:
        return connection_rows.open_credentials(row, runtime.stores.keyring)
    except Undecipherable:
        log.exception("tokens cannot be decrypted", extra={"connection": connection})
        return None


def channels_of(runtime: Runtime, credentials: Credentials) -> Channels:
    """The change notifications of the provider of a connection.

    :raise ProviderNotConfigured: if it sends none
    """
    return required(runtime.provider(credentials.provider).channels, registry.title(credentials.provider))


def _open(
    runtime: Runtime, credentials: Credentials, key: CalendarKey, wanted: ChannelRequest
) -> OpenChannel:
    _, account = open_account(runtime, credentials, Access.WRITES)
    deadline = _deadline()
    with (
        mark_dead_on_revoked_grant(runtime, credentials.id),
        acquire(runtime, credentials, 1, Access.WRITES, deadline=deadline),
    ):
        return channels_of(runtime, credentials).open(account, key.calendar, wanted, deadline=deadline)


def _deadline() -> float:
    return time.monotonic() + SECONDS_FOR_EACH

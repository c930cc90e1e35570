"""Ending connections: revoked where the provider offers it, forgotten in any case."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from app.services import services
from providers.names import ProviderName
from store.queries import audit, channels, connections
from store.queries.connections import ConnectionRef
from workers.jobs import Revoke, StopChannels
from workers.queues import Queue

log = logging.getLogger(__name__)

# Entra has no endpoint by which an application ends one grant.
REVOCABLE = frozenset({ProviderName.GOOGLE})

# A provider that does not answer must not keep somebody from leaving.
REVOKE_SECONDS = 5.0


def forget_connections(custom_id: str, provider: str | None = None, *, actor: str) -> int:
    """End a user's connections, or the one with ``provider``; returns how many there were.

    ``actor`` is who wants it, for the audit log.
    """
    stores = services().stores
    with stores.database.reading() as session:
        refs = connections.of_user(session, custom_id, within=None) or []
    refs = [ref for ref in refs if provider in (None, ref.provider)]
    _stop_channels([ref for ref in refs if ref.alive])
    _revoke([ref for ref in refs if ref.alive and ref.provider in REVOCABLE])
    ids = [ref.id for ref in refs]
    with stores.database.writing() as session:
        connections.remove(session, ids)
        for ref in refs:
            subject = f"{custom_id}/{ref.provider}"
            audit.record(session, actor=actor, action="deleteConnection", subject=subject)
    forget_cached(ids)
    return len(ids)


def forget_cached(connection_ids: list[str]) -> None:
    """Drop what is cached for connections that are gone.

    Their ids are never used again: while Redis is down, nothing can read what it may still hold.
    """
    stores = services().stores
    try:
        stores.busy.forget(connection_ids)
        stores.calendar_lists.forget(connection_ids)
        stores.watching.forget(connection_ids)
    except RedisError as error:
        log.warning("cached data waits for its time to live: %s", type(error).__name__)


def _stop_channels(refs: list[ConnectionRef]) -> None:
    """Before the grant ends: without it the provider would go on telling of changes for days."""
    with services().stores.database.reading() as session:
        rows = channels.of_connections(session, [ref.id for ref in refs])
    _ask([StopChannels(connection) for connection in {row.connection_id for row in rows}], "channels")


def _revoke(refs: list[ConnectionRef]) -> None:
    _ask([Revoke(ref.id) for ref in refs], "grants")


def _ask(jobs: Sequence[Revoke | StopChannels], what: str) -> None:
    """Have workers end something at the provider, if they can."""
    try:
        # Nobody comes back for it: what is not ended now stays good at the provider.
        replies = services().fanout.gather(
            jobs, queue=Queue.WRITES, deadline=time.monotonic() + REVOKE_SECONDS, finishing=True
        )
    except (RedisError, BrokerError) as error:
        log.warning("%s are forgotten without being ended: %s", what, type(error).__name__)
        return
    for job, reply in zip(jobs, replies, strict=True):
        if reply.failed is not None:
            log.warning(
                "%s could not be ended: %s", what, reply.failed.reason, extra={"connection": job.connection}
            )

"""Ending connections: revoked where the provider offers it, forgotten in any case."""

from __future__ import annotations

import logging
import time

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from app.services import services
from providers.names import ProviderName
from store.queries import connections
from store.queries.connections import ConnectionRef
from workers.jobs import Revoke
from workers.queues import Queue

log = logging.getLogger(__name__)

# Entra has no endpoint by which an application ends one grant.
REVOCABLE = frozenset({ProviderName.GOOGLE})

# A provider that does not answer must not keep somebody from leaving.
REVOKE_SECONDS = 5.0


def forget_connections(custom_id: str, provider: str | None = None) -> int:
    """End a user's connections, or the one with ``provider``; returns how many there were."""
    stores = services().stores
    with stores.database.reading() as session:
        refs = connections.of_user(session, custom_id, within=None) or []
    refs = [ref for ref in refs if provider in (None, ref.provider)]
    _revoke([ref for ref in refs if ref.alive and ref.provider in REVOCABLE])
    ids = [ref.id for ref in refs]
    with stores.database.writing() as session:
        connections.remove(session, ids)
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
    except RedisError as error:
        log.warning("cached data waits for its time to live: %s", type(error).__name__)


def _revoke(refs: list[ConnectionRef]) -> None:
    jobs = [Revoke(ref.id) for ref in refs]
    try:
        replies = services().fanout.gather(
            jobs, queue=Queue.WRITES, deadline=time.monotonic() + REVOKE_SECONDS
        )
    except (RedisError, BrokerError) as error:
        log.warning("grants are forgotten without being revoked: %s", type(error).__name__)
        return
    for ref, reply in zip(refs, replies, strict=True):
        if reply.failed is not None:
            log.warning("a grant could not be revoked: %s", reply.failed.reason, extra={"connection": ref.id})

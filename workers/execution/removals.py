"""Drops what is cached of removed connections, and finds the grants to revoke.

A grant is revoked when the service obtained it and no other connection uses its account.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from redis.exceptions import RedisError

from providers import registry
from store.security.crypto import Undecipherable
from store.security.one_time_secrets import PendingRevocation
from store.sql.queries import connections
from store.sql.queries.connections import RemovedConnection
from store.stores import Stores

log = logging.getLogger(__name__)


def evict_and_list_revocations(
    stores: Stores, removed: Sequence[RemovedConnection], *, revoke: bool = True
) -> list[PendingRevocation]:
    """Evict the cached data of removed connections; returns the revocations of their grants that are due.

    The caller has committed the removal. A worker passes each revocation to ``revoke_unused``; the web tier,
    which calls no provider, sends a ``Revoke`` job. Without ``revoke`` the grants stay valid.
    """
    forget_cached(stores, [each.id for each in removed])
    due = (_revocation_of(stores, each) for each in removed if revoke)
    return [each for each in due if each is not None]


def forget_cached(stores: Stores, connection_ids: Sequence[str]) -> None:
    """Drop everything that is cached for removed connections.

    Their ids are never used again: what stays in a Redis that is down is never read.
    """
    try:
        stores.busy.invalidate_connections(connection_ids)
        stores.calendar_lists.forget(connection_ids)
        stores.channel_usage.forget(connection_ids)
        stores.last_reads.forget(connection_ids)
    except RedisError as error:
        log.warning("cached data of removed connections not dropped, it expires: %s", type(error).__name__)


def _revocation_of(stores: Stores, removed: RemovedConnection) -> PendingRevocation | None:
    """The revocation of a removed connection's grant; None for a grant that the service must not revoke.

    Tokens that a caller posted are the caller's. A dead grant is gone at the provider. A delegated connection
    is read by the grant of an organization, which an administrator withdraws at the provider.
    """
    if (
        removed.sealed_access_token is None
        or not removed.obtained
        or not removed.alive
        or not registry.definition(removed.provider).revocable
    ):
        return None
    try:
        token = connections.revocable_token(removed, stores.keyring)
    except Undecipherable:
        log.warning("a grant is not revoked: its token cannot be decrypted", extra={"connection": removed.id})
        return None
    return PendingRevocation(removed.user_id, removed.provider, removed.account_id, removed.email, token)

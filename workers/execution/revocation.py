"""Revokes the grants of connections that the API deletes or that a consent replaces, and drops cached data.

A grant is revoked when the service obtained it and no other connection uses its account.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from redis.exceptions import RedisError

from providers import registry
from providers.base import Failed, Token
from providers.definition import required
from providers.errors import ProviderError, Reason
from store.coordination.locks import LockTimeout
from store.security.crypto import Undecipherable
from store.security.one_time_secrets import PendingRevocation
from store.sql.queries import connections
from store.sql.queries.connections import ProviderAccount, RemovedConnection
from store.stores import Stores
from workers.jobs import Reply, Revoke
from workers.runtime import Runtime

log = logging.getLogger(__name__)

LOST = Failed(Reason.PROVIDER_ERROR, "The grant to revoke was lost on the way to a worker")
BUSY = Failed(Reason.PROVIDER_ERROR, "Another consent or revocation of the account took too long")


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


def revoke(runtime: Runtime, job: Revoke, deadline: float) -> Reply:
    """Revoke the grant stored under ``secret_name``, unless another connection uses its account."""
    revocation = runtime.stores.revocations.take(job.secret_name)
    if revocation is None:
        return Reply(failed=LOST)
    try:
        revoke_unused(runtime, revocation, deadline)
    except LockTimeout:
        return Reply(failed=BUSY)
    except ProviderError as error:
        return Reply(failed=Failed.from_error(error))
    return Reply()


def revoke_unused(runtime: Runtime, revocation: PendingRevocation, deadline: float) -> None:
    """Revoke a grant, unless another connection uses its account.

    :raise ProviderError: when the provider refuses or does not answer
    :raise LockTimeout: when another consent or revocation holds the account for too long
    """
    stores = runtime.stores
    account = ProviderAccount(revocation.provider, revocation.account_id, revocation.email)
    with stores.account_locks.exclusive(account, deadline=deadline):
        with stores.database.reading() as session:
            used = connections.uses_account(session, account, or_user=revocation.user_id)
        if used:
            log.info("grant not revoked: another connection uses its account")
            return
        oauth = required(runtime.providers[revocation.provider].oauth, registry.title(revocation.provider))
        # Before the call, in case this process dies, and after it: a code that is redeemed meanwhile may get
        # tokens that die.
        stores.account_locks.note_revocation(account)
        try:
            oauth.revoke(Token(revocation.token), deadline=deadline)
        finally:
            stores.account_locks.note_revocation(account)

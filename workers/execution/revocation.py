"""Revokes the grants of connections that the API has deleted or that a consent has replaced."""

from __future__ import annotations

import logging

from providers import registry
from providers.base import Failed, Token
from providers.definition import required
from providers.errors import ProviderError, Reason
from store.coordination.locks import LockTimeout
from store.security.one_time_secrets import PendingRevocation
from store.sql.queries import connections
from store.sql.queries.connections import ProviderAccount
from workers.jobs import Reply, Revoke
from workers.runtime import Runtime

log = logging.getLogger(__name__)

LOST = Failed(Reason.PROVIDER_ERROR, "The grant to revoke was lost on the way to a worker")
BUSY = Failed(Reason.PROVIDER_ERROR, "Another consent or revocation of the account took too long")


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
        oauth = required(runtime.provider(revocation.provider).oauth, registry.title(revocation.provider))
        # Before the call, in case this process dies, and after it: a code that is redeemed meanwhile may get
        # tokens that die.
        stores.account_locks.note_revocation(account)
        try:
            oauth.revoke(Token(revocation.token), deadline=deadline)
        finally:
            stores.account_locks.note_revocation(account)

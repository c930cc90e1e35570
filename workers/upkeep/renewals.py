"""Scheduled renewal of access tokens, and purge of idempotency keys, holds and audit records."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta

from providers import registry
from providers.base import Token
from providers.errors import ProviderError
from store.cache.busy_cache import now_ms
from store.coordination.provider_limits import Access
from store.security.crypto import Undecipherable
from store.sql.models import OAuthConnection
from store.sql.queries import audit, connection_rows, connections, holds, idempotency
from workers.execution.accounts import mark_dead_on_revoked_grant, open_account
from workers.runtime import Runtime
from workers.upkeep.batches import SECONDS_FOR_EACH, Batch, one_at_a_time, purge

log = logging.getLogger(__name__)

# Access tokens that expire within this time are renewed.
RENEW_AHEAD = timedelta(minutes=10)
# Tokens that expired earlier are refreshed by the next request that needs them.
RENEW_BEHIND = timedelta(hours=1)
# Tokens for one run. The next run takes the rest, or a request refreshes them.
MAX_RENEWALS = 2000
# With the margin of the lock, this is shorter than the interval of beat: the lock of a run that died expires
# before the next run.
ROUND_SECONDS = 240.0


@one_at_a_time("renew_tokens")
def renew_tokens(runtime: Runtime, *, deadline: float) -> int:
    """Refresh the access tokens that expire soon or did just now; returns how many were renewed.

    Ends by ``deadline``, on ``time.monotonic()``.
    """
    now = datetime.now(UTC)
    configured = [name for name in registry.with_consent() if runtime.provider(name).configured]
    with runtime.stores.database.reading() as session:
        rows = connections.expiring(
            session,
            after=now - RENEW_BEHIND,
            before=now + RENEW_AHEAD,
            providers=configured,
            limit=MAX_RENEWALS,
        )
    return Batch(runtime, rows, lambda row: _renew(runtime, row), deadline).run()


def purge_idempotency_keys(runtime: Runtime) -> int:
    """Delete expired keys with their stored answers; returns how many."""
    return purge(runtime, idempotency.purge)


def purge_audit_records(runtime: Runtime) -> int:
    """Delete the records of the audit log that are older than the setting; returns how many."""
    days = runtime.settings.audit_days
    if not days:
        return 0
    before = datetime.now(UTC) - timedelta(days=days)
    return purge(runtime, lambda session, *, limit: audit.purge(session, before=before, limit=limit))


def purge_holds(runtime: Runtime) -> int:
    """Delete expired holds, and record that they expired; returns how many."""
    return purge(runtime, lambda session, *, limit: holds.purge(session, now=now_ms(), limit=limit))


def _renew(runtime: Runtime, row: OAuthConnection) -> bool:
    deadline = time.monotonic() + SECONDS_FOR_EACH
    try:
        credentials = connection_rows.open_credentials(row, runtime.stores.keyring)
        if credentials.tokens is None:
            return False
        _, account = open_account(runtime, credentials, Access.READS)
        with mark_dead_on_revoked_grant(runtime, row.id):
            account.tokens.renewed(Token(credentials.tokens.access_token), deadline=deadline)
    except ProviderError:
        # Already logged. A dead grant has been marked; any other failure is retried by the next run.
        return False
    except Undecipherable:
        log.exception("tokens cannot be decrypted", extra={"connection": row.id})
        return False
    return True

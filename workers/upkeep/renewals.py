"""What is done on the clock, for nobody in particular."""

from __future__ import annotations

import logging
import time
from datetime import datetime

from providers.base import Token
from providers.errors import ProviderError
from store.coordination.circuit_breaker import Family
from store.coordination.locks import LockTimeout, round_lock
from store.security.crypto import Undecipherable
from store.sql.models import OAuthConnection
from store.sql.queries import connections, idempotency
from workers.execution.account_context import mark_dead_on_revoked_grant, open_account
from workers.runtime import Runtime
from workers.upkeep.batches import SECONDS_FOR_EACH, Batch, purge

log = logging.getLogger(__name__)

# What is left over comes with the next round, or is refreshed when somebody asks.
MOST_RENEWALS = 2000
# Shorter than the beat, with the lock's margin: a round that died does not cost the next one.
ROUND_SECONDS = 240.0

# Keys deleted in one transaction: on SQLite, everybody else's writes wait for it.


def renew_tokens(runtime: Runtime, *, after: datetime, before: datetime, deadline: float) -> int:
    """Refresh the access tokens that end between two moments; returns how many were renewed.

    Done by ``deadline``, a moment of ``time.monotonic()``. Nothing is done while another round goes on.
    """
    configured = [name for name, provider in runtime.providers.items() if provider.configured]
    try:
        with round_lock(runtime.stores.redis, "renew_tokens", deadline=deadline):
            with runtime.stores.database.reading() as session:
                rows = connections.expiring(
                    session, after=after, before=before, providers=configured, limit=MOST_RENEWALS
                )
            return Batch(runtime, rows, lambda row: _renew(runtime, row), deadline).run()
    except LockTimeout:
        log.info("the round before is still renewing tokens")
        return 0


def purge_idempotency_keys(runtime: Runtime) -> int:
    """Delete the keys that are over, with the answers they kept; returns how many."""
    return purge(runtime, idempotency.purge)


def _renew(runtime: Runtime, row: OAuthConnection) -> bool:
    deadline = time.monotonic() + SECONDS_FOR_EACH
    try:
        credentials = connections.open_credentials(row, runtime.stores.keyring)
        _, account = open_account(runtime, credentials, Family.BUSY)
        with mark_dead_on_revoked_grant(runtime, row.id):
            account.tokens.renewed(Token(credentials.tokens.access_token), deadline=deadline)
    except ProviderError:
        # Logged where it happened; a grant that is gone is marked, anything else is tried next time.
        return False
    except Undecipherable:
        log.exception("tokens cannot be opened", extra={"connection": row.id})
        return False
    return True

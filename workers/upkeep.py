"""What is done on the clock, for nobody in particular."""

from __future__ import annotations

import logging
import queue
import time
from collections import deque
from collections.abc import Iterable
from datetime import datetime
from functools import partial

from providers.base import Token
from providers.errors import ProviderError
from store.crypto import Undecipherable
from store.locks import LockTimeout, round_lock
from store.models import OAuthConnection
from store.queries import connections, idempotency
from workers.accounts import minding_the_grant, open_account
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# What is left over comes with the next round, or is refreshed when somebody asks.
MOST_RENEWALS = 2000
# Few enough to leave requests their places.
AT_ONCE = 8
SECONDS_FOR_EACH = 10.0
# Shorter than the beat, with the lock's margin: a round that died does not cost the next one.
ROUND_SECONDS = 240.0

# Keys deleted in one transaction: on SQLite, everybody else's writes wait for it.
PURGED_AT_ONCE = 1000


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
            return _Round(runtime, rows, deadline).run()
    except LockTimeout:
        log.info("the round before is still renewing tokens")
        return 0


def purge_idempotency_keys(runtime: Runtime) -> int:
    """Delete the keys that are over, with the answers they kept; returns how many."""
    purged = 0
    while True:
        with runtime.stores.database.writing() as session:
            gone = idempotency.purge(session, limit=PURGED_AT_ONCE)
        purged += gone
        if gone < PURGED_AT_ONCE:
            return purged


class _Round:
    """The renewals of one round, in the places of this process."""

    def __init__(self, runtime: Runtime, rows: Iterable[OAuthConnection], deadline: float) -> None:
        self._runtime = runtime
        self._waiting = deque(rows)
        # Whatever is started has its full time: a refresh that is cut off may lose what it was given.
        self._last_start = deadline - SECONDS_FOR_EACH
        self._done: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._in_flight = 0

    def run(self) -> int:
        """Renew until nothing waits or time is up, and everything started has ended."""
        renewed = 0
        while True:
            self._fill()
            if not self._in_flight:
                return renewed
            renewed += self._done.get()
            self._in_flight -= 1

    def _fill(self) -> None:
        places = self._runtime.places
        while time.monotonic() < self._last_start:
            most = min(AT_ONCE - self._in_flight, len(self._waiting))
            if not most:
                return
            # With renewals of our own in flight, one of them frees a place: no need to wait for others' here.
            claimed = places.claim(most, until=0.0 if self._in_flight else self._last_start)
            if not claimed:
                return
            for _ in range(claimed):
                places.run(partial(self._work, self._waiting.popleft()))
            self._in_flight += claimed

    def _work(self, row: OAuthConnection) -> None:
        """Runs in a place. Whatever happens, the round learns that it is over."""
        renewed = False
        try:
            renewed = _renew(self._runtime, row)
        except Exception:
            log.exception("a renewal failed unexpectedly", extra={"connection": row.id})
        finally:
            self._done.put(renewed)


def _renew(runtime: Runtime, row: OAuthConnection) -> bool:
    deadline = time.monotonic() + SECONDS_FOR_EACH
    try:
        credentials = connections.open_credentials(row, runtime.stores.keyring)
        _, account = open_account(runtime, credentials)
        with minding_the_grant(runtime, row.id):
            account.tokens.renewed(Token(credentials.tokens.access_token), deadline=deadline)
    except ProviderError:
        # Logged where it happened; a grant that is gone is marked, anything else is tried next time.
        return False
    except Undecipherable:
        log.exception("tokens cannot be opened", extra={"connection": row.id})
        return False
    return True

"""What is done on the clock, for nobody in particular."""

from __future__ import annotations

import logging
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
from workers.places import Share
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
        self._share: Share[bool] = runtime.places.share()
        self._in_flight = 0

    def run(self) -> int:
        """Renew until nothing waits or time is up, and everything started has ended."""
        renewed = 0
        try:
            while self._anything_left():
                finished, granted = self._share.wait(None if self._in_flight else self._last_start)
                renewed += sum(finished)
                self._in_flight -= len(finished)
                self._start(granted)
        finally:
            self._share.close()
        return renewed

    def _anything_left(self) -> bool:
        """Leave what there is no time for, and say how many places the rest can use."""
        if time.monotonic() >= self._last_start:
            self._waiting.clear()
        self._share.want(min(AT_ONCE - self._in_flight, len(self._waiting)))
        return bool(self._in_flight or self._waiting)

    def _start(self, places: int) -> None:
        in_time = time.monotonic() < self._last_start
        starting = min(places, len(self._waiting)) if in_time else 0
        for _ in range(starting):
            self._share.run(partial(self._work, self._waiting.popleft()))
        self._in_flight += starting
        self._share.give_back(places - starting)

    def _work(self, row: OAuthConnection) -> bool:
        """Runs in a place. Whatever happens, the round learns that it is over."""
        try:
            return _renew(self._runtime, row)
        except Exception:
            log.exception("a renewal failed unexpectedly", extra={"connection": row.id})
            return False


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

"""Prepares a connection for a provider adapter, and marks it dead when the provider has revoked its grant."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from providers.base import Account, CalendarProvider, TokenSource
from providers.errors import GrantGone, ProviderError, TokenRejected
from providers.microsoft.mailbox import user_path
from providers.names import ProviderName
from store.coordination.circuit_breaker import Access, CircuitKey
from store.sql.queries import connections
from store.sql.queries.connection_rows import Credentials
from workers.execution.call_policy import AccountCallReporter
from workers.execution.identity import FormerCalendars
from workers.execution.organization_tokens import OrganizationTokens
from workers.execution.tokens import ConnectionTokens
from workers.runtime import Runtime
from workers.telemetry import request_ids

log = logging.getLogger(__name__)

# A timeout counts as a failure of the provider only if the call waited for this share of the deadline.
MIN_WAIT_FRACTION = 0.25

# Seconds after which a second rejection of new tokens means that the grant has ended, and for which the first
# is remembered.
REJECTED_SECONDS = 600
REJECTED_KEPT_SECONDS = 30 * 86_400


def open_account(
    runtime: Runtime, credentials: Credentials, access: Access, *, grace: float = 0.0
) -> tuple[CalendarProvider, Account]:
    """The adapter for a connection, and the account to pass to it, for reads or writes."""
    provider = runtime.providers[ProviderName(credentials.provider)]
    reporter = call_reporter(runtime, credentials, access)
    request_id = request_ids.current.get()
    tokens: TokenSource
    path = "/me"
    if credentials.grant is None:
        tokens = ConnectionTokens(runtime.stores, provider.oauth, credentials)
    else:
        tokens = OrganizationTokens.of_connection(runtime, credentials)
        # Microsoft's token is for the whole tenant, so the path names the mailbox. Google ignores it.
        path = user_path(credentials.email or "")
    account = Account(
        credentials.email,
        credentials.scope,
        tokens,
        reporter,
        grace,
        request_id,
        path,
        mailbox=credentials.mailbox,
        former_calendars=FormerCalendars(runtime.stores, credentials.id),
    )
    return provider.calendars, account


def call_reporter(
    runtime: Runtime, credentials: Credentials, access: Access, *, for_provider: bool = True
) -> AccountCallReporter:
    """The rate limiter and circuit breaker for the reads or the writes of an account.

    ``for_provider``: failures count for the provider's breaker too.
    """
    return AccountCallReporter(
        runtime.stores.provider_rate_limiter,
        runtime.stores.circuit_breakers,
        CircuitKey(credentials.provider, access),
        credentials.id,
        egress=runtime.egress,
        patience=runtime.settings.fanout_deadline_seconds * MIN_WAIT_FRACTION,
        ours=partial(_is_ours, runtime, credentials),
        for_provider=for_provider,
    )


def _is_ours(runtime: Runtime, credentials: Credentials, project: str | None) -> bool:
    """Whether a Google Cloud project is the one of this installation's OAuth registration.

    Google's client ids begin with the number of their project. Where one of the two numbers is unknown, only
    a grant that this service obtained counts against our project.
    """
    ours, _, _ = runtime.providers[ProviderName(credentials.provider)].oauth.client_id.partition("-")
    if project is not None and ours.isdecimal():
        return project == ours
    return credentials.obtained


@contextmanager
def mark_dead_on_revoked_grant(
    runtime: Runtime, connection_id: str, *, reads: bool = False
) -> Iterator[None]:
    """Log every provider failure, and mark the connection dead if its grant is gone.

    ``reads``: the calls read a calendar. Only then a rejected token counts, see :func:`_is_rejected_again`.
    """
    try:
        yield
        if reads:
            runtime.stores.redis.delete(_rejected(connection_id))
    except ProviderError as error:
        log.info(
            "provider failure: %s", error.reason, extra={"connection": connection_id, "why": error.message}
        )
        again = reads and isinstance(error, TokenRejected) and _is_rejected_again(runtime, connection_id)
        if again or isinstance(error, GrantGone):
            with runtime.stores.database.writing() as session:
                connections.mark_dead(session, connection_id, error.message)
        raise


def _is_rejected_again(runtime: Runtime, connection_id: str) -> bool:
    """Whether the provider rejected new tokens ``REJECTED_SECONDS`` ago too, and no read succeeded since.

    A provider may reject valid tokens for some minutes.
    """
    redis, now = runtime.stores.redis, time.time()
    redis.set(_rejected(connection_id), now, nx=True, ex=REJECTED_KEPT_SECONDS)
    first = redis.get(_rejected(connection_id))
    return first is not None and now - float(first) >= REJECTED_SECONDS


def _rejected(connection_id: str) -> str:
    return f"token-rejected:{connection_id}"

"""Prepares the account of a connection for an adapter: its tokens, its limits, and the end of its grant.

The tokens of a connection are refreshed by one worker at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial

from providers import registry
from providers.base import Account, CalendarProvider, IssuedTokens, Token, TokenSource
from providers.errors import AuthorizationInvalid, GrantGone, ProviderError, TokenRejected, Unavailable
from providers.oauth.client import OAuth
from store.coordination import locks, provider_limits
from store.coordination.locks import LockTimeout
from store.coordination.provider_limits import Access, Circuit
from store.sql.queries import connection_rows, connections
from store.sql.queries.connection_rows import Credentials, Tokens
from store.stores import Stores
from workers.execution.call_policy import AccountCallReporter
from workers.execution.identity import FormerCalendars
from workers.execution.organization_tokens import OrganizationTokens
from workers.execution.registrations import note_registration
from workers.runtime import Runtime
from workers.telemetry import request_ids

log = logging.getLogger(__name__)

# A timeout counts as a failure of the provider only if the call waited for this share of the deadline.
MIN_WAIT_FRACTION = 0.25

# Seconds after which a second rejection of new tokens, or of a password, means that the grant has ended.
REJECTED_SECONDS = 600


ENDED = "The account's access has ended; connect it again"
REJECTED = "The server rejects the stored credentials: connect the account again"


def open_account(
    runtime: Runtime, credentials: Credentials, access: Access, *, grace: float = 0.0
) -> tuple[CalendarProvider, Account]:
    """The adapter for a connection, and the account to pass to it, for reads or writes."""
    provider = runtime.provider(credentials.provider)
    # The accounts of a provider without hosts of its own are on servers that have nothing in common.
    reporter = call_reporter(
        runtime, credentials, access, for_provider=bool(registry.definition(credentials.provider).hosts)
    )
    request_id = request_ids.current.get()
    tokens: TokenSource
    if credentials.grant is None:
        tokens = ConnectionTokens(runtime.stores, provider.oauth, credentials)
    else:
        tokens = OrganizationTokens.of_connection(runtime, credentials)
    account = Account(
        credentials.email,
        credentials.scope,
        tokens,
        reporter,
        grace,
        request_id,
        delegated=credentials.grant is not None,
        mailbox=credentials.mailbox,
        former_calendars=FormerCalendars(runtime.stores, credentials.id),
        time_zone=credentials.own_zone,
    )
    return provider.calendars, account


def call_reporter(
    runtime: Runtime, credentials: Credentials, access: Access, *, for_provider: bool = True
) -> AccountCallReporter:
    """The rate limiter and circuit breaker for the reads or the writes of an account.

    ``for_provider``: failures count for the provider's breaker too.
    """
    return AccountCallReporter(
        runtime.stores.provider_limits,
        Circuit(credentials.provider, access),
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
    oauth = runtime.provider(credentials.provider).oauth
    ours = "" if oauth is None else oauth.client_id.partition("-")[0]
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
    """Whether the provider rejected the account ``REJECTED_SECONDS`` ago too, and no read succeeded since.

    A provider may reject valid tokens, or a valid password, for some minutes.
    """
    return provider_limits.note_rejection(runtime.stores.redis, connection_id) >= REJECTED_SECONDS


class ConnectionTokens:
    """A ``TokenSource``: the stored tokens, refreshed under a lock for each connection.

    Without ``oauth`` the stored token is what a person has entered in a form, which nothing can renew.
    """

    def __init__(self, stores: Stores, oauth: OAuth | None, credentials: Credentials) -> None:
        self._stores = stores
        self._oauth = oauth
        self._id = credentials.id
        if credentials.tokens is None:
            raise ValueError("a delegated connection has no tokens of its own")
        self._tokens = credentials.tokens

    def access_token(self, *, deadline: float) -> Token:
        """The stored token, or a new one if it expires soon and can be refreshed.

        :raise AuthorizationInvalid: if the grant is gone
        """
        current = self._tokens
        if current.refresh_token and connection_rows.ends_soon(current.expires_at):
            return self.renewed(Token(current.access_token), deadline=deadline)
        return Token(current.access_token)

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        """A token other than ``rejected``; the stored one if another worker has just refreshed it.

        :raise TokenRejected: if the token is what a person has entered in a form
        :raise GrantGone: if only new tokens help: the grant is gone, or there is nothing to refresh with and
            the access token has expired
        :raise AuthorizationInvalid: if there is nothing to refresh with, and the token has not expired
        :raise Unavailable: if the token endpoint, or another refresh, takes too long
        """
        try:
            # Concurrent refreshes would use one refresh token: if the provider rotates it, the grant could be
            # lost.
            with locks.hold(self._stores.redis, f"refresh:{self._id}", deadline=deadline):
                self._tokens = self._reload()
                if self._tokens.access_token == rejected.reveal:
                    self._refresh(deadline)
        except LockTimeout as error:
            raise Unavailable("Refreshing the account's access took too long") from error
        return Token(self._tokens.access_token)

    def _reload(self) -> Tokens:
        with self._stores.database.reading() as session:
            row = connection_rows.sealed(session, [self._id]).get(self._id)
        if row is None:
            raise AuthorizationInvalid("The connection was removed")
        tokens = connection_rows.open_credentials(row, self._stores.keyring).tokens
        if tokens is None:
            raise AuthorizationInvalid("The connection was replaced")
        return tokens

    def _refresh(self, deadline: float) -> None:
        if self._oauth is None:
            raise TokenRejected(REJECTED)
        old = self._tokens.refresh_token
        if old is None:
            # The provider has rejected the access token. One that has not expired may be accepted later.
            expires_at = self._tokens.expires_at
            expired = expires_at is None or expires_at <= datetime.now(UTC)
            raise GrantGone(ENDED) if expired else AuthorizationInvalid(ENDED)
        with note_registration(self._stores, self._oauth):
            grant = self._oauth.refresh(Token(old), deadline=deadline)
        self._tokens = _tokens(grant, old)
        with self._stores.database.writing() as session:
            connections.renew(session, self._stores.keyring, self._id, self._tokens)


def freshen(runtime: Runtime, credentials: Credentials, deadline: float) -> None:
    """Refresh the stored access token if it expires within a minute.

    :raise ProviderError: if it has expired and cannot be refreshed
    """
    tokens = credentials.tokens
    if tokens is None:
        # A delegated connection, whose tokens are those of the organization's grant.
        return
    if tokens.refresh_token is None and tokens.expires_at and tokens.expires_at <= datetime.now(UTC):
        raise AuthorizationInvalid(ENDED)
    oauth = runtime.provider(credentials.provider).oauth
    ConnectionTokens(runtime.stores, oauth, credentials).access_token(deadline=deadline)


def _tokens(grant: IssuedTokens, old_refresh: str) -> Tokens:
    # Google's answer to a refresh has no refresh token: the old one stays valid.
    rotated = grant.refresh_token.reveal if grant.refresh_token else old_refresh
    return Tokens(grant.access_token.reveal, rotated, grant.expires_at)

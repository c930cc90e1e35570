"""Tokens of one connection for a provider adapter, refreshed by one worker at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from providers.base import IssuedTokens, Token
from providers.errors import AuthorizationInvalid, GrantGone, Unavailable
from providers.names import ProviderName
from providers.oauth.client import OAuth
from store.coordination.locks import LockTimeout, refresh_lock
from store.sql.queries import connection_rows, connections
from store.sql.queries.connection_rows import Credentials, Tokens
from store.stores import Stores
from workers.execution.registrations import note_registration
from workers.runtime import Runtime

# A token that expires sooner could expire on the way to the provider.
MARGIN = timedelta(seconds=60)

ENDED = "The account's access has ended; connect it again"


class ConnectionTokens:
    """A ``TokenSource``: the stored tokens, refreshed under a lock for each connection."""

    def __init__(self, stores: Stores, oauth: OAuth, credentials: Credentials) -> None:
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
        if current.refresh_token and ends_soon(current.expires_at):
            return self.renewed(Token(current.access_token), deadline=deadline)
        return Token(current.access_token)

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        """A token other than ``rejected``; the stored one if another worker has just refreshed it.

        :raise GrantGone: if only new tokens help: the grant is gone, or there is nothing to refresh with and
            the access token has expired
        :raise AuthorizationInvalid: if there is nothing to refresh with, and the token has not expired
        :raise Unavailable: if the token endpoint, or another refresh, takes too long
        """
        try:
            with refresh_lock(self._stores.redis, self._id, deadline=deadline):
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
    oauth = runtime.providers[ProviderName(credentials.provider)].oauth
    ConnectionTokens(runtime.stores, oauth, credentials).access_token(deadline=deadline)


def ends_soon(expires_at: datetime | None) -> bool:
    """Whether a token has expired or expires within a minute; False if its expiry is unknown."""
    return expires_at is not None and expires_at - MARGIN <= datetime.now(UTC)


def _tokens(grant: IssuedTokens, old_refresh: str) -> Tokens:
    # Google's answer to a refresh has no refresh token: the old one stays valid.
    rotated = grant.refresh_token.reveal if grant.refresh_token else old_refresh
    return Tokens(grant.access_token.reveal, rotated, grant.expires_at)

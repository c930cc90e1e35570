"""Tokens of organization grants for provider adapters: cached for all workers, requested by one at a time."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import UTC, datetime

from providers import registry
from providers.base import IssuedTokens, Token
from providers.definition import required
from providers.errors import (
    GRANT_ENDED,
    AuthorizationInvalid,
    ClientRefused,
    ClockRefused,
    GrantRefused,
    Misconfigured,
    SubjectRefused,
    Unavailable,
)
from store.coordination import locks
from store.coordination.locks import LockTimeout
from store.security.grant_tokens import TokenOwner
from store.sql.queries import organization_grants
from store.sql.queries.connection_rows import Credentials
from store.sql.queries.organization_grants import GrantCredentials
from workers.execution.registrations import note_registration
from workers.runtime import Runtime

log = logging.getLogger(__name__)

_NOT_IN_DOMAIN = "The organization's grant does not reach this account: check that it is in the domain"


class OrganizationTokens:
    """A ``TokenSource``: the tokens of an organization grant.

    ``member`` is the address of the member to impersonate at Google. Without it the tokens are the grant's
    own: at Google those of the account that reads free/busy, at Microsoft those for all mailboxes.
    """

    def __init__(self, runtime: Runtime, grant_id: str, member: str | None) -> None:
        self._runtime = runtime
        self._owner = TokenOwner(grant_id, member)

    @classmethod
    def of_connection(cls, runtime: Runtime, credentials: Credentials) -> OrganizationTokens:
        """The tokens for the mailbox of one delegated connection."""
        if credentials.grant is None:
            raise ValueError("a personal connection has tokens of its own")
        member = credentials.email if registry.impersonates(credentials.provider) else None
        return cls(runtime, credentials.grant, member)

    def access_token(self, *, deadline: float) -> Token:
        """A cached token, or a new one.

        :raise GrantRefused: if the provider refuses the grant, which is then marked dead
        :raise SubjectRefused: if the provider refuses only this account
        :raise AuthorizationInvalid: if the grant has ended before, or was removed
        :raise Unavailable: if the token endpoint, or another request for the same token, takes too long
        """
        return self._cached(None) or self._request(None, deadline)

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        """A token other than ``rejected``; raises like :meth:`access_token`."""
        return self._request(rejected, deadline)

    def _cached(self, rejected: Token | None) -> Token | None:
        """The cached token, unless the provider has rejected it.

        :raise SubjectRefused: if the provider refused this account a moment ago
        """
        cached = self._runtime.stores.grant_tokens.load(self._owner)
        if cached.refused is not None:
            raise SubjectRefused(cached.refused)
        token = None if cached.token is None else Token(cached.token)
        return None if token == rejected else token

    def _request(self, rejected: Token | None, deadline: float) -> Token:
        """A new token; the cached one if another worker has just requested it."""
        try:
            name = f"refresh:{self._owner.name}"
            with locks.hold(self._runtime.stores.redis, name, deadline=deadline):
                return self._cached(rejected) or self._request_now(deadline)
        except LockTimeout as error:
            raise Unavailable("Getting access by the organization's grant took too long") from error

    def _request_now(self, deadline: float) -> Token:
        # Loaded inside the lock: the worker that had the lock before may have marked the grant dead.
        grant = load(self._runtime, self._owner.grant)
        tokens = self._runtime.stores.grant_tokens
        own = None if self._owner.member is None else tokens.load(TokenOwner(grant.id)).token
        try:
            return self._issue(grant, deadline)
        except ClockRefused as error:
            # The fault of this host: other workers may still use the grant.
            log.error("tokens of organization grants are refused: %s", error.message)
            raise
        except SubjectRefused as error:
            tokens.refuse(self._owner, error.message)
            raise
        except GrantRefused as error:
            if self._owner.member is None:
                self._end(grant, error)
                raise
            self._check_grant(own, deadline)
            tokens.refuse(self._owner, _NOT_IN_DOMAIN)
            raise SubjectRefused(_NOT_IN_DOMAIN, operation=error.operation) from None

    def _issue(self, grant: GrantCredentials, deadline: float) -> Token:
        issued = issue(self._runtime, grant, self._owner.member or grant.subject, deadline)
        left = (issued.expires_at - datetime.now(UTC)).total_seconds()
        self._runtime.stores.grant_tokens.save(self._owner, issued.access_token.reveal, left)
        return issued.access_token

    def _check_grant(self, own: str | None, deadline: float) -> None:
        """Find out whether the grant has ended, after it was refused for an impersonated account.

        Google returns the same error for an account in another domain as for a withdrawn grant. The worker
        therefore requests a new token for the grant's own account to tell the two apart; ``own`` is the
        previous one. Of several workers, only the first requests it.

        :raise AuthorizationInvalid: if the grant has ended
        :raise Unavailable: if that cannot be determined now
        """
        tokens = OrganizationTokens(self._runtime, self._owner.grant, None)
        with suppress(SubjectRefused):
            tokens.renewed(Token(own or ""), deadline=deadline)

    def _end(self, grant: GrantCredentials, error: GrantRefused) -> None:
        """Mark the grant dead, and drop its cached tokens."""
        log.warning("organization grant refused: %s: %s", grant.provider, error.message)
        with self._runtime.stores.database.writing() as session:
            organization_grants.mark_dead(session, grant.id, error.message)
        self._runtime.stores.grant_tokens.forget(grant.id)


def load(runtime: Runtime, grant_id: str) -> GrantCredentials:
    """A grant that is alive, with its secret.

    :raise AuthorizationInvalid: if it has ended, or was removed
    """
    stores = runtime.stores
    with stores.database.reading() as session:
        row = organization_grants.sealed(session, [grant_id]).get(grant_id)
    if row is None or not row.alive:
        raise AuthorizationInvalid(GRANT_ENDED)
    return organization_grants.open_credentials(row, stores.keyring)


def issue(runtime: Runtime, grant: GrantCredentials, subject: str | None, deadline: float) -> IssuedTokens:
    """A new token by a grant; ``subject`` is the account to impersonate, where the provider impersonates.

    :raise ProviderError: as :meth:`providers.definition.Grants.token`
    """
    provider, title = runtime.provider(grant.provider), registry.title(grant.provider)
    grants = required(provider.grants, title)
    if registry.impersonates(grant.provider) or grant.client_id is not None:
        return grants.token(grant, subject, deadline=deadline)
    # The token may be cached.
    with note_registration(runtime.stores, required(provider.oauth, title), calls=False):
        try:
            return grants.token(grant, subject, deadline=deadline)
        except ClientRefused as error:
            # The operator's fault: it says nothing about the grants of organizations.
            raise Misconfigured(error.message, operation=error.operation) from None

"""Pending consents, in Redis by their ``state``, and codes and grants that the web tier leaves for workers.

Each is encrypted, because it holds a PKCE verifier, a code or a token. Each can be taken once.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

from redis import Redis

from store.security.crypto import Keyring
from store.security.one_time_secrets import OneTimeSecrets

# A consent may take as long as the lifetime of a code: https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2
STATE_SECONDS = 600
# From the web tier to a worker, while the request waits for the result.
CODE_SECONDS = 60
REVOCATION_SECONDS = 60

STATE_BYTES = 32


@dataclass(frozen=True, slots=True)
class PendingConsent:
    """A consent that a person was asked for.

    ``user_id`` is the internal id, which a rename does not change and which is never reused.
    ``redirect_uri`` is where the provider sends the code: to this service when ``ours``, and then on to
    ``return_url`` if there is one. ``asked_by`` is the visible part of the API key that requested it,
    ``key_id`` its id (None for an administrator), ``within`` the organization that the key is bound to.

    ``expected_email`` is the account that must be connected, if the client named one. ``browser_digest`` is
    the hash of the cookie of the only browser that may finish this consent; None lets any browser finish it.
    ``invitation_id`` is the invitation that the consent began with, and ``retry_path`` the path of its page,
    which contains the invitation's secret.
    """

    user_id: int
    provider: str
    scopes: tuple[str, ...]
    offline: bool
    redirect_uri: str
    ours: bool
    return_url: str | None
    asked_by: str
    within: int | None
    verifier: str = field(repr=False)
    key_id: int | None = None
    expected_email: str | None = None
    browser_digest: str | None = None
    invitation_id: str | None = None
    retry_path: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PendingRevocation:
    """A grant of a removed connection, to be revoked unless another connection uses its account."""

    user_id: int
    provider: str
    account_id: str | None
    email: str | None
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PendingExchange:
    """An authorization code, and the consent that it belongs to."""

    authorization: PendingConsent
    code: str = field(repr=False)


class OAuthStates:
    """Pending consents, exchanges and revocations, each under a random name."""

    def __init__(self, redis: Redis, keyring: Keyring) -> None:
        self._sealed = OneTimeSecrets(redis, keyring)

    def begin(self, authorization: PendingConsent) -> str:
        """Store a consent for ten minutes; returns its ``state``."""
        state = secrets.token_urlsafe(STATE_BYTES)
        self._sealed.put(_state_key(state), authorization, STATE_SECONDS)
        return state

    def take(self, state: str) -> PendingConsent | None:
        """Take the consent of a state, once; None when it is unknown, expired or was taken before."""
        return self._sealed.take(_state_key(state), PendingConsent)

    def put_exchange(self, redemption: PendingExchange) -> str:
        """Store a code for a worker; returns its id."""
        name = secrets.token_hex(16)
        self._sealed.put(_code_key(name), redemption, CODE_SECONDS)
        return name

    def take_exchange(self, name: str) -> PendingExchange | None:
        """Take a code, once; None when it is missing or expired."""
        return self._sealed.take(_code_key(name), PendingExchange)

    def put_revocation(self, revocation: PendingRevocation) -> str:
        """Store a grant that a worker is to revoke; returns its id."""
        name = secrets.token_hex(16)
        self._sealed.put(_revocation_key(name), revocation, REVOCATION_SECONDS)
        return name

    def take_revocation(self, name: str) -> PendingRevocation | None:
        """Take a grant that is to be revoked, once; None when it is missing or expired."""
        return self._sealed.take(_revocation_key(name), PendingRevocation)


def _state_key(state: str) -> str:
    # Hashed, so that read access to Redis does not reveal a usable state.
    return f"oauth-state:{hashlib.sha256(state.encode()).hexdigest()}"


def _code_key(name: str) -> str:
    return f"oauth-code:{name}"


def _revocation_key(name: str) -> str:
    return f"oauth-revocation:{name}"

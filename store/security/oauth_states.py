"""Consents under way, in Redis by their ``state``, and the codes and grants that workers receive.

Each is sealed by the keyring, because it holds a PKCE verifier, a code or a token. Each can be taken once.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

from redis import Redis

from store.security.crypto import Keyring
from store.security.one_time_secrets import OneTimeSecrets

# https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2 gives a code ten minutes; so long may consent take.
STATE_SECONDS = 600
# From the web tier to a worker, while the request waits for the answer.
CODE_SECONDS = 60
REVOCATION_SECONDS = 60

STATE_BYTES = 32


@dataclass(frozen=True, slots=True)
class PendingConsent:
    """The consent that a person was asked for.

    ``user_id`` is the internal id, which a rename does not change and which no later user gets.
    ``redirect_uri`` is where the provider sends the code: to this service when ``ours``, and then on to
    ``return_url`` if there is one. ``asked_by`` is the visible part of the API key that asked, ``key_id`` its
    id (None for an administrator), ``within`` the organization that the key is bound to.

    ``expected_email`` is the account that must be connected, if the caller named one. ``browser_digest`` is
    the hash of the cookie of the only browser that may finish this consent; None lets any browser finish it.
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
    """A code, and the authorization that it answers."""

    authorization: PendingConsent
    code: str = field(repr=False)


class OAuthStates:
    """What waits, each under a name that nobody guesses."""

    def __init__(self, redis: Redis, keyring: Keyring) -> None:
        self._sealed = OneTimeSecrets(redis, keyring)

    def begin(self, authorization: PendingConsent) -> str:
        """Remember what is asked for, ten minutes long; returns its ``state``."""
        state = secrets.token_urlsafe(STATE_BYTES)
        self._sealed.put(_state_key(state), authorization, STATE_SECONDS)
        return state

    def take(self, state: str) -> PendingConsent | None:
        """What a state stands for, once; None when it is unknown, has ended or was taken before."""
        return self._sealed.take(_state_key(state), PendingConsent)

    def hand_over(self, redemption: PendingExchange) -> str:
        """Leave a code for a worker; returns the id by which it is found."""
        name = secrets.token_hex(16)
        self._sealed.put(_code_key(name), redemption, CODE_SECONDS)
        return name

    def receive(self, name: str) -> PendingExchange | None:
        """A code that was left, once."""
        return self._sealed.take(_code_key(name), PendingExchange)

    def hand_over_revocation(self, revocation: PendingRevocation) -> str:
        """Leave a grant to revoke for a worker; returns the id by which it is found."""
        name = secrets.token_hex(16)
        self._sealed.put(_revocation_key(name), revocation, REVOCATION_SECONDS)
        return name

    def receive_revocation(self, name: str) -> PendingRevocation | None:
        """A grant that was left to be revoked, once."""
        return self._sealed.take(_revocation_key(name), PendingRevocation)


def _state_key(state: str) -> str:
    # Whoever reads Redis learns no state that could be presented.
    return f"oauth-state:{hashlib.sha256(state.encode()).hexdigest()}"


def _code_key(name: str) -> str:
    return f"oauth-code:{name}"


def _revocation_key(name: str) -> str:
    return f"oauth-revocation:{name}"

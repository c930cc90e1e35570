"""Access tokens of organization grants, shared by all workers until shortly before they expire."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field

from redis import Redis

from store.security.crypto import Keyring, Undecipherable

log = logging.getLogger(__name__)

# Seconds before its end from which a token is not used: it could expire on the way to the provider.
MARGIN = 60

# Seconds for which the provider is not asked again about an account that it has refused.
REFUSED_SECONDS = 60
# The beginning of a value that says why the account was refused. Others are encrypted tokens.
REFUSED = b"refused:"

# Seconds for which the names of a grant's keys are kept: longer than tokens of either provider live.
NAMES_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class TokenOwner:
    """The owner of a token: a grant, and the account that it impersonates.

    ``member`` is the address of a member. Without it, this is the grant's own token: that of the account
    which reads free/busy (Google), or of the application (Microsoft).
    """

    grant: str
    member: str | None = None

    @property
    def name(self) -> str:
        """The name in keys of Redis, which contain no addresses."""
        digest = hashlib.sha256((self.member or "").lower().encode()).hexdigest()
        return f"{self.grant}:{digest[:32]}"


@dataclass(frozen=True, slots=True)
class CachedToken:
    """The cache entry of an owner: a token, or why the provider refused the account a moment ago."""

    token: str | None = field(default=None, repr=False)
    refused: str | None = None


class GrantTokens:
    """Tokens in Redis, encrypted and bound to their grant and account."""

    def __init__(self, redis: Redis, keyring: Keyring) -> None:
        self._redis = redis
        self._keyring = keyring

    def load(self, owner: TokenOwner) -> CachedToken:
        """The cache entry of an owner."""
        value = self._redis.get(_key(owner))
        if not isinstance(value, bytes):
            return CachedToken()
        if value.startswith(REFUSED):
            return CachedToken(refused=value.removeprefix(REFUSED).decode())
        try:
            return CachedToken(self._keyring.decrypt(value, _place(owner)))
        except Undecipherable:
            # Expected after a rotation of the key, once for each mailbox: another token is requested.
            log.info("a grant's cached token is dropped: its encryption key is gone")
            return CachedToken()

    def save(self, owner: TokenOwner, token: str, seconds: float) -> None:
        """Cache a token that expires in ``seconds``; one that expires soon is not cached."""
        lifetime = int(seconds) - MARGIN
        if lifetime > 0:
            self._store(owner, self._keyring.encrypt(token, _place(owner)), lifetime)

    def refuse(self, owner: TokenOwner, because: str) -> None:
        """Record that the provider has refused the account."""
        self._store(owner, REFUSED + because.encode(), REFUSED_SECONDS)

    def forget(self, grant: str) -> None:
        """Drop everything that is cached for a grant, which was replaced, removed or refused."""
        names = self._redis.smembers(_names(grant))
        self._redis.delete(_names(grant), *names)

    def _store(self, owner: TokenOwner, value: bytes, seconds: int) -> None:
        with self._redis.pipeline() as pipe:
            pipe.set(_key(owner), value, ex=seconds)
            pipe.sadd(_names(owner.grant), _key(owner))
            pipe.expire(_names(owner.grant), NAMES_SECONDS)
            pipe.execute()


def _key(owner: TokenOwner) -> str:
    return f"grant-token:{owner.name}"


def _names(grant: str) -> str:
    return f"grant-tokens:{grant}"


def _place(owner: TokenOwner) -> str:
    return f"grant_tokens/{owner.grant}/{(owner.member or '').lower()}"

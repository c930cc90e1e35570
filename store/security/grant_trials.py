"""Grants of organizations that a worker tries before they are saved."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from redis import Redis

from store.security.crypto import Keyring
from store.security.one_time_secrets import OneTimeSecrets

# From the web tier to a worker, while a request waits for the result.
PROPOSAL_SECONDS = 60


@dataclass(frozen=True, slots=True)
class GrantTrial:
    """A grant that an administrator entered; the fields are those of ``organization_grants.NewGrant``."""

    provider: str
    subject: str | None
    tenant: str | None
    client_id: str | None
    secret: str | None = field(repr=False)
    scope: tuple[str, ...]


class GrantTrials:
    """Grants to try, encrypted, each under a random name. Each can be taken once."""

    def __init__(self, redis: Redis, keyring: Keyring) -> None:
        self._sealed = OneTimeSecrets(redis, keyring)

    def put(self, proposal: GrantTrial) -> str:
        """Store a grant for a worker; returns its id."""
        name = secrets.token_hex(16)
        self._sealed.put(_key(name), proposal, PROPOSAL_SECONDS)
        return name

    def take(self, name: str) -> GrantTrial | None:
        """Take a grant, once; None when it is missing or expired."""
        return self._sealed.take(_key(name), GrantTrial)


def _key(name: str) -> str:
    return f"grant:{name}"

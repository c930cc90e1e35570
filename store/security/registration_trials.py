"""Client registrations that a worker tries before they are saved."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from redis import Redis

from store.security.crypto import Keyring
from store.security.one_time_secrets import OneTimeSecrets

# From the web tier to a worker, while a request waits for the result.
PROPOSAL_SECONDS = 60


@dataclass(frozen=True, slots=True)
class RegistrationTrial:
    """A registration that an administrator entered. Consents will be redirected to ``redirect_uri``."""

    provider: str
    client_id: str
    secret: str = field(repr=False)
    tenant: str | None
    redirect_uri: str


class RegistrationTrials:
    """Registrations to try, encrypted, each under a random name. Each can be taken once."""

    def __init__(self, redis: Redis, keyring: Keyring) -> None:
        self._sealed = OneTimeSecrets(redis, keyring)

    def put(self, proposal: RegistrationTrial) -> str:
        """Store a registration for a worker; returns its id."""
        name = secrets.token_hex(16)
        self._sealed.put(_key(name), proposal, PROPOSAL_SECONDS)
        return name

    def take(self, name: str) -> RegistrationTrial | None:
        """Take a registration, once; None when it is missing or expired."""
        return self._sealed.take(_key(name), RegistrationTrial)


def _key(name: str) -> str:
    return f"registration:{name}"

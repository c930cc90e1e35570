"""Registrations on their way to a worker that tries them before they are saved."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from redis import Redis

from store.security.crypto import Keyring
from store.security.one_time_secrets import OneTimeSecrets

# From the web tier to a worker, where somebody waits for the answer.
PROPOSAL_SECONDS = 60


@dataclass(frozen=True, slots=True)
class RegistrationTrial:
    """A registration that somebody has entered. ``redirect_uri`` is where consents will come back to."""

    provider: str
    client_id: str
    secret: str = field(repr=False)
    tenant: str | None
    redirect_uri: str


class RegistrationTrials:
    """What is to be tried, each under a name that nobody guesses, sealed and there once."""

    def __init__(self, redis: Redis, keyring: Keyring) -> None:
        self._sealed = OneTimeSecrets(redis, keyring)

    def hand_over(self, proposal: RegistrationTrial) -> str:
        """Leave a registration for a worker; returns the id by which it is found."""
        name = secrets.token_hex(16)
        self._sealed.put(_key(name), proposal, PROPOSAL_SECONDS)
        return name

    def receive(self, name: str) -> RegistrationTrial | None:
        """A registration that was left, once."""
        return self._sealed.take(_key(name), RegistrationTrial)


def _key(name: str) -> str:
    return f"registration:{name}"

"""The secret parts of jobs: the web tier stores them for a worker, and the job carries only their name."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from redis import Redis

from store.security.crypto import Keyring
from store.security.one_time_secrets import OneTimeSecrets

# Longer than the longest ALMANAC_FANOUT_DEADLINE, for which the request waits for the worker.
JOB_SECONDS = 130

Value = TypeVar("Value")


class JobSecrets(Generic[Value]):
    """Dataclasses of one ``kind``, encrypted, each under a random name. Each can be taken once.

    ``prefix`` begins their keys in Redis.
    """

    def __init__(self, redis: Redis, keyring: Keyring, prefix: str, kind: type[Value]) -> None:
        self._secrets = OneTimeSecrets(redis, keyring)
        self._prefix = prefix
        self._kind = kind

    def put(self, value: Value) -> str:
        """Store a value for a worker; returns its name."""
        name = secrets.token_hex(16)
        self._secrets.put(self._key(name), value, JOB_SECONDS)
        return name

    def take(self, name: str) -> Value | None:
        """Take a value, once; None when it is missing or expired."""
        return self._secrets.take(self._key(name), self._kind)

    def _key(self, name: str) -> str:
        return f"{self._prefix}:{name}"


@dataclass(frozen=True, slots=True)
class GrantTrial:
    """A grant of an organization that a worker tries before it is saved.

    The fields are those of ``organization_grants.NewGrant``.
    """

    provider: str
    subject: str | None
    tenant: str | None
    client_id: str | None
    secret: str | None = field(repr=False)
    scope: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegistrationTrial:
    """A client registration that a worker tries before it is saved.

    Consents will be redirected to ``redirect_uri``.
    """

    provider: str
    client_id: str
    secret: str = field(repr=False)
    tenant: str | None
    redirect_uri: str

"""Short-lived encrypted values in Redis that can be taken once: pending consents, and the secrets of jobs.

The web tier stores the secret parts of a job for a worker, and the job carries only their name.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec
from redis import Redis

from store.security.crypto import Keyring, Undecipherable

log = logging.getLogger(__name__)

# Longer than the longest ALMANAC_FANOUT_DEADLINE, for which the request waits for the worker.
JOB_SECONDS = 130

# A consent may take as long as the lifetime of a code: https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2
STATE_SECONDS = 600

NAME_BYTES = 32

Value = TypeVar("Value")


class OneTimeSecrets(Generic[Value]):
    """Dataclasses of one ``kind``, encrypted, each under a random name. Each can be taken once.

    ``prefix`` begins their keys in Redis. They are kept for ``seconds``. ``hashed``: the keys have hashes of
    the names, so that read access to Redis does not reveal a name.
    """

    def __init__(
        self,
        redis: Redis,
        keyring: Keyring,
        prefix: str,
        kind: type[Value],
        seconds: int = JOB_SECONDS,
        *,
        hashed: bool = False,
    ) -> None:
        self._redis = redis
        self._keyring = keyring
        self._prefix = prefix
        self._kind = kind
        self._seconds = seconds
        self._hashed = hashed

    def put(self, value: Value, seconds: int | None = None) -> str:
        """Store a value, for ``seconds`` if they are given; returns its name."""
        name = secrets.token_urlsafe(NAME_BYTES)
        key = self._key(name)
        text = msgspec.json.encode(value).decode()
        self._redis.set(key, self._keyring.encrypt(text, key), ex=seconds or self._seconds)
        return name

    def take(self, name: str) -> Value | None:
        """Take a value, once; None when it is missing, or its encryption key is no longer on the ring."""
        key = self._key(name)
        ciphertext = self._redis.getdel(key)
        if not isinstance(ciphertext, bytes):
            return None
        try:
            return msgspec.json.decode(self._keyring.decrypt(ciphertext, key), type=self._kind)
        except Undecipherable:
            log.warning("one-time secret %s dropped: its encryption key is gone", self._prefix)
        except msgspec.DecodeError:
            log.warning("one-time secret %s dropped: another version stored it", self._prefix)
        return None

    def _key(self, name: str) -> str:
        return f"{self._prefix}:{hashlib.sha256(name.encode()).hexdigest() if self._hashed else name}"


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


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A sign-in to the dashboard for which a browser was sent to the identity provider.

    ``after`` is the page to open then. ``code`` is that of the provider, once the browser has come back.
    """

    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect_uri: str
    after: str
    code: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class EnteredForm:
    """A form that a person has filled in, with a value for each field.

    ``main_calendars`` are the main calendars of the accounts that the user has connected there, by their ids.
    ``reconnects`` is the id of the account that is connected again.
    """

    provider: str
    values: dict[str, str] = field(repr=False)
    main_calendars: dict[str, str] = field(default_factory=dict)
    reconnects: str | None = None


@dataclass(frozen=True, slots=True)
class AccountByForm:
    """The account that a form led to, with its credentials; the main calendar as far as it is known."""

    account_id: str
    email: str | None
    credentials: str = field(repr=False)
    scope: tuple[str, ...]
    main_calendar_id: str | None = None
    mailbox: str | None = None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class PendingConsent:
    """A consent that a person was asked for.

    ``user_id`` is the internal id, which a rename does not change and which is never reused.
    ``redirect_uri`` is where the provider sends the code: to this service when ``ours``, and then on to
    ``return_url`` if there is one. ``asked_by`` names in the audit log who requested it: the API key
    ``key_id``, or the person ``administrator_id`` with the ``security_stamp`` of that moment. ``within`` is
    the organization that the key is bound to.

    ``expected_email`` is the account that must be connected, if the client named one. ``browser_digest`` is
    the hash of the cookie of the only browser that may finish this consent; None lets any browser finish it.
    ``invitation_id`` is the invitation that the consent began with, and ``retry_path`` the path of its page,
    which contains the invitation's secret. ``expires_at`` is the POSIX time until which it can be finished.
    ``account`` names the connection that is replaced, as ``store.sql.queries.connections:ReplacedConnection``
    says.
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
    administrator_id: int | None = None
    security_stamp: str | None = None
    expires_at: float | None = None
    account: str = "default"

    @property
    def seconds_left(self) -> int:
        """The time in which it can still be finished."""
        return STATE_SECONDS if self.expires_at is None else int(self.expires_at - time.time())


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

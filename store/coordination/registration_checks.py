"""What each provider last said about the OAuth client of this installation, in Redis.

Workers note it when they use the client, and pages when an administrator has it checked. Without a note, for
example after Redis was emptied, nothing is known.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import cast

import msgspec
from redis import Redis
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

KEY = "registration-checks"

# Seconds for which a process does not repeat the same note.
REPEAT_SECONDS = 60.0


class RegistrationCheck(msgspec.Struct, frozen=True):
    """Whether a provider accepted the client with this id, when it last said so.

    ``at`` is in seconds since the epoch. ``sentence`` and ``advice`` are for the operator; both may be empty.
    """

    client_id: str
    accepted: bool
    at: float
    sentence: str = ""
    advice: str = ""


class RegistrationChecks:
    """The last check of each provider's registration. Thread-safe: a lost race repeats a note."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._noted: dict[str, tuple[str, bool, float]] = {}

    def note(
        self, provider: str, client_id: str, *, accepted: bool, sentence: str = "", advice: str = ""
    ) -> None:
        """Store that the provider accepted or refused a client. A failure of Redis is logged."""
        moment = time.monotonic()
        noted = self._noted.get(provider)
        # A sentence is from a check that an administrator waits for.
        repeats = noted is not None and noted[:2] == (client_id, accepted) and not sentence
        if repeats and noted is not None and moment - noted[2] < REPEAT_SECONDS:
            return
        check = RegistrationCheck(client_id, accepted, time.time(), sentence, advice)
        try:
            self._redis.hset(KEY, provider, msgspec.json.encode(check))
        except RedisError as error:
            log.warning("check of a registration not stored: %s", type(error).__name__)
            return
        self._noted[provider] = (client_id, accepted, moment)

    def forget(self, provider: str) -> None:
        """Delete the note about a registration that was changed or removed."""
        self._noted.pop(provider, None)
        self._redis.hdel(KEY, provider)

    def read(self, clients: Mapping[str, str]) -> dict[str, RegistrationCheck]:
        """The last check of each of these clients, by provider; absent where nothing is known.

        ``clients`` has the ids of the clients in force: a note about another client is not reported.
        """
        if not clients:
            return {}
        try:
            kept = self._redis.hmget(KEY, list(clients))
        except RedisError as error:
            log.warning("checks of registrations not read: %s", type(error).__name__)
            return {}
        found = _decoded(list(clients), cast(Collection[bytes | None], kept))
        return {provider: each for provider, each in found.items() if each.client_id == clients[provider]}


def _decoded(providers: Collection[str], kept: Collection[bytes | None]) -> dict[str, RegistrationCheck]:
    found = {}
    for provider, note in zip(providers, kept, strict=True):
        # Another version may have stored it in another form.
        with suppress(msgspec.DecodeError):
            if note is not None:
                found[provider] = msgspec.json.decode(note, type=RegistrationCheck)
    return found

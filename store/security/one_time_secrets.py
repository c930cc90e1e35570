"""Short-lived encrypted values in Redis that can be taken once."""

from __future__ import annotations

import logging
from typing import Any, TypeVar

import msgspec
from redis import Redis

from store.security.crypto import Keyring, Undecipherable

log = logging.getLogger(__name__)

Value = TypeVar("Value")


class OneTimeSecrets:
    """Dataclasses that hold secrets, each under a key of Redis and bound to it."""

    def __init__(self, redis: Redis, keyring: Keyring) -> None:
        self._redis = redis
        self._keyring = keyring

    def put(self, key: str, value: Any, seconds: int) -> None:
        """Store a dataclass for ``seconds``."""
        text = msgspec.json.encode(value).decode()
        self._redis.set(key, self._keyring.encrypt(text, key), ex=seconds)

    def take(self, key: str, kind: type[Value]) -> Value | None:
        """Take a value, once; None when it is missing, or its encryption key is no longer on the ring."""
        ciphertext = self._redis.getdel(key)
        if not isinstance(ciphertext, bytes):
            return None
        try:
            return msgspec.json.decode(self._keyring.decrypt(ciphertext, key), type=kind)
        except Undecipherable:
            log.warning("one-time secret %s dropped: its encryption key is gone", key.partition(":")[0])
            return None
        except msgspec.DecodeError:
            log.warning("one-time secret %s dropped: another version stored it", key.partition(":")[0])
            return None

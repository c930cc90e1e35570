"""The form of an API key: a prefix that may be shown, a secret part that is kept only as a hash."""

from __future__ import annotations

import hashlib
import secrets

SECRET_BYTES = 24
VISIBLE = 8


def new_key(prefix: str) -> str:
    """A key with 192 random bits behind ``prefix``."""
    return prefix + secrets.token_urlsafe(SECRET_BYTES)


def digest(key: str) -> str:
    """What is stored of a key. One SHA-256 is enough: a key is random, there is nothing to guess from."""
    return hashlib.sha256(key.encode()).hexdigest()


def visible_part(key: str, prefix: str) -> str:
    """The start of a key, by which people tell their keys apart."""
    return key[: len(prefix) + VISIBLE]

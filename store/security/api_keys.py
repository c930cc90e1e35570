"""The format of API keys: a visible prefix and a secret part that is stored only as a hash."""

from __future__ import annotations

import hashlib
import secrets

SECRET_BYTES = 24
VISIBLE = 8


def new_key(prefix: str) -> str:
    """A new key: ``prefix`` followed by 192 random bits."""
    return prefix + secrets.token_urlsafe(SECRET_BYTES)


def digest(key: str) -> str:
    """The hash under which a key is stored. One SHA-256 is enough, because keys are random."""
    return hashlib.sha256(key.encode()).hexdigest()


def visible_part(key: str, prefix: str) -> str:
    """The start of a key, by which people distinguish their keys."""
    return key[: len(prefix) + VISIBLE]

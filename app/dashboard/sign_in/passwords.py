"""Passwords of administrators: hashed so that guessing costs memory, and never fast to try."""

from __future__ import annotations

import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

SHORTEST = 12
LONGEST = 256

# https://www.rfc-editor.org/rfc/rfc9106#section-4, the second recommended choice: 64 MiB.
_hasher = PasswordHasher()
# So many at once in a process, whoever asks: otherwise sign-ins would take all its memory.
_room = threading.BoundedSemaphore(2)


def hashed(password: str) -> str:
    """The hash to be stored, with its parameters."""
    with _room:
        return _hasher.hash(password)


def matches(password: str, stored: str | None) -> bool:
    """Whether a password is the one behind a hash; None is nobody's, which nothing matches."""
    with _room:
        try:
            _hasher.verify(stored or _nobodys(), password)
        except (VerificationError, InvalidHashError):
            return False
    return stored is not None


def outdated(stored: str) -> bool:
    """Whether a hash was made with weaker parameters than today's."""
    return _hasher.check_needs_rehash(stored)


def fault(password: str) -> str | None:
    """Why a password will not do."""
    if len(password) < SHORTEST:
        return f"must have at least {SHORTEST} characters"
    if len(password) > LONGEST:
        return f"must have at most {LONGEST} characters"
    if len(set(password)) < 5:
        return "must have at least 5 different characters"
    return None


@cache
def _nobodys() -> str:
    """What is checked for a name that nobody has: to refuse it takes as long."""
    return _hasher.hash("nobody's password")

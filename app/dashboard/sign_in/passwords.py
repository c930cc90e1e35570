"""Passwords of administrators, hashed with Argon2 so that guessing costs time and memory."""

from __future__ import annotations

import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.dashboard import forms
from app.dashboard.sign_in import login_throttle, sessions
from app.dashboard.sign_in.login_throttle import FailedCheck
from app.services import services
from store.sql.queries import administrators

SHORTEST = 12
LONGEST = 256

# https://www.rfc-editor.org/rfc/rfc9106#section-4, the second recommended choice: 64 MiB.
_hasher = PasswordHasher()
# The most hashes computed at once in a process: more would take too much memory.
_hash_slots = threading.BoundedSemaphore(2)


def hashed(password: str) -> str:
    """The hash to store, with its parameters."""
    with _hash_slots:
        return _hasher.hash(password)


def matches(password: str, stored: str | None) -> bool:
    """Whether a password matches a stored hash. For None or "", False, as slowly as for a wrong password."""
    with _hash_slots:
        try:
            _hasher.verify(stored or _dummy_hash(), password)
        except (VerificationError, InvalidHashError):
            return False
    return bool(stored)


def outdated(stored: str) -> bool:
    """Whether a hash was made with weaker parameters than today's."""
    return _hasher.check_needs_rehash(stored)


def fault(password: str) -> str | None:
    """Why a new password is refused; None if it is acceptable."""
    if len(password) < SHORTEST:
        return f"must have at least {SHORTEST} characters"
    if len(password) > LONGEST:
        return f"must have at most {LONGEST} characters"
    if len(set(password)) < 5:
        return "must have at least 5 different characters"
    return None


@cache
def _dummy_hash() -> str:
    """A hash to verify against when the name is unknown, so that the refusal takes as long."""
    return _hasher.hash("no administrator's password")


def check_current(
    form: forms.Form, failure: FailedCheck = FailedCheck.PASSWORD_CHECK
) -> login_throttle.MustWait | None:
    """Check the field ``current`` of a valid form; a wrong password is an error in the form.

    Returns the refusal when too many attempts have failed: wrong guesses count as failed sign-ins.
    """
    name = sessions.current().name
    try:
        with login_throttle.attempt(name):
            if matches(form.data["current"], _hash_of(name)):
                login_throttle.forget(name)
            else:
                login_throttle.note_failure(name, failure)
                form.refuse("current", "is not your password")
    except login_throttle.MustWait as refused:
        form.refuse("", str(refused))
        return refused
    return None


def _hash_of(name: str) -> str | None:
    with services().stores.database.reading() as session:
        found = administrators.find(session, name)
    return found.password_hash if found is not None else None

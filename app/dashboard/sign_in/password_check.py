"""Asks a signed-in person for the password again: a session that was left open or stolen is not enough."""

from __future__ import annotations

from app.dashboard import forms
from app.dashboard.sign_in import failures, login_throttle, passwords, sessions
from app.dashboard.sign_in.failures import Failure
from app.services import services
from store.sql.queries import administrators


def check(form: forms.Form, failure: Failure = Failure.PASSWORD_CHECK) -> login_throttle.MustWait | None:
    """Check the field ``current`` of a valid form; a wrong password is an error in the form.

    Returns the refusal when too many attempts have failed: wrong guesses count as failed sign-ins.
    """
    name = sessions.current().name
    try:
        with login_throttle.attempt(name):
            if passwords.matches(form.data["current"], _password_hash(name)):
                login_throttle.forget(name)
            else:
                failures.note(name, failure)
                form.refuse("current", "is not your password")
    except login_throttle.MustWait as refused:
        form.refuse("", str(refused))
        return refused
    return None


def _password_hash(name: str) -> str | None:
    with services().stores.database.reading() as session:
        found = administrators.find(session, name)
    return found.password_hash if found is not None else None

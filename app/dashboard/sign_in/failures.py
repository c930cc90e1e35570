"""Failed checks of passwords and codes: counted by the login throttle, logged, and in the audit log."""

from __future__ import annotations

from enum import Enum

from flask import request

from app.dashboard.sign_in import login_throttle, sessions
from app.http.authentication import known_caller
from app.services import services
from store.sql.queries import audit


class Failure(Enum):
    """The failed check: its words in the log of the service, and its action in the audit log."""

    SIGN_IN = "sign-in", "signInFailed"
    SECOND_FACTOR = "second factor", "secondFactorFailed"
    PASSWORD_CHANGE = "password change", "passwordChangeFailed"
    PASSWORD_CHECK = "password check", "passwordCheckFailed"


def note(name: str, failure: Failure = Failure.SIGN_IN, *, known: bool = True) -> None:
    """Count, log and record a failed attempt; ``known`` is whether a person has that name.

    Unknown names are not recorded: users sometimes type their password into the field of the name.
    """
    what, action = failure.value
    login_throttle.note(name, known=known, what=what)
    kind = "known" if known else "unknown"
    if login_throttle.take(login_throttle.RECORDED, kind):
        who = name if known else "an unknown name"
        _record(action, f"{who} from {request.remote_addr}")
    elif login_throttle.take(login_throttle.CUT_OFF, kind):
        most = login_throttle.RECORDED.amount
        _record(
            action, f"more than {most} in an hour, of {kind} names: the log of the service has the others"
        )


def _record(action: str, subject: str) -> None:
    actor = audit.STRANGER if known_caller() is None else sessions.actor()
    with services().stores.database.writing() as session:
        audit.record(session, actor=actor, action=action, subject=subject)

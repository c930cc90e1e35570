"""The second step of a sign-in: a code of the authenticator app, or a recovery code."""

from __future__ import annotations

import logging
import re

from flask import flash, redirect, request
from flask.typing import ResponseReturnValue

from app.dashboard import forms
from app.dashboard.blueprint import blp, failed, page
from app.dashboard.sign_in import entering, failures, login_throttle, sessions
from app.dashboard.sign_in.failures import Failure
from app.dashboard.sign_in.pages import with_retry_after
from app.http.route_facts import route_facts
from app.schemas.fields import Text
from app.services import services
from store.security.crypto import Undecipherable
from store.sql.models import Administrator
from store.sql.queries import second_factors

log = logging.getLogger(__name__)

WRONG = "This code is wrong or was used before. Wait for the next one, or use a recovery code."
UNREADABLE = (
    "Codes cannot be checked, because the encryption key of their secret is missing. Use a recovery code, or "
    "ask an administrator to reset your second factor."
)
TOO_LATE = "Please sign in again: the code has to follow the password within five minutes."

_DIGITS = re.compile(r"[0-9]{6}")


class CodeForm(forms.Body):
    """Six digits, or a recovery code."""

    code = Text(longest=64, required=True)


@blp.route("/sign-in/code", methods=["GET", "POST"])
@route_facts(needs_sign_in=False)
def sign_in_code() -> ResponseReturnValue:
    """Finish a sign-in with a code."""
    if sessions.administrator() is not None:
        return redirect(entering.next_url())
    administrator = entering.pending_administrator()
    if administrator is None:
        return failed(TOO_LATE, "sign_in", after=request.args.get("after"))
    if request.method == "GET":
        return page("sign_in_code.html", form=forms.blank())
    form = forms.read(CodeForm)
    if not form:
        return page("sign_in_code.html", 400, form=form)
    # Never shown again, as a recovery code may be mistyped by one character.
    form.values.clear()
    try:
        with login_throttle.attempt(administrator.name):
            action = _check(administrator, form.data["code"])
    except login_throttle.MustWait as refused:
        form.refuse("", str(refused))
        return with_retry_after(page("sign_in_code.html", 429, form=form), refused)
    except Undecipherable:
        log.error("second factor of administrator %s is undecipherable: its key is gone", administrator.name)
        form.refuse("", UNREADABLE)
        return page("sign_in_code.html", 503, form=form)
    if action is None:
        form.refuse("", WRONG)
        return page("sign_in_code.html", 401, form=form)
    response = entering.complete_sign_in(administrator, redirect(entering.next_url(), 303), action)
    if action != "signIn":
        _flash_codes_left(administrator)
    return response


def _check(administrator: Administrator, code: str) -> str | None:
    """The action for the audit log if the code is right, which uses it up."""
    text = code.replace(" ", "")
    stores = services().stores
    with stores.database.writing() as session:
        if _DIGITS.fullmatch(text):
            action = "signIn"
            right = second_factors.use_code(session, stores.keyring, administrator, text)
        else:
            action = "signInByRecoveryCode"
            right = second_factors.use_recovery_code(session, administrator.id, text)
    if not right:
        failures.note(administrator.name, Failure.SECOND_FACTOR)
        return None
    login_throttle.forget(administrator.name)
    return action


def _flash_codes_left(administrator: Administrator) -> None:
    with services().stores.database.reading() as session:
        left = second_factors.recovery_codes_left(session, administrator.id)
    flash(f"You have used a recovery code; {left} are left. Your account makes new ones.", "warn")

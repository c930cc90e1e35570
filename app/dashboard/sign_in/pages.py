"""Signing in and out: the password, the second step with a code, and registering by an invitation link."""

from __future__ import annotations

import logging
import re
import time
from urllib.parse import unquote

from flask import Response, flash, make_response, redirect, request, session, url_for
from flask.typing import ResponseReturnValue
from marshmallow import fields
from sqlalchemy.exc import IntegrityError
from werkzeug.wrappers import Response as BaseResponse

from app.dashboard import forms
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.sign_in import login_throttle, passwords, sessions
from app.dashboard.sign_in.login_throttle import FailedCheck
from app.http.routes import route_facts
from app.schemas.fields import CONTROL, Text
from app.services import services
from store.security.crypto import Undecipherable
from store.sql.models import Administrator, Role
from store.sql.queries import administrators, audit, second_factors

log = logging.getLogger(__name__)

WRONG = "Name or password is wrong."
NO_PASSWORDS = "Nobody registers with a password here"
BY_DIRECTORY = "Sign in by your organization's account: its groups decide about your role."


class SignInForm(forms.Body):
    """Name and password; any text may be a password."""

    name = Text(longest=128, required=True)
    password = fields.String(required=True)


@blp.route("/sign-in", methods=["GET", "POST"])
@route_facts(needs_sign_in=False)
def sign_in() -> ResponseReturnValue:
    """Sign in with name and password; people with a second factor are asked for a code next."""
    if sessions.administrator() is not None:
        return redirect(next_url())
    with services().stores.database.reading() as session:
        fresh = administrators.count(session) == 0
    settings = services().settings
    openid, passwords_on = bool(settings.oidc_issuer), settings.password_sign_in
    offered = {"fresh": fresh and passwords_on, "openid": openid, "passwords": passwords_on}
    if request.method != "POST" or not passwords_on:
        return page("sign_in.html", form=forms.blank(), **offered)
    form = forms.read(SignInForm)
    if not form:
        return page("sign_in.html", 400, form=form, **offered)
    try:
        with login_throttle.attempt(form.data["name"]):
            found = _check_password(**form.data)
    except login_throttle.MustWait as refused:
        form.refuse("", str(refused))
        return with_retry_after(page("sign_in.html", 429, form=form, **offered), refused)
    if found is None:
        form.refuse("", WRONG)
        return page("sign_in.html", 401, form=form, **offered)
    if found.sealed_totp_secret is not None:
        remember_password_step(found)
        return redirect(url_for("dashboard.sign_in_code", after=request.args.get("after")), 303)
    return complete_sign_in(found, redirect(next_url(), 303))


@blp.post("/sign-out")
@route_facts(role=Role.VIEWER)
def sign_out() -> ResponseReturnValue:
    """End this browser's session."""
    sessions.end()
    return redirect(url_for("dashboard.sign_in"), 303)


def with_retry_after(response: Response, refused: login_throttle.MustWait) -> Response:
    """Add the ``Retry-After`` header."""
    response.headers["Retry-After"] = str(refused.seconds)
    return response


def _check_password(name: str, password: str) -> Administrator | None:
    with services().stores.database.reading() as session:
        found = administrators.find(session, name)
    # Outside the transaction, because hashing is slow.
    right = passwords.matches(password, found.password_hash if found else None)
    if found is None or not right:
        login_throttle.note_failure(name, known=found is not None)
        return None
    if found.sealed_totp_secret is None:
        # With a second factor, the failures stay counted until the code is right: otherwise a thief of the
        # password could reset them after each wrong code.
        login_throttle.forget(name)
    if passwords.outdated(found.password_hash):
        hashed = passwords.hashed(password)
        with services().stores.database.writing() as session:
            administrators.rehash_password(session, found.id, found.password_hash, hashed)
        found.password_hash = hashed
    return found


# The code of the second factor has to follow the password within this time.
CODE_SECONDS = 300

_PENDING = "second factor"
_DASHBOARD_PATH = re.compile(r"/dashboard(/[^?#\\]*)?(\?[^#]*)?")


def complete_sign_in(
    administrator: Administrator, response: BaseResponse, action: str = "signIn"
) -> Response:
    """Sign this browser in, as a known one, and answer with ``response``."""
    with services().stores.database.writing() as writing:
        audit.record(writing, actor=actor_of(administrator), action=action, subject=request.remote_addr or "")
    sessions.begin(administrator)
    return login_throttle.know_browser(administrator.name, make_response(response))


def remember_password_step(administrator: Administrator) -> None:
    """Remember in the browser's signed cookie that the password of this person was right."""
    session.clear()
    session[_PENDING] = [administrator.id, int(time.time()), administrator.security_stamp]


def pending_administrator() -> Administrator | None:
    """The person whose password was right a moment ago; None if their security stamp was replaced."""
    pending = session.get(_PENDING)
    if not pending:
        return None
    administrator_id, at, stamp = pending
    if not 0 <= time.time() - at <= CODE_SECONDS:
        return None
    with services().stores.database.reading() as reading:
        administrator = administrators.load(reading, administrator_id)
    return None if administrator is None or administrator.security_stamp != stamp else administrator


def actor_of(administrator: Administrator) -> str:
    """A person as the audit log names the actor."""
    return f"{administrator.role} {administrator.name}"


def next_url() -> str:
    """The page to open after signing in: a dashboard page from ``after``, else the overview.

    Other sites, and addresses outside the dashboard, are ignored.
    """
    path = request.args.get("after", "")
    has_dots = {".", ".."}.intersection(unquote(path.partition("?")[0]).split("/"))
    allowed = _DASHBOARD_PATH.fullmatch(path) and not CONTROL.search(path) and not has_dots
    return path if allowed else url_for("dashboard.overview")


WRONG_CODE = "This code is wrong or was used before. Wait for the next one, or use a recovery code."
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
        return redirect(next_url())
    administrator = pending_administrator() if services().settings.password_sign_in else None
    if administrator is None:
        return failed(TOO_LATE, "sign_in", after=request.args.get("after"))
    if request.method != "POST":
        return page("sign_in_code.html", form=forms.blank())
    form = forms.read(CodeForm)
    if not form:
        return page("sign_in_code.html", 400, form=form)
    # Never shown again, as a recovery code may be mistyped by one character.
    form.values.clear()
    try:
        with login_throttle.attempt(administrator.name):
            action = _check_code(administrator, form.data["code"])
    except login_throttle.MustWait as refused:
        form.refuse("", str(refused))
        return with_retry_after(page("sign_in_code.html", 429, form=form), refused)
    except Undecipherable:
        log.error("second factor of administrator %s is undecipherable: its key is gone", administrator.name)
        form.refuse("", UNREADABLE)
        return page("sign_in_code.html", 503, form=form)
    if action is None:
        form.refuse("", WRONG_CODE)
        return page("sign_in_code.html", 401, form=form)
    response = complete_sign_in(administrator, redirect(next_url(), 303), action)
    if action != "signIn":
        _flash_codes_left(administrator)
    return response


def _check_code(administrator: Administrator, code: str) -> str | None:
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
        login_throttle.note_failure(administrator.name, FailedCheck.SECOND_FACTOR)
        return None
    login_throttle.forget(administrator.name)
    return action


def _flash_codes_left(administrator: Administrator) -> None:
    with services().stores.database.reading() as session:
        left = second_factors.recovery_codes_left(session, administrator.id)
    flash(f"You have used a recovery code; {left} are left. Your account makes new ones.", "warn")


class NewAdministratorForm(SignInForm):
    """Name, and password twice."""

    name = Text(shortest=2, longest=128, required=True)
    again = fields.String(required=True)


@blp.route("/welcome/<secret>", methods=["GET", "POST"])
@route_facts(needs_sign_in=False)
def welcome(secret: str) -> ResponseReturnValue:
    """Register by a one-time link."""
    if not services().settings.password_sign_in:
        return page("error.html", 403, title=NO_PASSWORDS, hint=BY_DIRECTORY, code=403)
    with services().stores.database.reading() as session:
        role = administrators.invited(session, secret)
    if role is None:
        return _stale_link(404)
    if request.method != "POST":
        return page("welcome.html", form=forms.blank(), invited_as=role)
    form = forms.read(NewAdministratorForm)
    check_new_password(form)
    if not form:
        return page("welcome.html", 400, form=form, invited_as=role)
    created = _register(secret, form)
    if created is None:
        return page("welcome.html", 400, form=form, invited_as=role) if form.errors else _stale_link(400)
    sessions.begin(created)
    response = make_response(done(f"Welcome, {created.name}.", "overview"))
    return login_throttle.know_browser(created.name, response)


def _stale_link(status: int) -> ResponseReturnValue:
    hint = (
        "An invitation works once and expires after a day. On the machine that runs the service, the command "
        "“almanac admins invite” prints another."
    )
    return page("error.html", status, title="This link is no longer valid", hint=hint, code=status)


def check_new_password(form: forms.Form) -> None:
    """Add errors for a new password that is too weak or differs from its repetition."""
    if not form:
        return
    if fault := passwords.fault(form.data["password"]):
        form.refuse("password", fault)
    elif form.data["again"] != form.data["password"]:
        form.refuse("again", "must be the same password")


def _register(secret: str, form: forms.Form) -> Administrator | None:
    hashed = passwords.hashed(form.data["password"])
    try:
        with services().stores.database.writing() as session:
            role = administrators.accept(session, secret)
            if role is None:
                return None
            created = administrators.create(session, name=form.data["name"], password_hash=hashed, role=role)
            audit.record(
                session,
                actor=actor_of(created),
                action="createAdministrator",
                subject=created.name,
                changes={"role": (None, role)},
            )
    except IntegrityError:
        form.refuse("name", "is taken: choose another")
        return None
    return created

"""Signing in and out, and the invitation link by which an administrator registers."""

from __future__ import annotations

import re
from urllib.parse import unquote

from flask import Response, make_response, redirect, request, url_for
from flask.typing import ResponseReturnValue
from marshmallow import fields
from sqlalchemy.exc import IntegrityError

from app.dashboard import forms
from app.dashboard.blueprint import blp, done, page
from app.dashboard.sign_in import login_throttle, passwords, sessions
from app.http.route_facts import route_facts
from app.schemas.fields import CONTROL, Text
from app.services import services
from store.sql.models import Administrator
from store.sql.queries import administrators, audit

WRONG = "Name or password is wrong."

_DASHBOARD_PATH = re.compile(r"/dashboard(/[^?#\\]*)?(\?[^#]*)?")


class SignInForm(forms.Body):
    """Name and password; any text may be a password."""

    name = Text(longest=128, required=True)
    password = fields.String(required=True)


class NewAdministratorForm(SignInForm):
    """Name, and password twice."""

    name = Text(shortest=2, longest=128, required=True)
    again = fields.String(required=True)


@blp.route("/sign-in", methods=["GET", "POST"])
@route_facts(needs_sign_in=False)
def sign_in() -> ResponseReturnValue:
    """Sign in with name and password."""
    if sessions.administrator() is not None:
        return redirect(_after())
    with services().stores.database.reading() as session:
        fresh = administrators.count(session) == 0
    if request.method == "GET":
        return page("sign_in.html", form=forms.blank(), fresh=fresh)
    form = forms.read(SignInForm)
    if not form:
        return page("sign_in.html", 400, form=form, fresh=fresh)
    try:
        with login_throttle.attempt(form.data["name"]):
            found = _check_password(**form.data)
    except login_throttle.MustWait as refused:
        form.refuse("", str(refused))
        return with_retry_after(page("sign_in.html", 429, form=form, fresh=fresh), refused)
    if found is None:
        form.refuse("", WRONG)
        return page("sign_in.html", 401, form=form, fresh=fresh)
    sessions.begin(found)
    return login_throttle.know_browser(found.name, make_response(redirect(_after(), 303)))


@blp.route("/welcome/<secret>", methods=["GET", "POST"])
@route_facts(needs_sign_in=False)
def welcome(secret: str) -> ResponseReturnValue:
    """Become an administrator by a one-time link."""
    with services().stores.database.reading() as session:
        good = administrators.invited(session, secret)
    if not good:
        return page("stale_link.html", 404)
    if request.method == "GET":
        return page("welcome.html", form=forms.blank())
    form = forms.read(NewAdministratorForm)
    check_new_password(form)
    if not form:
        return page("welcome.html", 400, form=form)
    created = _create_administrator(secret, form)
    if created is None:
        return page("welcome.html" if form.errors else "stale_link.html", 400, form=form)
    sessions.begin(created)
    response = make_response(done(f"Welcome, {created.name}.", "overview"))
    return login_throttle.know_browser(created.name, response)


@blp.post("/sign-out")
def sign_out() -> ResponseReturnValue:
    """End this browser's session."""
    sessions.end()
    return redirect(url_for("dashboard.sign_in"), 303)


def check_new_password(form: forms.Form) -> None:
    """Add errors for a new password that is too weak or differs from its repetition."""
    if not form:
        return
    if fault := passwords.fault(form.data["password"]):
        form.refuse("password", fault)
    elif form.data["again"] != form.data["password"]:
        form.refuse("again", "must be the same password")


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
        login_throttle.note(name, known=found is not None)
        return None
    login_throttle.forget(name)
    _record(found, password)
    return found


def _record(found: Administrator, password: str) -> None:
    hashed = passwords.hashed(password) if passwords.outdated(found.password_hash) else None
    with services().stores.database.writing() as session:
        if hashed is not None:
            administrators.change_password(session, found.id, hashed)
        audit.record(session, actor=_actor(found), action="signIn", subject=request.remote_addr or "")


def _create_administrator(secret: str, form: forms.Form) -> Administrator | None:
    hashed = passwords.hashed(form.data["password"])
    try:
        with services().stores.database.writing() as session:
            if not administrators.accept(session, secret):
                return None
            created = administrators.create(session, name=form.data["name"], password_hash=hashed)
            audit.record(session, actor=_actor(created), action="createAdministrator", subject=created.name)
    except IntegrityError:
        form.refuse("name", "is taken: choose another")
        return None
    return created


def _actor(administrator: Administrator) -> str:
    return f"administrator {administrator.name}"


def _after() -> str:
    """The page to open after signing in: a dashboard page from ``after``, else the overview.

    Other sites, and addresses outside the dashboard, are ignored.
    """
    after = request.args.get("after", "")
    has_dots = {".", ".."}.intersection(unquote(after.partition("?")[0]).split("/"))
    allowed = _DASHBOARD_PATH.fullmatch(after) and not CONTROL.search(after) and not has_dots
    return after if allowed else url_for("dashboard.overview")

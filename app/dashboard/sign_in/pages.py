"""Signing in and out."""

from __future__ import annotations

from flask import Response, redirect, request, url_for
from flask.typing import ResponseReturnValue
from marshmallow import fields

from app.dashboard import forms
from app.dashboard.blueprint import blp, page
from app.dashboard.sign_in import entering, failures, login_throttle, passwords, sessions
from app.http.route_facts import route_facts
from app.schemas.fields import Text
from app.services import services
from store.sql.models import Administrator, Role
from store.sql.queries import administrators

WRONG = "Name or password is wrong."


class SignInForm(forms.Body):
    """Name and password; any text may be a password."""

    name = Text(longest=128, required=True)
    password = fields.String(required=True)


@blp.route("/sign-in", methods=["GET", "POST"])
@route_facts(needs_sign_in=False)
def sign_in() -> ResponseReturnValue:
    """Sign in with name and password; people with a second factor are asked for a code next."""
    if sessions.administrator() is not None:
        return redirect(entering.next_url())
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
    if found.sealed_totp_secret is not None:
        entering.remember_password_step(found)
        return redirect(url_for("dashboard.sign_in_code", after=request.args.get("after")), 303)
    return entering.complete_sign_in(found, redirect(entering.next_url(), 303))


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
        failures.note(name, known=found is not None)
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

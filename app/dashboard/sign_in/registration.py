"""The invitation link by which a person registers, with the role that the link gives."""

from __future__ import annotations

from flask import make_response, request
from flask.typing import ResponseReturnValue
from marshmallow import fields
from sqlalchemy.exc import IntegrityError

from app.dashboard import forms
from app.dashboard.blueprint import blp, done, page
from app.dashboard.sign_in import entering, login_throttle, passwords, sessions
from app.dashboard.sign_in.pages import SignInForm
from app.http.route_facts import route_facts
from app.schemas.fields import Text
from app.services import services
from store.sql.models import Administrator
from store.sql.queries import administrators, audit


class NewAdministratorForm(SignInForm):
    """Name, and password twice."""

    name = Text(shortest=2, longest=128, required=True)
    again = fields.String(required=True)


@blp.route("/welcome/<secret>", methods=["GET", "POST"])
@route_facts(needs_sign_in=False)
def welcome(secret: str) -> ResponseReturnValue:
    """Register by a one-time link."""
    with services().stores.database.reading() as session:
        role = administrators.invited(session, secret)
    if role is None:
        return page("stale_link.html", 404)
    if request.method == "GET":
        return page("welcome.html", form=forms.blank(), invited_as=role)
    form = forms.read(NewAdministratorForm)
    check_new_password(form)
    if not form:
        return page("welcome.html", 400, form=form, invited_as=role)
    created = _create(secret, form)
    if created is None:
        return page("welcome.html" if form.errors else "stale_link.html", 400, form=form, invited_as=role)
    sessions.begin(created)
    response = make_response(done(f"Welcome, {created.name}.", "overview"))
    return login_throttle.know_browser(created.name, response)


def check_new_password(form: forms.Form) -> None:
    """Add errors for a new password that is too weak or differs from its repetition."""
    if not form:
        return
    if fault := passwords.fault(form.data["password"]):
        form.refuse("password", fault)
    elif form.data["again"] != form.data["password"]:
        form.refuse("again", "must be the same password")


def _create(secret: str, form: forms.Form) -> Administrator | None:
    hashed = passwords.hashed(form.data["password"])
    try:
        with services().stores.database.writing() as session:
            role = administrators.accept(session, secret)
            if role is None:
                return None
            created = administrators.create(session, name=form.data["name"], password_hash=hashed, role=role)
            audit.record(
                session,
                actor=entering.actor(created),
                action="createAdministrator",
                subject=created.name,
                changes={"role": (None, role)},
            )
    except IntegrityError:
        form.refuse("name", "is taken: choose another")
        return None
    return created

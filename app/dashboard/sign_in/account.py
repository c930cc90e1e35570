"""A person's own account: password and signed-in browsers; for administrators, the list of people."""

from __future__ import annotations

from flask import make_response, request
from flask.typing import ResponseReturnValue
from marshmallow import fields

from app.dashboard import forms
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.sign_in import password_check, passwords, sessions
from app.dashboard.sign_in.failures import Failure
from app.dashboard.sign_in.pages import with_retry_after
from app.dashboard.sign_in.registration import check_new_password
from app.http.route_facts import route_facts
from app.services import services
from store.sql.models import Role
from store.sql.queries import administrators, audit, dashboard_sessions, second_factors

CHANGED = (
    "Your password is changed. Every other browser is signed out, and open links and invitations that you "
    "made are withdrawn."
)


class PasswordForm(forms.Body):
    """The current password, and the new one twice."""

    current = fields.String(required=True)
    password = fields.String(required=True)
    again = fields.String(required=True)


@blp.get("/account")
def account() -> ResponseReturnValue:
    """Password, sessions and, for administrators, all people."""
    return show(forms.blank())


@blp.post("/account/password")
@route_facts(role=Role.VIEWER)
def change_password() -> ResponseReturnValue:
    """Change the person's own password, sign out all their other browsers and withdraw their links.

    Wrong guesses of the current password count as failed sign-ins.
    """
    form = forms.read(PasswordForm)
    check_new_password(form)
    if form and (refused := password_check.check(form, Failure.PASSWORD_CHANGE)):
        return with_retry_after(make_response(show(form, 429)), refused)
    if not form:
        return show(form, 400)
    mine = sessions.current()
    hashed = passwords.hashed(form.data["password"])
    with services().stores.database.writing() as session:
        administrators.change_password(session, mine.administrator_id, hashed, keep_session=mine.id)
        audit.record(session, actor=sessions.actor(), action="changePassword", subject=mine.name)
    return done(CHANGED, "account")


@blp.post("/account/sessions/<session_id>/end")
@route_facts(role=Role.VIEWER)
def end_session(session_id: str) -> ResponseReturnValue:
    """Sign out one of the person's own browsers."""
    mine = sessions.current()
    with services().stores.database.writing() as session:
        ended = dashboard_sessions.end(session, mine.administrator_id, session_id)
        if ended:
            audit.record(session, actor=sessions.actor(), action="endSession", subject=mine.name)
    if not ended:
        return failed("That session had ended before.", "account")
    return done("That browser is signed out.", "account")


def show(form: forms.Form, status: int = 200, invitation: str | None = None) -> ResponseReturnValue:
    """The signed-in person's account page; ``form`` is that of the password, ``invitation`` a new link."""
    mine = sessions.current()
    with services().stores.database.reading() as session:
        me = administrators.load(session, mine.administrator_id)
        return page(
            "account.html",
            status,
            form=form,
            invitation=invitation,
            invited_as=request.form.get("role") if invitation else None,
            ticket=forms.new_form_token(),
            mine=mine,
            roles=list(Role),
            second_factor=me is not None and me.sealed_totp_secret is not None,
            codes_left=second_factors.recovery_codes_left(session, mine.administrator_id),
            sessions=dashboard_sessions.of_administrator(session, mine.administrator_id),
            people=administrators.every(session) if mine.role is Role.ADMINISTRATOR else (),
        )

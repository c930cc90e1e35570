"""The administrator's account: password, signed-in browsers, and the other administrators."""

from __future__ import annotations

from flask import make_response, request, url_for
from flask.typing import ResponseReturnValue
from marshmallow import fields
from sqlalchemy.orm import Session

from app.dashboard import form_tokens, forms
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.sign_in import login_throttle, passwords, sessions
from app.dashboard.sign_in.pages import check_new_password, with_retry_after
from app.schemas.fields import Text
from app.services import services
from store.sql.queries import administrators, audit, dashboard_sessions

SENT_BEFORE = (
    "This form was sent before, and no second link was made. The first was shown once: when it is lost, "
    "invite once more."
)


class InviteForm(forms.Body):
    """The one-time token of the form; it has no other fields."""

    ticket = Text(shortest=1, longest=64, required=True)


class PasswordForm(forms.Body):
    """The current password, and the new one twice."""

    current = fields.String(required=True)
    password = fields.String(required=True)
    again = fields.String(required=True)


@blp.get("/account")
def account() -> ResponseReturnValue:
    """Password, sessions and administrators."""
    return _account(forms.blank())


@blp.post("/account/password")
def change_password() -> ResponseReturnValue:
    """Change the administrator's own password: sign out all other browsers, withdraw open invitations.

    Wrong guesses of the current password count as failed sign-ins.
    """
    form = forms.read(PasswordForm)
    check_new_password(form)
    mine = sessions.current()
    if form:
        try:
            with login_throttle.attempt(mine.name):
                _check_current(form, mine.name)
        except login_throttle.MustWait as refused:
            form.refuse("", str(refused))
            return with_retry_after(make_response(_account(form, 429)), refused)
    if not form:
        return _account(form, 400)
    hashed = passwords.hashed(form.data["password"])
    with services().stores.database.writing() as session:
        administrators.renew_password(session, mine.administrator_id, hashed)
        dashboard_sessions.end_others(session, mine.administrator_id, but=mine.id)
        _record(session, "changePassword", mine.name)
    sentence = (
        "Your password is changed. Every other browser is signed out, and open invitations are withdrawn."
    )
    return done(sentence, "account")


@blp.post("/account/sessions/<session_id>/end")
def end_session(session_id: str) -> ResponseReturnValue:
    """Sign out one of the administrator's own browsers."""
    mine = sessions.current()
    with services().stores.database.writing() as session:
        ended = dashboard_sessions.end(session, mine.administrator_id, session_id)
    if not ended:
        return failed("That session had ended before.", "account")
    return done("That browser is signed out.", "account")


@blp.post("/account/administrators/invite")
def invite() -> ResponseReturnValue:
    """Make a one-time link for another administrator and show it; it cannot be shown again."""
    form = forms.read(InviteForm)
    if not form:
        return failed("This form had no one-time token. Send it again.", "account")
    if not form_tokens.use(form.data["ticket"]):
        return failed(SENT_BEFORE, "account")
    try:
        secret = _invite()
    except Exception:
        form_tokens.release(form.data["ticket"])
        raise
    # Behind a proxy, the address of this request may differ from the public one.
    base = services().settings.public_url or request.host_url.rstrip("/")
    return _account(forms.blank(), invitation=base + url_for("dashboard.welcome", secret=secret))


@blp.post("/account/administrators/<int:administrator_id>/remove")
def remove_administrator(administrator_id: int) -> ResponseReturnValue:
    """Remove another administrator: sign out all their browsers, and withdraw every open invitation."""
    if administrator_id == sessions.current().administrator_id:
        return failed("You cannot remove yourself: another administrator can.", "account")
    with services().stores.database.writing() as session:
        found = {each.id: each.name for each in administrators.every(session)}.get(administrator_id)
        if found is not None:
            administrators.remove(session, administrator_id)
            _record(session, "removeAdministrator", found)
    if found is None:
        return failed("This administrator no longer exists.", "account")
    return done(f"{found} is no longer an administrator. Open invitations are withdrawn.", "account")


def _check_current(form: forms.Form, name: str) -> None:
    if passwords.matches(form.data["current"], _password_hash(name)):
        login_throttle.forget(name)
        return
    login_throttle.note(name, known=True, what="password change")
    form.refuse("current", "is not your password")


def _invite() -> str:
    with services().stores.database.writing() as session:
        secret = administrators.invite(session)
        _record(session, "inviteAdministrator", sessions.current().name)
    return secret


def _account(form: forms.Form, status: int = 200, invitation: str | None = None) -> ResponseReturnValue:
    with services().stores.database.reading() as session:
        return page(
            "account.html",
            status,
            form=form,
            invitation=invitation,
            ticket=form_tokens.ticket(),
            mine=sessions.current(),
            sessions=dashboard_sessions.of_administrator(session, sessions.current().administrator_id),
            administrators=administrators.every(session),
        )


def _password_hash(name: str) -> str | None:
    with services().stores.database.reading() as session:
        found = administrators.find(session, name)
    return found.password_hash if found is not None else None


def _record(session: Session, action: str, subject: str) -> None:
    audit.record(session, actor=sessions.actor(), action=action, subject=subject)

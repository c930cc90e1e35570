"""A person's own account: password and signed-in browsers; for administrators, the other people."""

from __future__ import annotations

from collections.abc import Callable

from flask import abort, make_response, request, url_for
from flask.typing import ResponseReturnValue
from marshmallow import fields
from sqlalchemy.orm import Session

from app.dashboard import forms
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.sign_in import passwords, sessions
from app.dashboard.sign_in.login_throttle import FailedCheck
from app.dashboard.sign_in.pages import check_new_password, with_retry_after
from app.http.routes import route_facts
from app.schemas.fields import Text, Word
from app.services import services
from store.sql.models import Administrator, Role
from store.sql.queries import administrators, audit, dashboard_sessions, identities, second_factors
from store.sql.queries.administrators import LastAdministrator

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
    if form and (refused := passwords.check_current(form, FailedCheck.PASSWORD_CHANGE)):
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
            openid=mine.confirmed_until is not None,
            by_openid=identities.administrator_ids(session),
            passwords=services().settings.password_sign_in,
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


SENT_BEFORE = (
    "This form was sent before, and no second link was made. The first was shown once: when it is lost, "
    "invite once more."
)
NO_TICKET = "This form had no one-time token. Send it again."
OF_DIRECTORY = "The identity provider decides about this role, by the groups of the person."
NO_LONGER = "This administrator no longer exists."
WITHDRAWN = "Their open links and invitations are withdrawn."
LAST = "This is the last administrator: make another one first."

_PERSON = "/account/administrators/<int:administrator_id>"


class RoleForm(forms.Body):
    """A role."""

    role = Word(tuple(Role), required=True)


class InviteForm(forms.Body):
    """The one-time token of the form, and the role of the invited person."""

    ticket = Text(shortest=1, longest=64, required=True)
    role = Word(tuple(Role), load_default=Role.VIEWER)


@blp.post("/account/administrators/invite")
@route_facts(role=Role.ADMINISTRATOR)
def invite() -> ResponseReturnValue:
    """Make a one-time link for another person and show it; it cannot be shown again."""
    form = forms.read(InviteForm)
    if not form:
        missing = "ticket" in form.errors
        return failed(NO_TICKET if missing else "Choose one of the roles.", "account")
    with forms.once(form, SENT_BEFORE) as unused:
        if not unused:
            return failed(SENT_BEFORE, "account")
        secret = _invite(Role(form.data["role"]))
    # Behind a proxy, the address of this request may differ from the public one.
    base = services().settings.public_url or request.host_url.rstrip("/")
    return show(forms.blank(), invitation=base + url_for("dashboard.welcome", secret=secret))


@blp.get(_PERSON)
@route_facts(role=Role.ADMINISTRATOR)
def administrator(administrator_id: int) -> ResponseReturnValue:
    """One person: role, browsers and second factor."""
    with services().stores.database.reading() as session:
        administrator = administrators.load(session, administrator_id)
        if administrator is None:
            abort(404)
        return page(
            "administrator.html",
            person=administrator,
            openid=identities.load(session, administrator_id) is not None,
            mine=sessions.current(),
            roles=list(Role),
            codes_left=second_factors.recovery_codes_left(session, administrator_id),
            sessions=dashboard_sessions.of_administrator(session, administrator_id),
        )


@blp.post(f"{_PERSON}/role")
@route_facts(role=Role.ADMINISTRATOR)
def change_role(administrator_id: int) -> ResponseReturnValue:
    """Give another person another role; all their browsers have it at once."""
    form = forms.read(RoleForm)
    if not form:
        return failed("Choose one of the roles.", "administrator", administrator_id=administrator_id)
    if administrator_id == sessions.current().administrator_id:
        return failed("You cannot change your own role: another administrator can.", "account")
    role = Role(form.data["role"])

    def change(session: Session, administrator: Administrator) -> str | None:
        if identities.load(session, administrator_id) is not None:
            return None
        old = administrator.role
        administrators.change_role(session, administrator_id, role)
        _record(session, "changeRole", administrator.name, {"role": (old, role)})
        withdrawn = "" if role.includes(Role(old)) else f" {WITHDRAWN}"
        return f"{administrator.name} is {_article(role)} {role} now.{withdrawn}"

    return _change(administrator_id, change, otherwise=OF_DIRECTORY)


@blp.post(f"{_PERSON}/sessions/<session_id>/end")
@route_facts(role=Role.ADMINISTRATOR)
def end_session_of(administrator_id: int, session_id: str) -> ResponseReturnValue:
    """Sign out a browser of another person."""

    def end(session: Session, administrator: Administrator) -> str | None:
        if not dashboard_sessions.end(session, administrator_id, session_id):
            return None
        _record(session, "endSession", administrator.name)
        return f"That browser of {administrator.name} is signed out."

    return _change(administrator_id, end, otherwise="That session had ended before.")


@blp.post(f"{_PERSON}/second-factor/reset")
@route_facts(role=Role.ADMINISTRATOR)
def reset_second_factor(administrator_id: int) -> ResponseReturnValue:
    """Remove the second factor of another person, and sign out all their browsers."""
    if administrator_id == sessions.current().administrator_id:
        return failed("Turn off your own second factor with your password.", "second_factor")

    def reset(session: Session, administrator: Administrator) -> str | None:
        if administrator.sealed_totp_secret is None:
            return None
        second_factors.remove(session, administrator_id)
        _record(session, "resetSecondFactor", administrator.name)
        return (
            f"{administrator.name} is signed out, and signs in with the password alone until a new second "
            f"factor is set up. {WITHDRAWN}"
        )

    return _change(administrator_id, reset, otherwise="There was no second factor any more.")


@blp.post(f"{_PERSON}/remove")
@route_facts(role=Role.ADMINISTRATOR)
def remove_administrator(administrator_id: int) -> ResponseReturnValue:
    """Remove another person: sign out all their browsers, and withdraw their links and invitations."""
    if administrator_id == sessions.current().administrator_id:
        return failed("You cannot remove yourself: another administrator can.", "account")

    def remove(session: Session, administrator: Administrator) -> str:
        name = administrator.name
        administrators.remove(session, administrator_id)
        _record(session, "removeAdministrator", name)
        return f"{name} is removed. {WITHDRAWN}"

    return _change(administrator_id, remove, then_account=True)


def _change(
    administrator_id: int,
    change: Callable[[Session, Administrator], str | None],
    *,
    otherwise: str = "",
    then_account: bool = False,
) -> ResponseReturnValue:
    """Change a person in one transaction, and report what ``change`` returns, or ``otherwise``."""
    try:
        with services().stores.database.writing() as session:
            administrator = administrators.load(session, administrator_id)
            if administrator is None:
                return failed(NO_LONGER, "account")
            sentence = change(session, administrator)
    except LastAdministrator:
        return failed(LAST, "administrator", administrator_id=administrator_id)
    if then_account:
        return done(sentence or "", "account")
    report = failed if sentence is None else done
    return report(sentence or otherwise, "administrator", administrator_id=administrator_id)


def _invite(role: Role) -> str:
    with services().stores.database.writing() as session:
        secret = administrators.invite(session, role, by=sessions.issuer())
        _record(session, "inviteAdministrator", "by a link", {"role": (None, role)})
    return secret


def _article(role: Role) -> str:
    return "a" if role is Role.VIEWER else "an"


def _record(session: Session, action: str, subject: str, changes: audit.Changes | None = None) -> None:
    audit.record(session, actor=sessions.actor(), action=action, subject=subject, changes=changes)

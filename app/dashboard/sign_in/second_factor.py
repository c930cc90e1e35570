"""The own second factor: setting up an authenticator app, recovery codes, and turning it off."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64

import segno
from flask import make_response
from flask.typing import ResponseReturnValue
from markupsafe import Markup
from marshmallow import fields
from sqlalchemy.orm import Session

from app.dashboard import forms
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.sign_in import passwords, sessions
from app.dashboard.sign_in.pages import with_retry_after
from app.http.routes import route_facts
from app.schemas.fields import Text
from app.services import services
from store.security.crypto import Undecipherable
from store.sql.models import Administrator, Role
from store.sql.queries import administrators, audit, dashboard_sessions, second_factors

ISSUER = "Almanac"
ALREADY = "Your second factor is on already. Turn it off to set up another app."
BY_OPENID = "You sign in by OpenID Connect: the identity provider asks for second factors."
STALE = "The secret of this form is no longer valid: a new one is shown. Scan it again."


TURNED_OFF = (
    "Your second factor is off: you sign in with your password alone. Every other browser is signed out, and "
    "open links and invitations that you made are withdrawn."
)


class EnableForm(forms.Body):
    """The secret of the page, a code of the app that has it, and the person's own password."""

    sealed = Text(longest=512, required=True)
    code = Text(longest=16, required=True)
    current = fields.String(required=True)


class PasswordForm(forms.Body):
    """The own password."""

    current = fields.String(required=True)


@blp.get("/account/second-factor")
@route_facts(role=Role.VIEWER)
def second_factor() -> ResponseReturnValue:
    """Set up a second factor, or manage the one that is there."""
    if sessions.current().confirmed_until is not None:
        return failed(BY_OPENID, "account")
    return _show(forms.blank())


@blp.post("/account/second-factor")
@route_facts(role=Role.VIEWER)
def enable_second_factor() -> ResponseReturnValue:
    """Turn the second factor on, once the app shows the right code, and show the recovery codes once."""
    form = forms.read(EnableForm)
    secret = _opened(form.values.get("sealed", ""))
    if secret is None:
        return failed(STALE, "second_factor")
    if (refusal := _refusal(form, secret)) is not None:
        return refusal
    step = second_factors.matching_step(secret, form.data["code"].replace(" ", ""))
    if step is None:
        form.refuse(
            "code", "is wrong: type the one that the app shows now, and check the clock of the device"
        )
        return _show(form, 400, secret)
    mine = sessions.current()
    stores = services().stores
    with stores.database.writing() as session:
        if _me(session).sealed_totp_secret is not None:
            return failed(ALREADY, "second_factor")
        second_factors.store(session, stores.keyring, mine.administrator_id, secret, step)
        codes = second_factors.new_recovery_codes(session, mine.administrator_id)
        # They have signed in with only the password.
        dashboard_sessions.end_others(session, mine.administrator_id, but=mine.id)
        _record(session, "enableSecondFactor")
    return page("recovery_codes.html", codes=codes, enabled=True)


@blp.post("/account/second-factor/recovery-codes")
@route_facts(role=Role.VIEWER)
def new_recovery_codes() -> ResponseReturnValue:
    """Replace the recovery codes, and show the new ones once."""
    form = forms.read(PasswordForm)
    if (refusal := _refusal(form)) is not None:
        return refusal
    with services().stores.database.writing() as session:
        if _me(session).sealed_totp_secret is None:
            return failed("Your second factor is off.", "second_factor")
        codes = second_factors.new_recovery_codes(session, sessions.current().administrator_id)
        _record(session, "createRecoveryCodes")
    return page("recovery_codes.html", codes=codes, enabled=False)


@blp.post("/account/second-factor/disable")
@route_facts(role=Role.VIEWER)
def disable_second_factor() -> ResponseReturnValue:
    """Turn the second factor off: the password is enough again."""
    form = forms.read(PasswordForm)
    if (refusal := _refusal(form)) is not None:
        return refusal
    with services().stores.database.writing() as session:
        mine = sessions.current()
        second_factors.remove(session, mine.administrator_id, keep_session=mine.id)
        _record(session, "disableSecondFactor")
    return done(TURNED_OFF, "account")


def _show(form: forms.Form, status: int = 200, secret: str | None = None) -> ResponseReturnValue:
    with services().stores.database.reading() as session:
        me = _me(session)
        left = second_factors.recovery_codes_left(session, me.id)
    if me.sealed_totp_secret is not None:
        return page("second_factor.html", status, form=form, enabled=True, codes_left=left)
    secret = secret or second_factors.new_secret()
    code = form.values.get("code", "")
    return page(
        "second_factor.html",
        status,
        form=forms.Form({"code": code}, form.errors),
        enabled=False,
        picture=_picture(second_factors.address(secret, account=me.name, issuer=ISSUER)),
        secret=" ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        sealed=_sealed(secret),
    )


def _refusal(form: forms.Form, secret: str | None = None) -> ResponseReturnValue | None:
    """The page with the errors of a form; None if the form is complete and its password is right."""
    if form and (wait := passwords.check_current(form)):
        return with_retry_after(make_response(_show(form, 429, secret)), wait)
    return None if form else _show(form, 400, secret)


def _picture(text: str) -> Markup:
    """The QR code as SVG, dark on white in every colour scheme, as cameras need it."""
    svg = segno.make(text, error="m").svg_inline(
        scale=5, border=4, dark="#000", light="#fff", svgclass=None, lineclass=None, omitsize=True
    )
    # It consists only of numbers; the text is not in it.
    return Markup(svg)  # noqa: S704


def _sealed(secret: str) -> str:
    """The secret as the form sends it back: encrypted, and bound to this session."""
    return urlsafe_b64encode(services().stores.keyring.encrypt(secret, _place())).decode()


def _opened(sealed: str) -> str | None:
    try:
        return services().stores.keyring.decrypt(urlsafe_b64decode(sealed.encode()), _place())
    except (Undecipherable, NotBase64, ValueError):
        return None


def _place() -> str:
    return f"dashboard_sessions/{sessions.current().id}/new_totp_secret"


def _me(session: Session) -> Administrator:
    found = administrators.load(session, sessions.current().administrator_id)
    assert found is not None, "a session has a person"
    return found


def _record(session: Session, action: str) -> None:
    audit.record(session, actor=sessions.actor(), action=action, subject=sessions.current().name)

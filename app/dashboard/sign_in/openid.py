"""Signing in by OpenID Connect: the way to the identity provider, and back.

A worker talks to the provider (``workers.execution.sign_ins``): web processes reach no other network.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import replace

from flask import Response, redirect, request, session, url_for
from flask.typing import ResponseReturnValue
from limits import RateLimitItemPerMinute

from app.dashboard.blueprint import blp, page
from app.dashboard.sign_in import login_throttle, sessions
from app.dashboard.sign_in.pages import complete_sign_in, next_url
from app.http.hosts import base_url
from app.http.routes import route_facts
from app.services import services
from providers.oauth import consent
from providers.oauth.consent import ConsentRequest, new_verifier
from store.coordination import shares
from store.security.one_time_secrets import PendingSignIn
from store.sql.queries import administrators
from workers.fanout.admission import TenantQueueFull
from workers.jobs import FindSignInPage, SignIn, SignInResult

# Steps of sign-ins from one address: each is a call to the identity provider.
FROM_ADDRESS = RateLimitItemPerMinute(30, 1, namespace="sign-in-openid")
# Steps that wait for the identity provider at once, of all people. If it hangs, each keeps a thread of a web
# process and one of a worker until the deadline. Strangers from many addresses must not take all of them.
AT_ONCE = 8
_STATE = "openid state"
_WORD = re.compile(r"[a-z_]{1,40}")
_AGAIN = "Sign in again."
_OPERATOR = "Whoever operates this installation"

# Status, title and what to do, by the word of a refusal.
REFUSALS = {
    "unavailable": (
        502,
        "The identity provider did not answer",
        f"Try again in a moment. If it lasts: {_OPERATOR.lower()} checks whether the workers reach the "
        "identity provider.",
    ),
    "busy": (
        503,
        "Too many people are signing in at this moment",
        "Try again in a moment. If it lasts, the identity provider answers slowly.",
    ),
    "notSet": (
        502,
        "The workers know no identity provider",
        f"{_OPERATOR} gives the workers ALMANAC_OIDC_ISSUER and the other settings of the sign-in "
        "that the web processes have.",
    ),
    "issuer": (
        502,
        "There is no identity provider with this issuer",
        f"{_OPERATOR} compares ALMANAC_OIDC_ISSUER with the issuer in the metadata of the identity provider.",
    ),
    "client": (
        502,
        "The identity provider does not accept this installation",
        f"{_OPERATOR} checks ALMANAC_OIDC_CLIENT_ID and ALMANAC_OIDC_CLIENT_SECRET, and whether the secret "
        "has expired.",
    ),
    "clock": (
        502,
        "The clocks of this installation and of the identity provider differ",
        f"{_OPERATOR} sets the clock of the workers. {_AGAIN}",
    ),
    "untrusted": (
        502,
        "The answer of the identity provider could not be trusted",
        f"{_AGAIN} If it happens again, the log of the workers says what is wrong with the answer.",
    ),
    "code": (
        400,
        "This sign-in is no longer valid",
        f"It takes ten minutes at most, and works once. {_AGAIN}",
    ),
    "role": (
        403,
        "You have no role here",
        "The identity provider knows you, but no group of yours has a role in Almanac. Ask for one of the "
        "groups in ALMANAC_OIDC_ROLES, then sign in again.",
    ),
    "name": (409, "Your name was taken at this moment", _AGAIN),
    "denied": (
        403,
        "The identity provider did not sign you in",
        "You have declined, or may not use this application. The administrator of the identity provider can "
        "assign it to you.",
    ),
    "browser": (
        400,
        "This sign-in was begun elsewhere",
        f"It ends in the browser in which it began, within ten minutes, and works once. {_AGAIN}",
    ),
    "many": (429, "Too many sign-ins from your address", "Wait a minute, then sign in again."),
    "address": (
        503,
        "The address of this service is not known",
        "The identity provider sends people back to it: set ALMANAC_PUBLIC_URL, and restart the service.",
    ),
}


@blp.get("/sign-in/openid")
@route_facts(needs_sign_in=False)
def sign_in_openid() -> ResponseReturnValue:
    """Send this browser to the identity provider."""
    settings = services().settings
    if sessions.administrator() is not None or not settings.oidc_issuer:
        return redirect(next_url() if settings.oidc_issuer else url_for("dashboard.sign_in"), 303)
    if not login_throttle.take(FROM_ADDRESS, login_throttle.network()):
        return _refused("many")
    site = base_url()
    if site is None:
        return _refused("address")
    found = ask_worker(FindSignInPage())
    if found.refused is not None:
        return _refused(found.refused)
    begun = PendingSignIn(
        nonce=secrets.token_urlsafe(32),
        verifier=new_verifier(),
        redirect_uri=site + url_for("dashboard.sign_in_openid_callback"),
        after=next_url(),
    )
    state = services().stores.begun_sign_ins.put(begun)
    session[_STATE] = state
    wanted = ConsentRequest(begun.redirect_uri, settings.oidc_scopes, state, begun.verifier)
    prompt = settings.oidc_prompt or None
    location = consent.link(found.page, settings.oidc_client_id, wanted, nonce=begun.nonce, prompt=prompt)
    return redirect(location, 303)


@blp.get("/sign-in/openid/callback")
@route_facts(needs_sign_in=False)
def sign_in_openid_callback() -> ResponseReturnValue:
    """Finish a sign-in: the identity provider sends the browser here, with a code or an error."""
    stores, settings = services().stores, services().settings
    state, expected = request.args.get("state", ""), session.pop(_STATE, "")
    if not settings.oidc_issuer or not expected or not hmac.compare_digest(state.encode(), expected.encode()):
        return _refused("browser")
    begun = stores.begun_sign_ins.take(state)
    if begun is None:
        return _refused("browser")
    # https://www.rfc-editor.org/rfc/rfc9207#section-2.4
    if request.args.get("iss", settings.oidc_issuer) != settings.oidc_issuer:
        return _refused("untrusted")
    if error := request.args.get("error"):
        return _refused_there(error)
    code = request.args.get("code")
    if not code:
        return _refused("untrusted")
    if not login_throttle.take(FROM_ADDRESS, login_throttle.network()):
        return _refused("many")
    result = ask_worker(SignIn(stores.sign_ins.put(replace(begun, code=code))))
    if result.administrator_id is None:
        return _refused(result.refused or "unavailable")
    with stores.database.reading() as reading:
        administrator = administrators.load(reading, result.administrator_id)
    if administrator is None:
        return _refused("code")
    return complete_sign_in(administrator, redirect(begun.after, 303), "signInByOpenId")


def ask_worker(job: FindSignInPage | SignIn) -> SignInResult:
    """The answer of the identity provider to a worker; ``unavailable`` if no worker answers in time.

    :raise Overloaded: when no worker is running, or too much waits for them
    """
    shares.set_tenant(shares.STRANGERS, {shares.Quota.WAITING_WRITES: AT_ONCE})
    try:
        reply = services().ask(job)
    except TenantQueueFull:
        return SignInResult(refused="busy")
    finally:
        shares.set_tenant(shares.UNBOUND)
    return reply.sign_in or SignInResult(refused="unavailable")


def _refused_there(error: str) -> Response:
    """The page for an error that the identity provider has sent with the browser (RFC 6749, 4.1.2.1)."""
    if error == "access_denied":
        return _refused("denied")
    if error in ("server_error", "temporarily_unavailable"):
        return _refused("unavailable")
    said = f"It says: {error}. " if _WORD.fullmatch(error) else ""
    hint = (
        f"{said}{_OPERATOR} compares the client, its redirect address and ALMANAC_OIDC_SCOPES with the "
        "registration at the identity provider."
    )
    return page("error.html", 502, title="The identity provider refused the sign-in", hint=hint, code=502)


def _refused(word: str) -> Response:
    status, title, hint = REFUSALS[word]
    return page("error.html", status, title=title, hint=hint, code=status)

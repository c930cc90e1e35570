"""Google's OAuth server: consent, tokens, revocation, userinfo.

https://developers.google.com/identity/protocols/oauth2/web-server
"""

from __future__ import annotations

from typing import Any

from providers.sandbox import consent_page
from providers.sandbox.accounts import Account, Grant
from providers.sandbox.consent import (
    EXPIRED,
    WRONG,
    back_to_application,
    client_of,
    encoded,
    id_token,
    subject,
)
from providers.sandbox.exchange import Answer, Request
from providers.sandbox.google import service_accounts
from providers.sandbox.google.errors import dead_token, json_answer, oauth_error
from providers.sandbox.google.scopes import PREFIX, full_name
from providers.sandbox.world import LIFETIME, World, bearer_token, is_live

GONE = "Token has been expired or revoked."


def authorize(world: World, request: Request) -> Answer:
    """Request consent, and redirect to the application with the result."""
    if request.one("response_type") != "code" or not request.one("redirect_uri"):
        return oauth_error("invalid_request", "response_type=code and redirect_uri are required")
    scopes = tuple(dict.fromkeys(full_name(word) for word in request.one("scope").split()))
    if not scopes:
        return back_to_application(request, error="invalid_scope")
    decision = consent_page.decision(world, "google", request, scopes)
    if isinstance(decision, Answer):
        return decision
    if decision is None:
        return back_to_application(request, error="access_denied")
    account, granted = decision
    # A refresh token is issued with the first consent, and when the request asks for one.
    first = not account.has_granted(request.one("client_id"))
    offline = request.one("access_type") == "offline" and (first or "consent" in request.one("prompt"))
    code = world.codes.issue(account, granted, request, offline=offline)
    return back_to_application(request, code=code, scope=" ".join(granted))


def token(world: World, request: Request) -> Answer:
    """The token endpoint."""
    form = request.form
    client_id, secret = client_of(request)
    if client_id.startswith(WRONG):
        return oauth_error("invalid_client", "The OAuth client was not found.", 401)
    if secret.startswith((WRONG, EXPIRED)):
        return oauth_error("invalid_client", "Unauthorized", 401)
    match form.get("grant_type"):
        case "refresh_token":
            grant = world.refresh.get(form.get("refresh_token", ""))
            if grant is None or grant.account.provider != "google":
                return oauth_error("invalid_grant", "Bad Request")
            if not grant.is_valid:
                return oauth_error("invalid_grant", GONE)
            # The old refresh token stays valid, so no new one is issued.
            return json_answer(tokens(world, grant, form.get("client_id", "")))
        case "authorization_code":
            return redeem(world, form)
        case service_accounts.GRANT_TYPE:
            return service_accounts.token(world, request)
        case None:
            return oauth_error("invalid_request", "Required parameter is missing: grant_type")
        case other:
            return oauth_error("unsupported_grant_type", f"Invalid grant_type: {other}")


def redeem(world: World, form: dict[str, str]) -> Answer:
    code = world.codes.redeem(form)
    if code is None or code.account.provider != "google":
        return oauth_error("invalid_grant", "Malformed auth code.")
    grant = world.consent(code.account, code.scopes, code.client_id)
    answer = tokens(world, grant, form.get("client_id", ""), code.nonce)
    return json_answer(answer | ({"refresh_token": world.refresh_token(grant)} if code.offline else {}))


def tokens(world: World, grant: Grant, client_id: str, nonce: str = "") -> dict[str, Any]:
    """An access token, and an id token where ``openid`` was granted."""
    answer = {
        "access_token": world.access_token(grant),
        "expires_in": LIFETIME - 1,
        "scope": " ".join(grant.scopes),
        "token_type": "Bearer",
    }
    if "openid" in grant.scopes:
        claims = {"iss": "https://accounts.google.com", "azp": client_id, "aud": client_id}
        claims |= {"sub": subject(grant.account), **email_claims(grant.account, grant.scopes)}
        answer["id_token"] = id_token(claims | ({"nonce": nonce} if nonce else {}), LIFETIME)
    return answer


def email_claims(account: Account, scopes: tuple[str, ...]) -> dict[str, Any]:
    if PREFIX + "userinfo.email" not in scopes:
        return {}
    return {"email": account.email, "email_verified": True, "hd": account.email.rpartition("@")[2]}


def revoke(world: World, request: Request) -> Answer:
    """Revoke the grant of an access or refresh token: every token of the account for this application."""
    value = request.form.get("token") or request.one("token")
    access = world.access.get(value)
    grant = access.grant if access else world.refresh.get(value)
    if grant is None or not grant.alive:
        return oauth_error("invalid_token", "Token expired or revoked")
    grant.account.revoke(grant.client_id)
    return json_answer({})


def userinfo(world: World, request: Request) -> Answer:
    """OpenID Connect's userinfo: https://openidconnect.googleapis.com/v1/userinfo"""
    access = world.bearer(request, "google")
    if access is None or not is_live(access) or "openid" not in access.scopes:
        return dead_token()
    account = access.grant.account
    name = account.email.partition("@")[0]
    picture = f"https://lh3.googleusercontent.com/a/{encoded(name.encode())}"
    who = {"sub": subject(account), "name": name, "given_name": name, "picture": picture}
    return json_answer(who | email_claims(account, access.scopes))


def owner(world: World, request: Request) -> Account | None:
    """The account of a call to this server, for faults."""
    known = (request.form.get(name, "") for name in ("refresh_token", "token"))
    for value in (*known, bearer_token(request)):
        if (grant := world.refresh.get(value)) is not None:
            return grant.account
        if (access := world.access.get(value)) is not None:
            return access.grant.account
    if (impersonated := service_accounts.subject_of(request)) is not None:
        return world.account("google", impersonated)
    code = world.codes.open.get(request.form.get("code", ""))
    return code.account if code else world.account("google", request.one("login_hint"))

"""Microsoft's identity platform: consent and tokens.

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-auth-code-flow
"""

from __future__ import annotations

import secrets
import time
import uuid
from typing import Any

from providers.sandbox import consent_page
from providers.sandbox.accounts import Account, Grant
from providers.sandbox.consent import (
    CODE,
    EXPIRED,
    WRONG,
    back_to_application,
    client_of,
    id_token,
    subject,
)
from providers.sandbox.exchange import Answer, Request
from providers.sandbox.microsoft.mailbox import object_id
from providers.sandbox.microsoft.scopes import OPENID, full_name, short_names
from providers.sandbox.world import LIFETIME, World

HEADERS = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store, no-cache"}
TENANT = "84bd8158-6d4d-4958-8b9f-9d6445542f95"

# https://learn.microsoft.com/entra/identity-platform/reference-error-codes
AADSTS: dict[int, tuple[int, str, str, str | None]] = {
    50173: (
        400,
        "invalid_grant",
        "The provided grant has expired due to it being revoked, a fresh auth token is needed. The user "
        "might have changed or reset their password.",
        "bad_token",
    ),
    54005: (
        400,
        "invalid_grant",
        "OAuth2 Authorization code was already redeemed, please retry with a new valid code or use an "
        "existing refresh token.",
        None,
    ),
    65001: (
        400,
        "invalid_grant",
        "The user or administrator has not consented to use the application. Send an interactive "
        "authorization request for this user and resource.",
        "consent_required",
    ),
    70000: (400, "invalid_grant", "Provided grant is invalid or malformed.", None),
    70003: (400, "unsupported_grant_type", "The app requested an unsupported grant type.", None),
    90002: (
        400,
        "invalid_tenant",
        "Tenant not found. Check to make sure you have the correct tenant ID and are signing into the "
        "correct cloud. Check with your subscription administrator, this may happen if there are no active "
        "subscriptions for the tenant.",
        None,
    ),
    90033: (503, "temporarily_unavailable", "A transient error has occurred. Please try again.", None),
    900144: (
        400,
        "invalid_request",
        "The request body must contain the following parameter: 'grant_type'.",
        None,
    ),
    700016: (
        400,
        "unauthorized_client",
        "Application was not found in the directory. This can happen if the application has not been "
        "installed by the administrator of the tenant or consented to by any user in the tenant. You may "
        "have sent your authentication request to the wrong tenant.",
        None,
    ),
    7000215: (
        401,
        "invalid_client",
        "Invalid client secret provided. Ensure the secret being sent in the request is the client secret "
        "value, not the client secret ID, for a secret added to the app.",
        None,
    ),
    7000222: (401, "invalid_client", "The provided client secret keys for app are expired.", None),
    9002313: (400, "invalid_grant", "Invalid request. Request is malformed or invalid.", None),
}
# The AADSTS number for an error word of the protocol.
NUMBERS = {word: number for number, (_, word, _, _) in reversed(AADSTS.items())}
NUMBERS["invalid_grant"] = 50173


def oauth_error(number: int, *, word: str = "", status: int = 0) -> Answer:
    """An error with all fields that Entra sends; clients should rely only on ``error``."""
    usual_status, usual_word, text, suberror = AADSTS[number]
    now = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())
    trace, correlation = str(uuid.uuid4()), str(uuid.uuid4())
    document = {
        "error": word or usual_word,
        "error_description": (
            f"AADSTS{number}: {text} Trace ID: {trace} Correlation ID: {correlation} Timestamp: {now}"
        ),
        "error_codes": [number],
        "timestamp": now,
        "trace_id": trace,
        "correlation_id": correlation,
        "error_uri": f"https://login.microsoftonline.com/error?code={number}",
    }
    if suberror:
        document["suberror"] = suberror
    return Answer(status or usual_status, document=document, headers=dict(HEADERS))


def authorize(world: World, request: Request) -> Answer:
    """Request consent, and redirect to the application with the result."""
    if request.one("response_type") != "code" or not request.one("redirect_uri"):
        return oauth_error(900144, word="invalid_request")
    scopes = tuple(dict.fromkeys(request.one("scope").split()))
    decision = consent_page.decision(world, "microsoft", request, scopes)
    if isinstance(decision, Answer):
        return decision
    if decision is None:
        text = "AADSTS65004: User declined to consent to access the app."
        return back_to_application(request, error="access_denied", error_description=text)
    account, granted = decision
    offline = "offline_access" in granted
    return back_to_application(request, code=world.codes.issue(account, granted, request, offline=offline))


def token(world: World, request: Request) -> Answer:
    """The token endpoint."""
    form = request.form
    if refused := refusal(request):
        return oauth_error(refused)
    match form.get("grant_type"):
        case "client_credentials":
            return Answer(200, document=app_token(), headers=dict(HEADERS))
        case "refresh_token":
            return refreshed(world, form)
        case "authorization_code":
            return redeemed(world, form)
        case None:
            return oauth_error(900144)
    return oauth_error(70003)


def refusal(request: Request) -> int | None:
    """The error for an invalid tenant, code or client, in the order that reveals least to clients."""
    form = request.form
    client_id, secret = client_of(request)
    if request.path[1].startswith(WRONG):
        return 90002
    # Entra may check the code before the secret, so this error must not count as a correct secret.
    if form.get("grant_type") == "authorization_code" and not form.get("code", "").startswith(CODE):
        return 9002313
    if client_id.startswith(WRONG):
        return 700016
    if secret.startswith(EXPIRED):
        return 7000222
    return 7000215 if secret.startswith(WRONG) else None


def app_token() -> dict[str, Any]:
    """A token of the application itself, which allows nothing here."""
    return {
        "token_type": "Bearer",
        "expires_in": LIFETIME - 1,
        "ext_expires_in": LIFETIME - 1,
        "access_token": f"eyJ0eXAi{secrets.token_urlsafe(24)}",
    }


def refreshed(world: World, form: dict[str, str]) -> Answer:
    """A new access token and a new refresh token; the old one is not revoked."""
    grant = world.refresh.get(form.get("refresh_token", ""))
    if grant is None or grant.account.provider != "microsoft":
        return oauth_error(70000)
    if not grant.alive:
        return oauth_error(50173)
    scopes = narrowed(grant, form.get("scope", ""))
    if scopes is None:
        return oauth_error(65001)
    return tokens(world, grant, scopes, form.get("client_id", ""))


def narrowed(grant: Grant, requested: str) -> tuple[str, ...] | None:
    """The scopes of a refresh: the requested ones, or all; None when one of them was never granted."""
    wanted = short_names(tuple(requested.split())) - {".default"} - OPENID
    if not wanted:
        return grant.scopes
    if not wanted <= short_names(grant.scopes):
        return None
    kept = wanted | OPENID
    return tuple(scope for scope in grant.scopes if short_names((scope,)) <= kept)


def redeemed(world: World, form: dict[str, str]) -> Answer:
    code = world.codes.redeem(form)
    if code is None or code.account.provider != "microsoft":
        return oauth_error(54005 if code is None else 70000)
    grant = world.consent(code.account, code.scopes, code.client_id)
    return tokens(world, grant, grant.scopes, form.get("client_id", ""), code.nonce)


def tokens(world: World, grant: Grant, scopes: tuple[str, ...], client_id: str, nonce: str = "") -> Answer:
    """The answer of the token endpoint."""
    document: dict[str, Any] = {
        "token_type": "Bearer",
        "scope": " ".join(full_name(scope) for scope in scopes if scope != "offline_access"),
        "expires_in": LIFETIME - 1,
        "ext_expires_in": LIFETIME - 1,
        "access_token": world.access_token(grant, scopes),
    }
    if "offline_access" in scopes:
        document["refresh_token"] = world.refresh_token(grant)
    if "openid" in scopes:
        document["id_token"] = id_token(claims(grant.account, scopes, client_id, nonce), LIFETIME)
    return Answer(200, document=document, headers=dict(HEADERS))


def claims(account: Account, scopes: tuple[str, ...], client_id: str, nonce: str) -> dict[str, Any]:
    who: dict[str, Any] = {
        "ver": "2.0",
        "iss": f"https://login.microsoftonline.com/{TENANT}/v2.0",
        "sub": subject(account),
        "aud": client_id,
        "tid": TENANT,
    }
    if "profile" in scopes:
        name = account.email.partition("@")[0]
        who |= {"name": name, "preferred_username": account.email, "oid": object_id(account)}
    if "email" in scopes:
        who["email"] = account.email
    return who | ({"nonce": nonce} if nonce else {})


def owner(world: World, request: Request) -> Account | None:
    """The account of a call to this server, for faults."""
    grant = world.refresh.get(request.form.get("refresh_token", ""))
    if grant is not None:
        return grant.account
    code = world.codes.open.get(request.form.get("code", ""))
    return code.account if code else world.account("microsoft", request.one("login_hint"))

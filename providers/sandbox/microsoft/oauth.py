"""Microsoft's identity platform: consent and tokens.

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-auth-code-flow
"""

from __future__ import annotations

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
from providers.sandbox.microsoft import applications, assertions
from providers.sandbox.microsoft.entra import HEADERS, oauth_error
from providers.sandbox.microsoft.mailbox import object_id
from providers.sandbox.microsoft.scopes import OPENID, full_name, short_names
from providers.sandbox.world import LIFETIME, World

TENANT = "84bd8158-6d4d-4958-8b9f-9d6445542f95"


def configuration(request: Request, tenant: str) -> Answer:
    """The discovery document of OpenID Connect, which Microsoft's own client libraries read first.

    https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc
    """
    endpoints = f"{request.origin}/microsoft/{tenant}/oauth2/v2.0"
    document = {
        "issuer": f"https://login.microsoftonline.com/{tenant}/v2.0",
        "authorization_endpoint": f"{endpoints}/authorize",
        "token_endpoint": f"{endpoints}/token",
        "response_types_supported": ["code"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["none"],
    }
    return Answer(200, document=document, headers=dict(HEADERS))


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
    if refused := refusal(request) or assertions.refusal(world, request):
        return oauth_error(refused)
    match form.get("grant_type"):
        case "client_credentials":
            return applications.token(world, request)
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


def refreshed(world: World, form: dict[str, str]) -> Answer:
    """A new access token and a new refresh token; the old one is not revoked."""
    grant = world.refresh.get(form.get("refresh_token", ""))
    if grant is None or grant.account.provider != "microsoft":
        return oauth_error(70000)
    if not grant.is_valid:
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

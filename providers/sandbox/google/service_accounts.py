"""Tokens of service accounts with domain-wide delegation: an assertion in exchange for an access token.

https://developers.google.com/identity/protocols/oauth2/service-account#httprest
"""

from __future__ import annotations

import base64
import time
from typing import Any
from urllib.parse import urlsplit

import orjson
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from providers.sandbox.accounts import Account, Domain
from providers.sandbox.exchange import Answer, Refused, Request
from providers.sandbox.google.errors import json_answer, oauth_error
from providers.sandbox.google.scopes import PREFIX, full_name
from providers.sandbox.world import LIFETIME, World

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ENDPOINT = "/google/token"
# The official client libraries always name this one, whatever the key file says.
REAL_AUDIENCE = "https://oauth2.googleapis.com/token"
# Allowed difference between the clocks, in seconds.
SKEW = 300

NOT_DELEGATED = (
    "Client is unauthorized to retrieve access tokens using this method, or client not authorized for any of "
    "the scopes requested."
)
NOT_NOW = (
    "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your "
    "iat and exp values in the JWT claim."
)
WRONG_AUDIENCE = f"Invalid JWT: Failed audience check. The right audience is {REAL_AUDIENCE}"

# The scopes that are authorized by default. Google compares the names, and none of them implies another.
SCOPES = (
    *("openid", PREFIX + "userinfo.email"),
    *(
        full_name("calendar" + name)
        for name in (
            *("", ".readonly", ".freebusy", ".calendarlist", ".calendarlist.readonly", ".calendars.readonly"),
            *(".events", ".events.readonly", ".events.freebusy", ".settings.readonly"),
        )
    ),
)


def key_file(domain: Domain, origin: str) -> dict[str, str]:
    """The JSON key of a service account, as the console offers it for download."""
    assert domain.key is not None
    email = domain.application.email
    return {
        "type": "service_account",
        "project_id": email.partition("@")[2].partition(".")[0],
        "private_key_id": domain.key.thumbprint()[:40],
        "private_key": domain.key.as_pem(private=True).decode(),
        "client_email": email,
        "client_id": domain.client_id,
        "auth_uri": f"{origin}/google/o/oauth2/v2/auth",
        "token_uri": origin + ENDPOINT,
        "auth_provider_x509_cert_url": "https://www.googleapis.com/oauth2/v1/certs",
        "client_x509_cert_url": f"https://www.googleapis.com/robot/v1/metadata/x509/{email}",
        "universe_domain": "googleapis.com",
    }


def token(world: World, request: Request) -> Answer:
    """An access token of one hour, without a refresh token."""
    try:
        claims = unverified(request)
        domain = issuer(world, claims)
        verify(domain, request, claims)
        account = impersonated(world, domain, claims)
        scopes = granted(domain, claims)
    except Refused as refused:
        return refused.answer
    grant = world.consent(account, scopes, domain.client_id, domain)
    answer = {"access_token": world.access_token(grant), "expires_in": LIFETIME - 1, "token_type": "Bearer"}
    return json_answer(answer)


def subject_of(request: Request) -> str | None:
    """The address that an assertion names, unverified; None for other calls."""
    if request.form.get("grant_type") != GRANT_TYPE:
        return None
    try:
        claims = unverified(request)
    except Refused:
        return None
    return text(claims, "sub") or text(claims, "prn") or None


def unverified(request: Request) -> dict[str, Any]:
    """The claims of the assertion, which name its issuer."""
    parts = request.form.get("assertion", "").split(".")
    if len(parts) != 3:
        raise invalid("Bad Request")
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError as error:
        raise invalid("Invalid JWT: malformed claims.") from error
    if not isinstance(claims, dict):
        raise invalid("Invalid JWT: malformed claims.")
    return claims


def issuer(world: World, claims: dict[str, Any]) -> Domain:
    """The domain whose service account issued the assertion."""
    issued_by = text(claims, "iss")
    for domain in world.domains.values():
        if domain.provider == "google" and domain.application.email == issued_by:
            return domain
    raise invalid("Invalid grant: account not found")


def verify(domain: Domain, request: Request, claims: dict[str, Any]) -> None:
    """Check the signature, the audience and the times, in this order."""
    assert domain.key is not None
    try:
        public = RSAKey.import_key(domain.key.as_dict(private=False))
        jwt.decode(request.form["assertion"], public, algorithms=["RS256"])
    except (JoseError, ValueError) as error:
        raise invalid("Invalid JWT Signature.") from error
    audience = text(claims, "aud")
    host = request.headers.get("host", "")
    ours = (urlsplit(audience).netloc, urlsplit(audience).path) == (host, ENDPOINT)
    if not ours and audience != REAL_AUDIENCE:
        raise invalid(WRONG_AUDIENCE)
    issued, expires, now = claims.get("iat"), claims.get("exp"), time.time()
    if not isinstance(issued, int | float) or not isinstance(expires, int | float):
        raise invalid(NOT_NOW)
    if abs(issued - now) > SKEW or not now - SKEW < expires or not 0 < expires - issued <= LIFETIME:
        raise invalid(NOT_NOW)


def impersonated(world: World, domain: Domain, claims: dict[str, Any]) -> Account:
    """The account that the token is for: a member of the domain, or without a subject the service account."""
    email = text(claims, "sub") or text(claims, "prn")
    if not email or email == domain.application.email:
        return domain.application
    account = world.account("google", email)
    if account is None or account.suspended:
        raise invalid("Invalid email or User ID")
    if domain.withdrawn or not domain.has(account):
        raise not_delegated()
    return account


def granted(domain: Domain, claims: dict[str, Any]) -> tuple[str, ...]:
    """The requested scopes, each of which the administrator must have authorized."""
    scopes = tuple(dict.fromkeys(full_name(word) for word in text(claims, "scope").split()))
    if not scopes:
        raise Refused(oauth_error("invalid_scope", "Invalid OAuth scope or ID token audience provided."))
    if domain.withdrawn or not set(scopes) <= set(domain.scopes):
        raise not_delegated()
    return scopes


def invalid(description: str) -> Refused:
    return Refused(oauth_error("invalid_grant", description))


def not_delegated() -> Refused:
    return Refused(oauth_error("unauthorized_client", NOT_DELEGATED, 401))


def text(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""

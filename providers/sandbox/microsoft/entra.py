"""Error bodies and headers of Microsoft's identity platform.

https://learn.microsoft.com/entra/identity-platform/reference-error-codes
"""

from __future__ import annotations

import time
import uuid

from providers.sandbox.exchange import Answer

HEADERS = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store, no-cache"}

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
    50027: (400, "invalid_request", "JWT token is invalid or malformed.", None),
    700023: (
        401,
        "invalid_client",
        "Client assertion audience claim does not match Realm issuer. Review the documentation.",
        None,
    ),
    700024: (
        401,
        "invalid_client",
        "Client assertion is not within its valid time range. Ensure that the access token is not expired "
        "before using it for user assertion, or request a new token.",
        None,
    ),
    700027: (
        401,
        "invalid_client",
        "The certificate with identifier used to sign the client assertion is not registered on application.",
        None,
    ),
    1002012: (
        400,
        "invalid_scope",
        "The provided value for scope is not valid. Client credential flows must have a scope value with "
        "/.default suffixed to the resource identifier (application ID URI).",
        None,
    ),
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

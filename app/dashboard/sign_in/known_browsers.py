"""A cookie for browsers that an administrator has used to sign in: other clients cannot lock them out.

The pattern is OWASP's "device cookies". The cookie proves no identity: with it, failed sign-ins are counted
only for this browser, and the limits for a name and for an address do not apply to it.
"""

from __future__ import annotations

import hmac
import secrets
from datetime import timedelta

from flask import Response, current_app, request
from itsdangerous import BadSignature, URLSafeTimedSerializer

COOKIE = "almanac_browser"
LIFETIME = timedelta(days=180)
# Only the sign-in and the account page read it.
PATH = "/dashboard"


def mark(response: Response, name_digest: str) -> Response:
    """Set the cookie that says that an administrator of this name has signed in with this browser."""
    response.set_cookie(
        COOKIE,
        _serializer().dumps([name_digest, secrets.token_hex(16)]),
        max_age=LIFETIME,
        path=PATH,
        httponly=True,
        samesite="Lax",
        secure=bool(current_app.config["SESSION_COOKIE_SECURE"]),
    )
    return response


def number(name_digest: str) -> str | None:
    """The random number in the cookie; None unless this name has signed in with this browser."""
    try:
        kept = _serializer().loads(request.cookies.get(COOKIE, ""), max_age=int(LIFETIME.total_seconds()))
    except BadSignature:
        return None
    marked_for, browser = kept
    return browser if hmac.compare_digest(marked_for, name_digest) else None


def _serializer() -> URLSafeTimedSerializer:
    assert current_app.secret_key is not None, "an application has a secret key"
    return URLSafeTimedSerializer(current_app.secret_key, salt="known browser")

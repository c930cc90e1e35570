"""Cross-site request forgery: a form is accepted only with a token of the session that showed it.

Each page has another token, so that the compressed size of pages tells nothing about a token.
"""

from __future__ import annotations

import hmac
import secrets

from flask import request, session

FIELD = "csrf_token"
HEADER = "X-CSRFToken"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class ForgedRequest(Exception):
    """The request has no token of its session."""


def token() -> str:
    """A token for the forms of one page. The first one of a session makes the session's secret."""
    secret = session.setdefault(FIELD, secrets.token_urlsafe(32))
    nonce = secrets.token_urlsafe(8)
    return f"{nonce}.{_signature(secret, nonce)}"


def check() -> None:
    """Check the token of a request that may change something.

    :raise ForgedRequest: when it is not of this session
    """
    if request.method in _SAFE_METHODS:
        return
    sent = request.form.get(FIELD) or request.headers.get(HEADER, "")
    nonce, _, signature = sent.partition(".")
    secret = session.get(FIELD)
    if secret is None or not hmac.compare_digest(signature.encode(), _signature(secret, nonce).encode()):
        raise ForgedRequest


def _signature(secret: str, nonce: str) -> str:
    return hmac.new(secret.encode(), nonce.encode(), "sha256").hexdigest()

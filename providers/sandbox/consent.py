"""Authorization codes, PKCE and id tokens, which both OAuth servers share."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson

from providers.sandbox.accounts import Account
from providers.sandbox.exchange import Answer, Request

# Lifetime of a code, in seconds: https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2
CODE_LIFETIME = 600
# Client ids, secrets and tenants with this prefix are unknown, for tests of a misconfigured application.
WRONG = "wrong"
# Secrets with this prefix have expired.
EXPIRED = "expired"
# Prefix of every issued code.
CODE = "4/0A"


@dataclass(frozen=True, slots=True)
class Code:
    """The consent behind an authorization code."""

    account: Account
    scopes: tuple[str, ...]
    client_id: str
    redirect_uri: str
    challenge: str
    challenge_method: str
    nonce: str
    offline: bool
    ends: float

    def is_met_by(self, form: dict[str, str]) -> bool:
        """Whether the client that redeems the code requested it: https://www.rfc-editor.org/rfc/rfc7636"""
        if form.get("redirect_uri", "") != self.redirect_uri or time.time() > self.ends:
            return False
        # With basic authentication the form need not name the client.
        if form.get("client_id", self.client_id) != self.client_id:
            return False
        if not self.challenge:
            return True
        verifier = form.get("code_verifier", "")
        if self.challenge_method == "S256":
            verifier = encoded(hashlib.sha256(verifier.encode()).digest())
        return secrets.compare_digest(verifier.encode(), self.challenge.encode())


class Codes:
    """The codes not yet redeemed."""

    def __init__(self) -> None:
        self.open: dict[str, Code] = {}

    def issue(self, account: Account, scopes: tuple[str, ...], request: Request, *, offline: bool) -> str:
        """Issue a code for an authorization request."""
        code = CODE + secrets.token_urlsafe(24)
        self.open[code] = Code(
            account=account,
            scopes=scopes,
            client_id=request.one("client_id"),
            redirect_uri=request.one("redirect_uri"),
            challenge=request.one("code_challenge"),
            challenge_method=request.one("code_challenge_method", "plain"),
            nonce=request.one("nonce"),
            offline=offline,
            ends=time.time() + CODE_LIFETIME,
        )
        return code

    def redeem(self, form: dict[str, str]) -> Code | None:
        """The consent behind a code, which can be redeemed once."""
        code = self.open.pop(form.get("code", ""), None)
        return code if code is not None and code.is_met_by(form) else None


def encoded(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def id_token(claims: dict[str, Any], lifetime: int) -> str:
    """An unsigned id token: it comes directly from the token endpoint, so clients need not verify it.

    https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation (step 6)
    """
    now = int(time.time())
    head = encoded(orjson.dumps({"alg": "none", "typ": "JWT"}))
    return f"{head}.{encoded(orjson.dumps({**claims, 'iat': now, 'exp': now + lifetime}))}."


def subject(account: Account) -> str:
    """The provider's stable id of a user."""
    digest = hashlib.sha256(f"{account.provider}:{account.email.lower()}".encode()).digest()
    return str(10**20 + int.from_bytes(digest[:8], "big"))


def back_to_application(request: Request, **answer: str) -> Answer:
    """Redirect to the application with a code or an error, and its state."""
    fields = {name: value for name, value in answer.items() if value}
    if state := request.one("state"):
        fields["state"] = state
    target = request.one("redirect_uri")
    joint = "&" if "?" in target else "?"
    return Answer(302, headers={"Location": f"{target}{joint}{urlencode(fields)}"})


def client_of(request: Request) -> tuple[str, str]:
    """Client id and secret, from the form or from basic authentication."""
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return request.form.get("client_id", ""), request.form.get("client_secret", "")
    try:
        client_id, _, secret = base64.b64decode(value).decode().partition(":")
    except ValueError:
        return WRONG, WRONG
    return client_id, secret

"""Checks id tokens: signature, issuer, audience, nonce and times.

https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from joserfc import jwt
from joserfc.errors import ClaimError, ExpiredTokenError, JoseError
from joserfc.jwk import KeySet

from providers.errors import ClockRefused, ProviderError
from providers.http.calls import Json

# Signatures by the provider's private key. Without ``none``, and without those made with a shared secret.
ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
# In seconds: how far the two clocks may be apart.
LEEWAY = 60
_INVALID = (JoseError, ValueError, TypeError, KeyError)
_OF_TIME = frozenset({"iat", "nbf", "exp"})

Keys = Callable[[bool], Json]


class Untrusted(ProviderError):
    """The provider's answer proves nothing: it is not from this issuer, or not for this sign-in."""


def check(
    token: object, keys: Keys, *, issuer: str, client_id: str, nonce: str | None, access_token: str
) -> Json:
    """The claims of an id token. ``keys(fresh)`` are the provider's keys, read again if ``fresh``.

    :raise ClockRefused: when it is valid at another time than now
    :raise Untrusted: when it is not valid at all
    """
    # Most workers check none.
    from authlib.oidc.core import CodeIDToken

    if not isinstance(token, str):
        raise Untrusted("The identity provider sent no id token")
    expected: dict[str, Any] = {
        "iss": {"essential": True, "value": issuer},
        "aud": {"essential": True, "value": client_id},
        "sub": {"essential": True},
    }
    known = {"nonce": nonce, "client_id": client_id, "access_token": access_token}
    try:
        decoded = _decoded(token, keys)
        claims = CodeIDToken(decoded.claims, decoded.header, expected, known)
        claims.validate(leeway=LEEWAY)
    except ExpiredTokenError:
        raise _clock() from None
    except ClaimError as error:
        if error.claim in _OF_TIME and isinstance(decoded.claims.get(error.claim), int | float):
            raise _clock() from None
        raise Untrusted(f"The id token has a wrong or missing claim: {error.claim}") from None
    except _INVALID as error:
        # The text of such an error may hold a part of the token.
        raise Untrusted(f"The id token is not valid ({type(error).__name__})") from None
    return dict(claims)


def _decoded(token: str, keys: Keys) -> jwt.Token:
    try:
        return jwt.decode(token, KeySet.import_key_set(keys(False)), algorithms=ALGORITHMS)  # type: ignore[arg-type]
    except _INVALID:
        # The provider has new keys. Without a key id in the token, only the signature shows it.
        return jwt.decode(token, KeySet.import_key_set(keys(True)), algorithms=ALGORITHMS)  # type: ignore[arg-type]


def _clock() -> ClockRefused:
    return ClockRefused("The id token is not valid at this moment: the two clocks differ")

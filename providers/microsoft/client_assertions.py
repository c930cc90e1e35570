"""How an application proves itself to Entra: by its secret, or by an assertion that its certificate signs.

https://learn.microsoft.com/en-us/entra/identity-platform/certificate-credentials
"""

from __future__ import annotations

import base64
import secrets
import time

from joserfc import jwt
from joserfc.jwk import RSAKey

from providers.microsoft.certificates import is_certificate, load
from providers.oauth.client import Client

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ALGORITHM = "PS256"
# Seconds that an assertion is valid.
ASSERTION_LIFE = 600
# Seconds for which it is valid before now: the clocks may differ.
EARLIER = 120


class Expired(Exception):
    """The certificate is no longer valid."""


def authentication(client: Client, token_url: str) -> dict[str, str]:
    """The fields of a token request that prove the client: its secret, or an assertion by its certificate.

    :raise Expired: if the certificate is no longer valid
    """
    secret = client.secret.reveal
    if not is_certificate(secret):
        return {"client_id": client.id, "client_secret": secret}
    certificate = load(secret)
    if certificate.expired:
        raise Expired
    now = int(time.time())
    claims = {
        "aud": token_url,
        "iss": client.id,
        "sub": client.id,
        "jti": secrets.token_hex(16),
        "iat": now - EARLIER,
        "nbf": now - EARLIER,
        "exp": now + ASSERTION_LIFE,
    }
    digest = base64.urlsafe_b64encode(bytes.fromhex(certificate.thumbprints[0])).decode().rstrip("=")
    header = {"alg": ALGORITHM, "x5t#S256": digest}
    assertion = jwt.encode(header, claims, RSAKey.import_key(certificate.key), algorithms=[ALGORITHM])
    return {
        "client_id": client.id,
        "client_assertion_type": ASSERTION_TYPE,
        "client_assertion": assertion,
    }

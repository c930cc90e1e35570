"""The certificate of an application, which signs assertions in place of a client secret.

https://learn.microsoft.com/en-us/entra/identity-platform/certificate-credentials
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from joserfc import jwt
from joserfc.jwk import RSAKey

from providers.oauth import private_keys
from providers.oauth.client import Client

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ALGORITHM = "PS256"
# Seconds that an assertion is valid.
ASSERTION_LIFE = 600
# Seconds for which it is valid before now: the clocks may differ.
EARLIER = 120

_BEGIN = "-----BEGIN "
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----", re.ASCII)
_KEY = re.compile(
    r"-----BEGIN (?P<kind>(?:RSA )?PRIVATE KEY)-----[A-Za-z0-9+/=\s]+-----END (?P=kind)-----", re.ASCII
)


class InvalidCertificate(ValueError):
    """The text is no certificate with its private key. The message has no part of the text."""


class Expired(Exception):
    """The certificate is no longer valid."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its private key. ``thumbprints`` are SHA-256 and SHA-1, in hexadecimal digits."""

    key: RSAKey = field(repr=False)
    expires_at: datetime
    thumbprints: tuple[str, str]

    @property
    def expired(self) -> bool:
        return self.expires_at <= datetime.now(UTC)


def is_certificate(secret: str) -> bool:
    """Whether a client secret is a certificate: no secret of Microsoft has spaces."""
    return secret.lstrip().startswith(_BEGIN)


@lru_cache(maxsize=64)
def load(pem: str) -> Certificate:
    """The certificate and its private key in a PEM text; others, such as those of a chain, may follow.

    :raise InvalidCertificate: if one of both is missing or not valid, or the key is of another certificate
    """
    found, key = _CERTIFICATE.search(pem), _KEY.search(pem)
    if found is None or key is None:
        raise InvalidCertificate("must hold a certificate and its private key (RSA, not encrypted) as PEM")
    try:
        # Not as PEM: an environment file may have made its line ends spaces.
        der = base64.b64decode("".join(found[0].split("-----")[2].split()))
        certificate = x509.load_der_x509_certificate(der)
        public = certificate.public_key()
        private = private_keys.load(key[0])
    except private_keys.WrongSize:
        sizes = f"{private_keys.MIN_BITS} to {private_keys.MAX_BITS}"
        raise InvalidCertificate(f"must have a private key of {sizes} bits") from None
    except ValueError:
        raise InvalidCertificate("must hold a valid certificate and a valid private key") from None
    own = private.public_key().public_numbers()
    if not isinstance(public, RSAPublicKey) or public.public_numbers() != own:
        raise InvalidCertificate("must hold the private key of the first certificate in it")
    # Microsoft shows SHA-1; nothing is proved by it.
    prints = hashlib.sha256(der).hexdigest(), hashlib.sha1(der, usedforsecurity=False).hexdigest()
    return Certificate(RSAKey.import_key(private), certificate.not_valid_after_utc, prints)


def checked(pem: str) -> str:
    """The text unchanged, or empty.

    :raise InvalidCertificate: as for ``load``
    """
    if pem:
        load(pem)
    return pem


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
    assertion = jwt.encode(header, claims, certificate.key, algorithms=[ALGORITHM])
    return {
        "client_id": client.id,
        "client_assertion_type": ASSERTION_TYPE,
        "client_assertion": assertion,
    }

"""The certificate of an application, in place of a client secret.

https://learn.microsoft.com/en-us/entra/identity-platform/certificate-credentials
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from providers.oauth import private_keys
from providers.oauth.private_keys import PrivateKey

_BEGIN = "-----BEGIN "
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----", re.ASCII)
_KEY = re.compile(
    r"-----BEGIN (?P<kind>(?:RSA )?PRIVATE KEY)-----[A-Za-z0-9+/=\s]+-----END (?P=kind)-----", re.ASCII
)


class InvalidCertificate(ValueError):
    """The text is no certificate with its private key. The message has no part of the text."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its private key. ``thumbprints`` are SHA-256 and SHA-1, in hexadecimal digits."""

    key: PrivateKey = field(repr=False)
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
    return Certificate(private, certificate.not_valid_after_utc, prints)


def checked(pem: str) -> str:
    """The text unchanged, or empty.

    :raise InvalidCertificate: as for ``load``
    """
    if pem:
        load(pem)
    return pem

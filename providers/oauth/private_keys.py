"""Loads the private RSA key of a service account or an application, in little time whatever was sent.

By default, OpenSSL checks that the factors of a key are prime. That takes seconds for a large key, and no
other thread of the process runs meanwhile. So this module reads the size from the encoded key first, and
omits the check: the provider refuses what a wrong key has signed.
"""

from __future__ import annotations

import base64
import re

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPrivateNumbers, RSAPublicNumbers

PrivateKey = RSAPrivateKey

# Google makes keys of 2 048 bits.
MIN_BITS, MAX_BITS = 1024, 4096

_PEM = re.compile(
    r"\s*-----BEGIN (?P<kind>(?:RSA )?PRIVATE KEY)-----\s(?P<content>[A-Za-z0-9+/=\s]*)"
    r"-----END (?P=kind)-----\s*",
    re.ASCII,
)
# In DER: the tags of the types that a key consists of, and the identifier of RSA keys (1.2.840.113549.1.1.1).
_INTEGER, _OCTETS, _SEQUENCE = 0x02, 0x04, 0x30
_RSA = bytes.fromhex("06092a864886f70d010101")
# Of a key: modulus, public and private exponent, two factors, their exponents, and a coefficient.
_NUMBERS = 8


class NotAnRsaKey(ValueError):
    """The text is no private RSA key in PEM format. No message has a part of the text."""


class WrongSize(ValueError):
    """The key has fewer than ``MIN_BITS`` or more than ``MAX_BITS`` bits."""


def load(pem: str) -> PrivateKey:
    """The key in a PEM text, in the format PKCS #8 or PKCS #1, not encrypted.

    :raise NotAnRsaKey: if it is none
    :raise WrongSize: if it is too small or too large; it is not loaded
    """
    modulus, public, private, p, q, p_exponent, q_exponent, coefficient = _numbers(pem)
    if not MIN_BITS <= modulus.bit_length() <= MAX_BITS:
        raise WrongSize
    # An odd product has odd factors; OpenSSL cannot calculate with even ones.
    if not modulus % 2 or min(public, private, p, q, p_exponent, q_exponent, coefficient) < 0:
        raise NotAnRsaKey
    try:
        # This compares the numbers with the modulus, and the modulus with the product of the factors.
        return RSAPrivateNumbers(
            p, q, private, p_exponent, q_exponent, coefficient, RSAPublicNumbers(public, modulus)
        ).private_key(unsafe_skip_rsa_key_validation=True)
    except ValueError:
        # Without its cause, which may show numbers.
        raise NotAnRsaKey from None


def _numbers(pem: str) -> list[int]:
    """The numbers of a key, in the order of RFC 8017, A.1.2."""
    found = _PEM.fullmatch(pem)
    if found is None:
        raise NotAnRsaKey
    try:
        encoded = base64.b64decode("".join(found["content"].split()), validate=True)
    except ValueError:
        raise NotAnRsaKey from None
    parts = _items(_only(encoded, _SEQUENCE))
    if found["kind"] == "PRIVATE KEY":
        # RFC 5208: version, algorithm, and the key as in PKCS #1; attributes may follow.
        kinds = [kind for kind, _ in parts[:3]]
        if kinds != [_INTEGER, _SEQUENCE, _OCTETS] or not parts[1][1].startswith(_RSA):
            raise NotAnRsaKey
        parts = _items(_only(parts[2][1], _SEQUENCE))
    # A version stands before the numbers. Keys of more than two factors have a ninth part.
    if [kind for kind, _ in parts] != [_INTEGER] * (1 + _NUMBERS):
        raise NotAnRsaKey
    return [int.from_bytes(content, "big", signed=True) for _, content in parts[1:]]


def _only(data: bytes, kind: int) -> bytes:
    """The content of the one item that ``data`` consists of."""
    items = _items(data)
    if len(items) != 1 or items[0][0] != kind:
        raise NotAnRsaKey
    return items[0][1]


def _items(data: bytes) -> list[tuple[int, bytes]]:
    """The items of DER data, each with its tag and its content."""
    items: list[tuple[int, bytes]] = []
    while data:
        # A length below 128 is one byte; otherwise its low bits are the number of bytes that have the length.
        start, size = 2, data[1] if len(data) > 1 else 0
        if size & 0x80:
            start += size & 0x7F
            size = int.from_bytes(data[2:start], "big")
        if start + size > len(data):
            raise NotAnRsaKey
        items.append((data[0], data[start : start + size]))
        data = data[start + size :]
    return items

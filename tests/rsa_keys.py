"""Large RSA keys that take no time to make: their factors are primes that RFCs publish.

RFC 3526 and RFC 7919 define primes by digits of pi and of e, so that nobody can have chosen them.
"""

from __future__ import annotations

from functools import cache
from math import gcd

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

# For each size of a factor in bits: the numbers that RFC 3526 and RFC 7919 add to the digits.
_ADDED = {2048: (124476, 560316), 4096: (240904, 5736041)}
_EXPONENT = 65537


@cache
def pem(bits: int) -> str:
    """A private key of 4 096 or 8 192 bits, as PKCS #8. Everybody knows its factors."""
    size = bits // 2
    of_pi, of_e = _ADDED[size]
    p, q = _prime(size, _pi(size - 130), of_pi), _prime(size, _e(size - 130), of_e)
    assert gcd((p - 1) * (q - 1), _EXPONENT) == 1
    d = pow(_EXPONENT, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(_EXPONENT, p * q)
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public)
    return (
        numbers.private_key(unsafe_skip_rsa_key_validation=True)
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        .decode()
    )


def _prime(bits: int, digits: int, added: int) -> int:
    return int(2**bits - 2 ** (bits - 64) + (digits + added) * 2**64 - 1)


def _pi(bits: int) -> int:
    """The first binary digits of pi, by Machin's formula."""
    unit = 1 << (bits + 64)
    return (4 * (4 * _arctan(5, unit) - _arctan(239, unit))) >> 64


def _arctan(inverse: int, unit: int) -> int:
    total, term, n = 0, unit // inverse, 1
    while term:
        total += (term // n) * (-1) ** (n // 2)
        term //= inverse * inverse
        n += 2
    return total


def _e(bits: int) -> int:
    """The first binary digits of e."""
    total, term, n = 0, 1 << (bits + 64), 1
    while term:
        total += term
        term //= n
        n += 1
    return total >> 64

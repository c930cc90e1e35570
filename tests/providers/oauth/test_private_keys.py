"""Private RSA keys: both encodings are read, and nothing else is, in little time."""

from __future__ import annotations

import base64
import time
from contextlib import suppress

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from hypothesis import given
from hypothesis import strategies as some

from providers.oauth.private_keys import NotAnRsaKey, WrongSize, load
from tests import rsa_keys

KEY = rsa.generate_private_key(65537, 2048)
PEM = serialization.Encoding.PEM
PLAIN = serialization.NoEncryption()


def written(key: rsa.RSAPrivateKey, form: serialization.PrivateFormat) -> str:
    return key.private_bytes(PEM, form, PLAIN).decode()


PKCS8 = written(KEY, serialization.PrivateFormat.PKCS8)
PKCS1 = written(KEY, serialization.PrivateFormat.TraditionalOpenSSL)


@pytest.mark.parametrize("pem", [PKCS8, PKCS1, PKCS8.replace("\n", "\r\n"), f"\n{PKCS8}\n"])
def test_a_key_signs_after_loading(pem):
    loaded = load(pem)
    signature = loaded.sign(b"x", padding.PKCS1v15(), hashes.SHA256())
    KEY.public_key().verify(signature, b"x", padding.PKCS1v15(), hashes.SHA256())


def test_the_largest_key_is_loaded_and_a_larger_one_refused_in_no_time():
    began = time.process_time()
    assert load(rsa_keys.pem(4096)).key_size == 4096
    with pytest.raises(WrongSize):
        load(rsa_keys.pem(8192))
    assert time.process_time() - began < 0.2


def test_a_small_key_is_refused():
    with pytest.raises(WrongSize):
        load(pem_of(0, 15, 3, 3, 3, 5, 1, 3, 2))


def der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def pem_of(*numbers: int) -> str:
    """A key in PKCS #1 with these numbers."""
    parts = b"".join(
        der(2, each.to_bytes(each.bit_length() // 8 + 1, "big", signed=True)) for each in numbers
    )
    text = base64.encodebytes(der(0x30, parts)).decode()
    return f"-----BEGIN RSA PRIVATE KEY-----\n{text}-----END RSA PRIVATE KEY-----\n"


OWN = KEY.private_numbers()
NUMBERS = (0, KEY.public_key().public_numbers().n, 65537, OWN.d, OWN.p, OWN.q, OWN.dmp1, OWN.dmq1, OWN.iqmp)


def test_the_numbers_of_a_key_are_read():
    assert load(pem_of(*NUMBERS)).private_numbers() == OWN


@pytest.mark.parametrize(
    "numbers",
    [
        NUMBERS[:-1],
        (*NUMBERS, 3),
        # Not the product of its factors.
        (0, NUMBERS[1] + 2, *NUMBERS[2:]),
        # Even: calculations would fail.
        (0, NUMBERS[1] * 2, *NUMBERS[2:5], NUMBERS[5] * 2, *NUMBERS[6:]),
        # Factors or exponents that are larger than the modulus.
        (*NUMBERS[:4], 1 << 9000, *NUMBERS[5:]),
        (*NUMBERS[:3], 1 << 9000, *NUMBERS[4:]),
        (*NUMBERS[:3], -5, *NUMBERS[4:]),
    ],
    ids=["eight", "ten", "product", "even", "factor", "exponent", "negative"],
)
def test_numbers_that_are_no_key_are_refused(numbers):
    with pytest.raises(NotAnRsaKey):
        load(pem_of(*numbers))


@pytest.mark.parametrize(
    "pem",
    [
        "",
        "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
        PKCS8[:900],
        PKCS8.replace("PRIVATE KEY", "RSA PRIVATE KEY"),
        PKCS1.replace("RSA PRIVATE KEY", "PRIVATE KEY"),
        PKCS8.replace("A", "!", 1),
        PKCS8 + PKCS8,
        KEY.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode(),
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(PEM, serialization.PrivateFormat.PKCS8, PLAIN)
        .decode(),
        KEY.private_bytes(
            PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
        ).decode(),
    ],
)
def test_other_texts_are_refused(pem):
    with pytest.raises(NotAnRsaKey):
        load(pem)


ENCODED = base64.b64decode("".join(PKCS8.splitlines()[1:-1]))


@given(some.integers(0, len(ENCODED) - 1), some.binary(max_size=6), some.integers(0, 6))
def test_a_damaged_key_is_a_key_or_refused(at, inserted, dropped):
    damaged = ENCODED[:at] + inserted + ENCODED[at + dropped :]
    text = base64.encodebytes(damaged).decode()
    with suppress(NotAnRsaKey, WrongSize):
        load(f"-----BEGIN PRIVATE KEY-----\n{text}-----END PRIVATE KEY-----\n")

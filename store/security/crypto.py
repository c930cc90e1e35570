"""Encryption at rest, by AES-GCM with several keys, and the form of API keys, which are stored as hashes.

Every ciphertext is bound to the row that holds it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FORMAT = b"\x01"
KEY_ID_BYTES = 4
NONCE_BYTES = 12

# The prefix of a ciphertext, which identifies the key.
PREFIX_BYTES = len(FORMAT) + KEY_ID_BYTES


class Undecipherable(Exception):
    """No key of the keyring decrypts this ciphertext with this associated data."""


class Keyring:
    """The first key encrypts, every key decrypts. To rotate, put a new key in front.

    A ciphertext is ``format (1) | key id (4) | nonce (12) | AES-GCM``. ``associated_data`` names
    table, row and column, so that a ciphertext copied to another row does not decrypt there.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise ValueError("a keyring needs a key")
        self._keys = {_key_id(key): AESGCM(key) for key in keys}
        self._first = _key_id(keys[0])

    def __repr__(self) -> str:
        return f"<Keyring of {len(self._keys)}>"

    @property
    def prefix(self) -> bytes:
        """The prefix of every ciphertext of the first key."""
        return FORMAT + self._first

    def encrypt(self, text: str, associated_data: str) -> bytes:
        """Encrypt ``text``, bound to ``associated_data``."""
        nonce = os.urandom(NONCE_BYTES)
        ciphertext = self._keys[self._first].encrypt(nonce, text.encode(), associated_data.encode())
        return self.prefix + nonce + ciphertext

    def decrypt(self, ciphertext: bytes, associated_data: str) -> str:
        """Decrypt a text that was encrypted with ``associated_data``.

        :raise Undecipherable: when it was encrypted with other associated data, altered, or its key is not on
            the ring
        """
        key_id, rest = ciphertext[1 : 1 + KEY_ID_BYTES], ciphertext[1 + KEY_ID_BYTES :]
        key = self._keys.get(key_id)
        if ciphertext[:1] != FORMAT or key is None:
            raise Undecipherable(f"no key for {associated_data}")
        try:
            return key.decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], associated_data.encode()).decode()
        except (InvalidTag, ValueError) as error:
            raise Undecipherable(f"{associated_data} cannot be decrypted") from error


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"almanac key id" + key).digest()[:KEY_ID_BYTES]


SECRET_BYTES = 24
VISIBLE = 8


def tried_and_failed(openings: Iterable[Callable[[], object]]) -> tuple[int, int]:
    """Try to open encrypted values; returns how many were tried, and how many no key decrypts."""
    tried = failed = 0
    for each in openings:
        tried += 1
        try:
            each()
        except Undecipherable:
            failed += 1
    return tried, failed


def new_key(prefix: str) -> str:
    """A new key: ``prefix`` followed by 192 random bits."""
    return prefix + secrets.token_urlsafe(SECRET_BYTES)


def digest(key: str) -> str:
    """The hash under which a key or another secret is stored. One SHA-256 is enough, as all are random."""
    return hashlib.sha256(key.encode()).hexdigest()


def visible_part(key: str, prefix: str) -> str:
    """The start of a key, by which people distinguish their keys."""
    return key[: len(prefix) + VISIBLE]

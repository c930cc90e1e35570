"""Encryption at rest: AES-GCM under a ring of keys, every ciphertext bound to the row that holds it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FORMAT = b"\x01"
KEY_ID_BYTES = 4
NONCE_BYTES = 12

# What tells of a ciphertext by which key it was sealed.
PREFIX_BYTES = len(FORMAT) + KEY_ID_BYTES


class Undecipherable(Exception):
    """No key of the ring opens this ciphertext in this place."""


class Keyring:
    """The first key encrypts, every key decrypts: put a new key in front to rotate.

    A ciphertext is ``format (1) | key id (4) | nonce (12) | AES-GCM``. ``place`` names table, row and
    column; a ciphertext copied to another row does not open there.
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
        """How everything begins that the first key has sealed."""
        return FORMAT + self._first

    def encrypt(self, text: str, place: str) -> bytes:
        """``text`` sealed for ``place``."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._keys[self._first].encrypt(nonce, text.encode(), place.encode())
        return self.prefix + nonce + sealed

    def decrypt(self, sealed: bytes, place: str) -> str:
        """The text sealed for ``place``.

        :raise Undecipherable: when it was sealed for another place, altered, or under a key we lack
        """
        key_id, rest = sealed[1 : 1 + KEY_ID_BYTES], sealed[1 + KEY_ID_BYTES :]
        key = self._keys.get(key_id)
        if sealed[:1] != FORMAT or key is None:
            raise Undecipherable(f"no key for {place}")
        try:
            return key.decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], place.encode()).decode()
        except (InvalidTag, ValueError) as error:
            raise Undecipherable(f"{place} does not open") from error


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"almanac key id" + key).digest()[:KEY_ID_BYTES]

"""Tokens at rest."""

from __future__ import annotations

import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.security.crypto import Keyring, Undecipherable

OLD, NEW = secrets.token_bytes(32), secrets.token_bytes(32)


@given(text=st.text(), associated_data=st.text())
def test_what_was_sealed_opens_in_its_place(text, associated_data):
    ring = Keyring([NEW])

    assert ring.decrypt(ring.encrypt(text, associated_data), associated_data) == text


def test_same_text_has_different_ciphertexts():
    ring = Keyring([NEW])

    assert ring.encrypt("token", "a") != ring.encrypt("token", "a")


def test_a_ciphertext_copied_to_another_row_does_not_open():
    ring = Keyring([NEW])
    sealed = ring.encrypt("token", "oauth_connections/1/access")

    with pytest.raises(Undecipherable):
        ring.decrypt(sealed, "oauth_connections/2/access")


@given(data=st.data())
def test_an_altered_ciphertext_does_not_open(data):
    ring = Keyring([NEW])
    sealed = bytearray(ring.encrypt("token", "a"))
    at = data.draw(st.integers(0, len(sealed) - 1))
    sealed[at] ^= data.draw(st.integers(1, 255))

    with pytest.raises(Undecipherable):
        ring.decrypt(bytes(sealed), "a")


@given(st.binary(max_size=40))
def test_bytes_that_are_no_ciphertext_do_not_open(garbage):
    with pytest.raises(Undecipherable):
        Keyring([NEW]).decrypt(garbage, "a")


def test_rotation_opens_the_old_and_seals_with_the_new():
    sealed_before = Keyring([OLD]).encrypt("token", "a")
    rotated = Keyring([NEW, OLD])

    assert rotated.decrypt(sealed_before, "a") == "token"
    assert Keyring([NEW]).decrypt(rotated.encrypt("token", "a"), "a") == "token"


def test_a_key_taken_off_the_ring_opens_nothing():
    sealed = Keyring([OLD]).encrypt("token", "a")

    with pytest.raises(Undecipherable):
        Keyring([NEW]).decrypt(sealed, "a")


def test_a_keyring_shows_no_key():
    assert OLD.hex() not in repr(Keyring([OLD]))

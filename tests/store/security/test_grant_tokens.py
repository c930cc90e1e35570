"""Tokens of organization grants in Redis are saved, refused and forgotten."""

from __future__ import annotations

import logging

import pytest

from store.security.crypto import Keyring
from store.security.grant_tokens import CachedToken, GrantTokens, TokenOwner


@pytest.fixture
def tokens(stores) -> GrantTokens:
    return stores.grant_tokens


@pytest.fixture
def owner(unique) -> TokenOwner:
    return TokenOwner(unique("grant"), "ada@example.com")


def test_a_refusal_is_forgotten_when_a_token_is_saved(tokens, owner):
    """Otherwise an account whose access was restored stays refused for a minute."""
    tokens.refuse(owner, "suspended")
    assert tokens.load(owner) == CachedToken(refused="suspended")

    tokens.save(owner, "token", 3600)

    assert tokens.load(owner) == CachedToken("token")


def test_a_refusal_ends_the_token(tokens, owner):
    tokens.save(owner, "token", 3600)

    tokens.refuse(owner, "suspended")

    assert tokens.load(owner) == CachedToken(refused="suspended")


def test_a_token_of_a_key_that_is_gone_is_dropped_without_a_warning(stores, tokens, owner, caplog):
    """A rotation of the key drops one for each mailbox."""
    GrantTokens(stores.redis, Keyring([b"x" * 32])).save(owner, "token", 3600)

    with caplog.at_level(logging.INFO):
        assert tokens.load(owner) == CachedToken()

    assert [(each.levelname, "its encryption key is gone" in each.message) for each in caplog.records] == [
        ("INFO", True)
    ]


def test_what_is_forgotten_is_that_of_one_grant(tokens, owner, unique):
    other = TokenOwner(unique("grant"), owner.member)
    for each in (owner, other, TokenOwner(owner.grant)):
        tokens.save(each, "token", 3600)

    tokens.forget(owner.grant)

    assert [tokens.load(each).token for each in (owner, TokenOwner(owner.grant), other)] == [
        None,
        None,
        "token",
    ]

"""Tokens of organization grants in Redis are saved, refused and forgotten."""

from __future__ import annotations

import pytest

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

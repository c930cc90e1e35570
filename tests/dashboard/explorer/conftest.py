"""Fixtures: people for the pictures of the explorer."""

from __future__ import annotations

import pytest


@pytest.fixture
def ada(sandbox, new_user):
    """Create a user with two accounts and these meetings; ``other`` are those of the second account."""

    def make(*events, other=(), name="ada", slugs=()):
        accounts = [
            sandbox.account("google", f"{name}@example.com", events=events),
            sandbox.account("microsoft", f"{name}@contoso.example", events=other),
        ]
        return new_user(*accounts, name=name, slugs=slugs)

    return make


@pytest.fixture
def lanes(new_organization, new_user):
    """An organization with a lane for each user, as it has too many for columns."""

    def make():
        slug = new_organization()
        for n in range(3):
            new_user(name=f"other{n}", slugs=(slug,))
        return slug

    return make

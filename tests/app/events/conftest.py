"""Fixtures: users with an account of one provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from providers.sandbox.client import Sandbox
from tests.app.at_provider import AtProvider, Person
from tests.conftest import Api

ADA = "ada@example.com"


@pytest.fixture
def new_person(api: Api, sandbox: Sandbox, new_user: Callable[..., str]) -> Callable[..., Person]:
    """Make a user with an account of one provider."""

    def make(provider: str, **account: Any) -> Person:
        made = sandbox.account(provider, ADA, **account)
        return Person(api, new_user(made), made, AtProvider(sandbox, made))

    return make


@pytest.fixture
def person(new_person: Callable[..., Person], provider: str) -> Person:
    """A user with an account of the parametrized provider."""
    return new_person(provider)

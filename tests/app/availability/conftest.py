"""Fixtures: users with meetings, and requests for their slots."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from werkzeug.test import TestResponse

from providers.sandbox.client import Sandbox
from tests.app.days import DAY, MORNING
from tests.conftest import Api


@pytest.fixture
def ada(sandbox: Sandbox, new_user: Callable[..., str]) -> Callable[..., str]:
    """Make a user with a Google account and these meetings."""
    numbers = itertools.count(1)

    def make(*events: Any, slugs: tuple[str, ...] = (), **account: Any) -> str:
        email = f"ada{next(numbers)}@example.com"
        return new_user(sandbox.account("google", email, events=events, **account), slugs=slugs)

    return make


@pytest.fixture
def slots(api: Api) -> Callable[..., TestResponse]:
    """Request a user's slots: by default those of an hour on Thursday morning."""
    return lambda user, headers=None, **query: api.get(
        f"/users/{user}/scheduling", headers=headers, **(MORNING | query)
    )


@pytest.fixture
def scheduled(api: Api) -> Callable[..., TestResponse]:
    """Request a user's slots of Thursday inside weekly schedules, with overrides of dates."""
    return lambda user, schedules, overrides=None, headers=None, **query: api.post(
        f"/users/{user}/scheduling",
        {"schedules": schedules} | ({} if overrides is None else {"overrides": overrides}),
        headers=headers,
        query_string=DAY | query,
    )

"""The world that the contract's tests call the API in, and the examples that they record."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.app.days import before_thursday
from tests.contract import examples
from tests.contract.world import World


@pytest.fixture(autouse=True)
def in_november(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows hold time on Thursday."""
    before_thursday(monkeypatch)


@pytest.fixture
def new_world(api, sandbox, new_api, new_user, new_organization, new_app) -> Callable[[str], World]:
    """Make a world: ``new_world("google")``."""

    def make(provider: str) -> World:
        world = World(api, sandbox, provider, new_api, new_user, new_organization, new_app)
        world.create()
        return world

    return make


def pytest_sessionfinish(exitstatus: int) -> None:
    if examples.RECORDING and exitstatus == 0:
        examples.keep()

"""A real server, and the Python clients that call it over a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from almanac_client import Almanac
from tests.almanac_client.clients import opened
from tests.conftest import Api
from tests.installation.processes import web_server


@pytest.fixture(scope="session")
def base_url(environment: dict[str, str], database: object, worker: None) -> Iterator[str]:
    """The URL of the server."""
    with web_server(environment, count=1) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=["blocking", "asyncio"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Almanac]]:
    """Make a client: ``connect(url, key)``. A test runs with the blocking and with the asynchronous one."""
    with ExitStack() as closing:
        yield lambda *args, **named: closing.enter_context(opened(request.param, *args, **named))


@pytest.fixture
def almanac(base_url: str, new_api: Callable[..., Api], connect: Callable[..., Almanac]) -> Almanac:
    """A client with a key that has all permissions."""
    return connect(base_url, new_api(shows_tokens=True).key)

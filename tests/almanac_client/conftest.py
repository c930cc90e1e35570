"""A real server, for clients that call it over a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from almanac_client import Almanac
from tests.conftest import Api
from tests.installation.processes import web_server


@pytest.fixture(scope="session")
def base_url(environment: dict[str, str], database: object, worker: None) -> Iterator[str]:
    """The URL of the server."""
    with web_server(environment, count=1) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def almanac(base_url: str, new_api: Callable[..., Api]) -> Iterator[Almanac]:
    """A client with a key that has all permissions."""
    with Almanac(base_url, new_api(shows_tokens=True).key) as client:
        yield client

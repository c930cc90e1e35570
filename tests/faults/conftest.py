"""One installation as in production for most faults: PostgreSQL, Redis, two web processes and two workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from providers.sandbox.client import Sandbox
from tests.faults import measured, servers
from tests.faults.installation import FaultInstallation, broken, server_folder


@pytest.fixture(scope="session")
def world(
    environment: dict[str, str], sandbox_process: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultInstallation]:
    """The installation that tests break and repair."""
    servers.postgresql().require()
    with server_folder("postgresql") as data:
        own: dict[str, servers.Server] = {
            "database": servers.PostgreSQL(data),
            "redis": servers.Redis(tmp_path_factory.mktemp("redis")),
        }
        folder = tmp_path_factory.mktemp("production")
        with broken(environment, Sandbox(sandbox_process), folder, own) as made:
            yield made


@pytest.fixture(scope="session")
def small(
    environment: dict[str, str], sandbox_process: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultInstallation]:
    """An installation with SQLite, as on one host."""
    own: dict[str, servers.Server] = {"redis": servers.Redis(tmp_path_factory.mktemp("redis"))}
    folder = tmp_path_factory.mktemp("small")
    with broken(environment, Sandbox(sandbox_process), folder, own, web=1) as made:
        yield made


@pytest.fixture
def fault(request: pytest.FixtureRequest) -> Callable[..., object]:
    """``with fault(world, "what", sees={"503"}) as case``; see ``measured.fault``."""
    test = request.node.nodeid.removeprefix("tests/faults/")
    return lambda world, what, **expected: measured.fault(world, test, what, **expected)

"""Servers that are gone for a while or are stopped: Redis, PostgreSQL, and RabbitMQ as the broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from providers.sandbox.client import Sandbox
from tests.faults import servers
from tests.faults.installation import FaultInstallation, broken, server_folder
from tests.faults.measured import AT_ONCE
from tests.faults.questions import Verdict

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

# The server's name and the fixture of its installation; then the fault, and how many seconds it lasts.
GONE = {
    "Redis": ("redis", "world", "Redis is killed, and started three seconds later", 3.0),
    "Redis for long": ("redis", "world", "Redis is killed, and started a minute later", 60.0),
    "PostgreSQL": ("database", "world", "PostgreSQL crashes, and is started three seconds later", 3.0),
    "RabbitMQ": ("broker", "with_rabbitmq", "RabbitMQ is stopped, then started", 2.0),
}

# Likewise; then the error that clients see.
STOPPED = {
    "Redis": ("redis", "world", "Redis is stopped for twelve seconds (SIGSTOP)", 12.0, "503"),
    "RabbitMQ": ("broker", "with_rabbitmq", "RabbitMQ is stopped for ten seconds (SIGSTOP)", 10.0, "502"),
}


@pytest.fixture(scope="module")
def with_rabbitmq(
    environment: dict[str, str], sandbox_process: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultInstallation]:
    """An installation with RabbitMQ as its broker, and with SQLite as on one host."""
    servers.rabbitmq().require()
    with server_folder("rabbitmq") as data:
        own: dict[str, servers.Server] = {
            "redis": servers.Redis(tmp_path_factory.mktemp("redis")),
            "broker": servers.RabbitMQ(data),
        }
        folder = tmp_path_factory.mktemp("rabbitmq")
        with broken(environment, Sandbox(sandbox_process), folder, own, web=1) as made:
            yield made


@pytest.fixture
def installation(request: pytest.FixtureRequest) -> Callable[[str], FaultInstallation]:
    """The installation by the name of its fixture: a test starts only the one that it breaks."""
    return request.getfixturevalue


@pytest.mark.parametrize(("server", "fixture", "what", "seconds"), GONE.values(), ids=GONE)
def test_a_server_is_gone_for_a_while(installation, fault, server, fixture, what, seconds):
    world = installation(fixture)
    with fault(world, what, sees={"503"}, may={"502", Verdict.PARTIAL}) as case:
        world.servers[server].stop()
        case.run_for(seconds)
        case.until_seen()
        world.servers[server].start()
        case.wait_for_recovery(within=AT_ONCE)


@pytest.mark.parametrize(("server", "fixture", "what", "seconds", "error"), STOPPED.values(), ids=STOPPED)
def test_a_server_is_stopped(installation, fault, server, fixture, what, seconds, error):
    world = installation(fixture)
    with fault(world, what, sees={error}, may={"502", "503", Verdict.PARTIAL}) as case:
        with world.servers[server].still():
            case.run_for(seconds)
            case.until_seen()
        case.wait_for_recovery(within=AT_ONCE)

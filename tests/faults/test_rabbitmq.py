"""RabbitMQ as the broker, which stops and restarts; with SQLite, as on one host."""

from __future__ import annotations

import pytest

from providers.sandbox.client import Sandbox
from tests.faults import servers
from tests.faults.installation import broken, server_folder
from tests.faults.measured import AT_ONCE

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

NAMED = "names what it could not read"


@pytest.fixture(scope="module")
def beside(environment, sandbox_process, tmp_path_factory):
    """An installation with RabbitMQ as its broker, and SQLite."""
    servers.rabbitmq().require()
    with server_folder("rabbitmq") as data:
        own = {"redis": servers.Redis(tmp_path_factory.mktemp("redis")), "broker": servers.RabbitMQ(data)}
        folder = tmp_path_factory.mktemp("beside")
        with broken(environment, Sandbox(sandbox_process), folder, own, web=1) as made:
            yield made


def test_rabbitmq_is_gone_for_a_while(beside, fault):
    broker = beside.servers["broker"]
    with fault(beside, "RabbitMQ is stopped, then started", sees={"503"}, may={"502", NAMED}) as case:
        broker.stop()
        case.look(2.0)
        case.until_seen()
        broker.start()
        case.back(within=AT_ONCE)


def test_rabbitmq_is_stopped(beside, fault):
    broker = beside.servers["broker"]
    what = "RabbitMQ is stopped for ten seconds (SIGSTOP)"
    with fault(beside, what, sees={"502"}, may={"503", NAMED}) as case:
        with broker.still():
            case.look(10.0)
            case.until_seen()
        case.back(within=AT_ONCE)

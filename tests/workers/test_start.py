"""A worker that cannot start says why in one line, and exits with a status that its supervisor sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from redis import Redis

from store.config import embedded_redis
from store.config.settings import new_secrets
from tests import services
from tests.installation.processes import free_port
from tests.waiting import until

pytestmark = pytest.mark.slow

ALMANAC = Path(sys.executable).parent / "almanac"
CELERY = [sys.executable, "-m", "celery", "--quiet", "-A", "workers.main", "worker", "--pool", "threads"]


def environment(folder: Path, **settings: str) -> dict[str, str]:
    secret, encryption = new_secrets()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    ours = {"DATA_DIR": str(folder), "SECRET_KEY": secret, "ENCRYPTION_KEYS": encryption, **settings}
    return clean | {f"ALMANAC_{name}": value for name, value in ours.items()}


def run(command: list[str], folder: Path, **settings: str) -> tuple[int, str]:
    ran = subprocess.run(
        command, env=environment(folder, **settings), capture_output=True, text=True, timeout=110
    )
    assert ran.stdout == ""
    return ran.returncode, ran.stderr


def test_without_a_broker_it_ends_with_one_line(tmp_path: Path):
    url = f"redis://:planted-password@127.0.0.1:{free_port()}/0"

    status, printed = run([str(ALMANAC), "worker"], tmp_path, REDIS_URL=url)

    assert status == 1
    assert printed.count("\n") == 1
    assert printed.startswith("Error: the broker at redis://:**@127.0.0.1:")
    assert "Connection refused" in printed
    assert "planted" not in printed


@pytest.mark.long
def test_a_broker_that_refuses_the_password_is_named_without_it(tmp_path: Path):
    services.rabbitmq().require()
    url = services.RABBITMQ.replace("guest:guest", "guest:planted-password")

    status, printed = run([str(ALMANAC), "worker"], tmp_path, BROKER_URL=url)

    assert (status, printed.count("\n")) == (1, 1)
    assert printed.startswith("Error: the broker at amqp://guest:**@")
    assert "planted" not in printed


@pytest.mark.parametrize(
    ("command", "name"),
    [
        pytest.param([str(ALMANAC), "worker"], "REDIS_URL", id="ours"),
        pytest.param(CELERY, "BROKER_URL", id="celery", marks=pytest.mark.long),
    ],
)
def test_an_address_that_is_none_is_named_by_its_setting(tmp_path: Path, command, name):
    status, printed = run(command, tmp_path, **{name: "http://:planted-password@127.0.0.1:6379"})

    assert (status, printed.count("\n")) == (1, 1)
    assert printed.startswith(f"Error: ALMANAC_{name} must be like redis://host:6379/0")
    assert "planted" not in printed


def commands(client: Redis) -> set[tuple[str, str]]:
    """The last command of each connection of the server, with the database that it uses."""
    return {(each["cmd"], each["db"]) for each in client.client_list()}


def test_on_a_unix_socket_it_starts_without_a_broker_of_its_own(tmp_path: Path):
    socket = tmp_path / "redis.sock"
    redis = embedded_redis.start(tmp_path, socket)
    client = Redis(unix_socket_path=str(socket), db=3)
    variables = environment(tmp_path, REDIS_URL=f"unix://{socket}?db=3")
    worker = subprocess.Popen([str(ALMANAC), "worker"], env=variables)
    try:
        # It waits for tasks in the database that the address names.
        until(lambda: worker.poll() is not None or ("brpop", "3") in commands(client))
        assert worker.poll() is None, "the worker ended by itself"
    finally:
        client.close()
        worker.terminate()
        assert worker.wait(timeout=60) == 0
        redis.terminate()
        redis.wait(timeout=60)

"""The Procfile, run by honcho on PostgreSQL and Redis, with Redis and with RabbitMQ as the broker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest
import redis
import requests

from app.server.supervisor import sandbox_environment
from store.config.settings import new_secrets
from tests import services
from tests.conftest import settings_of
from tests.databases import own_postgresql
from tests.docs.fences import blocks
from tests.installation.processes import START_SECONDS, STOP_SECONDS, free_port, ready, running, wait_until
from tests.packaging.files import ROOT
from workers.celery_app import create_celery

BIN = Path(sys.executable).parent

# A database of Redis that no other test uses.
REDIS = re.sub(r"/\d+$", "/11", services.REDIS)

PEOPLE = {"ada", "bruno", "chiara", "dmitri", "emiko", "farah", "gabriel", "ines", "kamal"}
ROOMS = {"room-lagoon", "room-meadow"}
PASSWORD = "planted-flower-password"


@dataclass
class Installation:
    """The environment of every process."""

    environment: dict[str, str]
    folder: Path
    port: int
    flower_port: int

    @contextmanager
    def start(self, *processes: str) -> Iterator[subprocess.Popen[bytes]]:
        """Processes of the Procfile, each once, until the block ends."""
        command = [str(BIN / "honcho"), "--app-root", str(self.folder), "--procfile", str(ROOT / "Procfile")]
        with running([*command, "start", *processes], self.environment) as honcho:
            yield honcho

    def almanac(self, *words: str) -> str:
        ran = subprocess.run(
            [str(BIN / "almanac"), *words], env=self.environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def workers(self) -> set[str]:
        """The names of the workers that answer."""
        with create_celery(settings_of(self.environment)) as celery:
            return {name for reply in celery.control.ping(timeout=1) for name in reply}

    def slots(self, key: str) -> requests.Response:
        """A request that reads all calendars, without the cache."""
        return requests.get(
            f"http://127.0.0.1:{self.port}/v1/organizations/demo/scheduling",
            params={"start": "2026-11-23", "end": "2026-11-24"},
            headers={"Authorization": f"Bearer {key}", "Cache-Control": "no-cache"},
            timeout=30,
        )


@pytest.fixture(params=["redis", "rabbitmq"])
def installation(
    request: pytest.FixtureRequest, sandbox_process: str, tmp_path: Path
) -> Iterator[Installation]:
    services.postgresql().require()
    services.redis_server().require()
    if request.param == "rabbitmq":
        services.rabbitmq().require()
    secret, encryption = new_secrets()
    port, flower_port = free_port(), free_port()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    with own_postgresql() as database:
        ours = sandbox_environment(sandbox_process) | {
            "ALMANAC_DATABASE_URL": database,
            "ALMANAC_REDIS_URL": REDIS,
            "ALMANAC_BROKER_URL": services.RABBITMQ if request.param == "rabbitmq" else REDIS,
            "ALMANAC_SECRET_KEY": secret,
            "ALMANAC_ENCRYPTION_KEYS": encryption,
            "ALMANAC_FLOWER_PASSWORD": PASSWORD,
            "ALMANAC_DATA_DIR": str(tmp_path / "data"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            # honcho counts up from here; web is the first.
            "PORT": str(port),
            "FLOWER_PORT": str(flower_port),
        }
        client = redis.Redis.from_url(REDIS)
        client.flushdb()
        yield Installation(clean | ours, tmp_path, port, flower_port)
        client.flushdb()
        client.close()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_procfile_serves_and_a_second_worker_may_come_and_go(installation, sandbox):
    with installation.start("release") as release:
        assert release.wait(timeout=START_SECONDS) == 0
    installation.almanac("seed", "demo", "--sandbox-url", sandbox.url)
    key = installation.almanac("keys", "create", "test")

    with installation.start("web", "worker", "beat", "flower") as honcho:
        wait_until(lambda: ready(f"http://127.0.0.1:{installation.port}"), [honcho])
        answers_for_everybody(installation.slots(key))
        (first,) = installation.workers()
        wait_until(lambda: parts_are_alive(installation), [honcho])
        flower = requests.get(
            f"http://127.0.0.1:{installation.flower_port}/api/workers?refresh=1",
            auth=("almanac", PASSWORD),
            timeout=20,
        )
        assert set(flower.json()) == {first}

        stop = Event()
        with ThreadPoolExecutor(4) as pool, installation.start("worker") as second:
            try:
                wait_until(lambda: len(installation.workers()) == 2, [second])
                answered = [[] for _ in range(3)]
                asking = [pool.submit(ask_until, stop, installation, key, each) for each in answered]
                more_answers(answered, honcho)
                second.terminate()
                second.wait(timeout=STOP_SECONDS)
                wait_until(lambda: installation.workers() == {first}, [honcho])
                more_answers(answered, honcho)
            finally:
                stop.set()
            for each in asking:
                each.result()
    assert not ready(installation.port)


def documented() -> list[str]:
    """The lines with which docs/operate/one-machine.md starts the Procfile."""
    (block,) = (
        block
        for block in blocks(ROOT / "docs/operate/one-machine.md")
        if block.info.get("reason") == "tests/packaging runs it: the Procfile"
    )
    return block.text.splitlines()


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("installation", ["redis"], indirect=True)
def test_documented_commands_start_every_process(installation):
    shutil.copy(ROOT / "Procfile", installation.folder)
    # The file alone decides where web listens.
    installation.environment.pop("PORT")
    release, everything = documented()
    assert "8080" in everything
    everything = everything.replace("8080", str(installation.port))

    assert (
        subprocess.run(
            ["bash", "-c", release],
            cwd=installation.folder,
            env=installation.environment,
            timeout=START_SECONDS,
        ).returncode
        == 0
    )
    command = ["bash", "-c", f"exec {everything}"]
    with running(command, installation.environment, folder=installation.folder) as honcho:
        wait_until(lambda: ready(f"http://127.0.0.1:{installation.port}"), [honcho])
        wait_until(lambda: len(installation.workers()) == 2, [honcho])
        wait_until(lambda: parts_are_alive(installation), [honcho])


def ask_until(stop: Event, installation: Installation, key: str, answered: list[requests.Response]) -> None:
    """Send one request after the other; each has to be answered for all users."""
    while not stop.is_set():
        answer = installation.slots(key)
        answers_for_everybody(answer)
        answered.append(answer)


def more_answers(answered: list[list[requests.Response]], honcho: subprocess.Popen[bytes]) -> None:
    """Wait until each client has begun and finished another request."""
    before = [len(each) for each in answered]
    wait_until(lambda: all(len(each) >= n + 2 for each, n in zip(answered, before, strict=True)), [honcho])


def answers_for_everybody(answer: requests.Response) -> None:
    assert answer.status_code == 200, answer.text
    body = answer.json()
    # She has withdrawn her consent.
    assert [failed["customId"] for failed in body["failedUsers"]] == ["hana"], body["failedUsers"]
    assert {slot["userId"] for slot in body["data"]["availableSlots"]} == PEOPLE | ROOMS


def parts_are_alive(installation: Installation) -> bool:
    for part in (
        ["web", "--port", str(installation.port)],
        ["worker"],
        ["beat"],
        ["flower", "--port", str(installation.flower_port)],
    ):
        command = [str(BIN / "almanac"), "healthy", *part]
        if subprocess.run(command, env=installation.environment, capture_output=True).returncode:
            return False
    return True

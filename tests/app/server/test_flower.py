"""Flower as `almanac flower` runs it: its sign-in, and what it shows while tasks run."""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from app.server import flower
from app.server.flower import FlowerSignIn, sign_in
from store.config.data_folder import socket_path
from store.config.settings import FlowerSettings, SettingsError, read_flower_settings
from store.coordination import heartbeats
from tests.app.cli.test_commands import ALMANAC, almanac, clean_environment
from tests.conftest import settings_of
from tests.installation.processes import START_SECONDS, STOP_SECONDS, free_port, wait_until

# Longer than the interval at which Flower enables events.
EVENTS_SECONDS = 6.0

# Starts a whole installation, which is too slow for the default run.
pytestmark = pytest.mark.long

PASSWORD = "planted-flower-password"
DAY = {"start": "2027-01-04", "end": "2027-01-05"}

# Tasks may contain only ids, queues, times and counts.
SAFE = re.compile(r"[0-9a-f]{24,32}|[0-9.]+")


@pytest.fixture
def settings_with(tmp_path: Path):
    def make(**environment: str):
        return settings_of({"ALMANAC_DATA_DIR": str(tmp_path), **environment})

    return make


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_on_loopback_a_missing_password_is_generated(settings_with, host):
    first, second = sign_in(settings_with(), host), sign_in(settings_with(), host)

    assert first.generated
    assert first.user == "almanac"
    assert len(first.password) >= 20
    assert first.password != second.password
    assert first.password not in repr(first)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "flower.example.com", ""])
def test_for_other_hosts_a_password_is_required(settings_with, host):
    with pytest.raises(SettingsError, match="ALMANAC_FLOWER_PASSWORD must be set"):
        sign_in(settings_with(), host)

    assert sign_in(settings_with(ALMANAC_FLOWER_PASSWORD=PASSWORD), host) == FlowerSignIn(
        "almanac", PASSWORD, False
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("USER", "a:b"), ("USER", "a,b"), ("PASSWORD", "a,b"), ("PASSWORD", "grün"), ("PASSWORD", "a\tb")],
)
def test_invalid_flower_credentials_are_refused_and_not_shown(settings_with, name, value):
    environment = {"ALMANAC_FLOWER_PASSWORD": PASSWORD, f"ALMANAC_FLOWER_{name}": value}

    with pytest.raises(SettingsError, match=f"ALMANAC_FLOWER_{name} must be printable ASCII") as refused:
        sign_in(settings_with(**environment), "0.0.0.0")
    assert value not in str(refused.value)


def test_its_process_gets_no_secret_and_no_setting_of_flower_from_outside():
    secrets = {
        f"ALMANAC_{name}{suffix}": "planted"
        for name in ("SECRET_KEY", "ENCRYPTION_KEYS", "DATABASE_URL", "METRICS_TOKEN", "GOOGLE_CLIENT_SECRET")
        for suffix in ("", "_FILE")
    }
    removed = secrets | {"FLOWER_UNAUTHENTICATED_API": "true", "FLOWER_READ_ONLY": "false"}
    kept = {"PATH": "/bin", "ALMANAC_REDIS_URL": "redis://redis:6379/0", "ALMANAC_LOG_FORMAT": "json"}

    environment = flower.environment(removed | kept, FlowerSignIn("ada", PASSWORD, False))

    assert environment == kept | {"FLOWER_BASIC_AUTH": f"ada:{PASSWORD}"}


def test_it_reads_no_setting_but_its_own(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("ALMANAC_")]:
        monkeypatch.delenv(name)
    embedded = read_flower_settings(tmp_path)
    assert embedded == FlowerSettings(
        broker_url=f"redis+socket://{socket_path(tmp_path)}", flower_user="almanac", flower_password=""
    )

    monkeypatch.setenv("ALMANAC_REDIS_URL", "redis://redis:6379/0")
    (tmp_path / "password").write_text(PASSWORD)
    monkeypatch.setenv("ALMANAC_FLOWER_PASSWORD_FILE", str(tmp_path / "password"))
    assert read_flower_settings() == FlowerSettings(
        broker_url="redis://redis:6379/0", flower_user="almanac", flower_password=PASSWORD
    )
    assert PASSWORD not in repr(read_flower_settings())

    monkeypatch.setenv("ALMANAC_BROKER_URL", "amqp://broker")
    assert read_flower_settings().broker_url == "amqp://broker"


def test_it_starts_with_the_broker_and_its_password_alone(environment, worker, tmp_path):
    """The environment of its container: without the database, the secret key and the encryption keys."""
    port = free_port()
    wanted = {"ALMANAC_REDIS_URL": f"unix://{socket_path(Path(environment['ALMANAC_DATA_DIR']))}"}
    wanted |= {"ALMANAC_FLOWER_PASSWORD": PASSWORD, "ALMANAC_DATA_DIR": str(tmp_path)}
    ours = {name: value for name, value in environment.items() if not name.startswith("ALMANAC_")} | wanted
    with subprocess.Popen([str(ALMANAC), "flower", "--port", str(port)], env=ours) as process:
        try:
            running = Running(f"http://127.0.0.1:{port}", process, PASSWORD)
            wait_until(lambda: healthy("--port", str(port)), [process])
            (name,) = running.get("/api/workers", params={"refresh": "1"}).json()
            assert name.startswith("test@")
            assert running.get("/broker").status_code == 200
        finally:
            process.terminate()
            process.wait(timeout=STOP_SECONDS)
    assert not list(tmp_path.iterdir())


def test_it_does_not_start_for_others_without_a_password(tmp_path):
    refused = almanac("flower", "--host", "0.0.0.0", data=tmp_path)

    assert refused.exit_code == 1
    assert "ALMANAC_FLOWER_PASSWORD must be set for Flower to listen on 0.0.0.0" in refused.stderr


def healthy(*options: str) -> bool:
    """Whether the health check of Flower's container passes."""
    return almanac("healthy", "flower", *options, data=Path("/")).exit_code == 0


class Running:
    """A Flower that answers; ``get`` signs in."""

    def __init__(self, url: str, process: subprocess.Popen[str], password: str) -> None:
        self.url, self.process = url, process
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.auth = ("almanac", password)

    def get(self, path: str, **more: Any) -> requests.Response:
        return self.session.get(f"{self.url}{path}", timeout=20, **more)


@pytest.fixture(scope="module")
def flower_process(environment: dict[str, str], worker: None) -> Iterator[Running]:
    """A Flower below a prefix, with a generated password, and with variables that it must ignore."""
    port = free_port()
    ours = environment | {"FLOWER_UNAUTHENTICATED_API": "true", "FLOWER_READ_ONLY": "false"}
    command = [str(ALMANAC), "flower", "--port", str(port), "--url-prefix", "/flower"]
    with subprocess.Popen(command, env=ours, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            printed = re.search(r"Flower: (\S+) .*with the password (\S+)\)", process.stdout.readline())
            assert printed is not None
            wait_until(lambda: healthy("--port", str(port), "--url-prefix", "/flower"), [process])
            yield Running(printed[1], process, printed[2])
        finally:
            process.terminate()
            process.wait(timeout=STOP_SECONDS)


def test_tasks_are_shown_with_ids_and_timestamps_only(flower_process, api, sandbox, new_user):
    account = sandbox.account("google", "planted-address@example.com")
    user = new_user(account)
    flower_process.get("/api/workers", params={"refresh": "1"})
    # Flower enables the worker's events every five seconds.
    time.sleep(EVENTS_SECONDS)

    assert api.get(f"/users/{user}/calendar/busy", **DAY).status_code == 200
    tasks = ended(flower_process)
    pages = "".join(flower_process.get(path).text for path in ("/tasks", "/workers", "/broker"))

    (drain,) = [task for task in tasks.values() if task["name"] == "reads.drain"]
    shown_arguments = ast.literal_eval(drain["kwargs"])
    assert set(shown_arguments) == {"fanout", "deadline", "most"}
    assert all(SAFE.fullmatch(str(value)) for value in shown_arguments.values())
    assert drain["args"] in ("()", "[]")
    assert drain["result"] in ("None", None)
    shown = json.dumps(tasks) + pages
    for secret in ("planted-address", account.access_token, account.refresh_token, api.key, user):
        assert secret not in shown


def ended(flower: Running) -> dict[str, Any]:
    """All tasks, once that of the reads has ended."""
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up:
        tasks: dict[str, Any] = flower.get("/api/tasks").json()
        if any(task["name"] == "reads.drain" and task["state"] == "SUCCESS" for task in tasks.values()):
            return tasks
        time.sleep(0.1)
    raise AssertionError(f"no task of reads has ended: {tasks}")


def test_it_needs_the_password_and_is_read_only(flower_process):
    url = flower_process.url
    (worker,) = flower_process.get("/api/workers", params={"refresh": "1"}).json()

    for path in ("/", "/tasks", "/broker", "/api/tasks", "/api/workers"):
        assert requests.get(f"{url}{path}", timeout=20).status_code == 401, path
        assert requests.get(f"{url}{path}", auth=("almanac", "guess"), timeout=20).status_code == 401, path
    assert flower_process.get("/tasks").status_code == 200
    assert 'href="/flower/' in flower_process.get("/").text
    for path in (f"/api/worker/shutdown/{worker}", "/api/task/async-apply/upkeep.renew_tokens"):
        assert flower_process.session.post(f"{url}{path}", timeout=20).status_code == 403, path
    # Every user of the host sees the arguments of a process.
    arguments = Path(f"/proc/{flower_process.process.pid}/cmdline").read_text()
    assert flower_process.session.auth[1] not in arguments


def test_nothing_is_healthy_where_nothing_runs(tmp_path):
    port = str(free_port())
    for part in (["web", "--port", port], ["flower", "--port", port]):
        refused = almanac("healthy", *part, data=tmp_path)
        assert refused.exit_code == 1
        assert f"port {port} does not answer" in refused.stderr
    for part, reason in (("worker", "the broker does not answer"), ("beat", "Redis does not answer")):
        refused = almanac("healthy", part, data=tmp_path)
        assert refused.exit_code == 1
        assert reason in refused.stderr


@pytest.mark.usefixtures("worker")
def test_a_worker_and_a_beat_of_this_host_are_healthy(environment, stores):
    settings = {name: value for name, value in environment.items() if name.startswith("ALMANAC_")}
    folder = Path(settings.pop("ALMANAC_DATA_DIR"))

    assert almanac("healthy", "worker", data=folder, **settings).exit_code == 0
    stores.redis.delete(heartbeats.BEAT)
    silent = almanac("healthy", "beat", data=folder, **settings)
    assert silent.exit_code == 1
    assert "has not ticked" in silent.stderr
    stores.heartbeats.record_beat()
    assert almanac("healthy", "beat", data=folder, **settings).exit_code == 0


def workers_seen(url: str, auth: tuple[str, str]) -> set[str]:
    """The workers that Flower knows, once it knows two: they have a second to answer, and may be starting."""
    give_up = time.monotonic() + START_SECONDS
    while True:
        answer = requests.get(f"{url}/api/workers?refresh=1", auth=auth, timeout=20)
        seen = {name.partition("@")[0] for name in answer.json()}
        if len(seen) > 1 or time.monotonic() > give_up:
            return seen
        time.sleep(0.2)


def test_flower_runs_with_the_other_processes_on_request(tmp_path):
    ports = {name: free_port() for name in ("--port", "--flower-port")}
    command = [str(ALMANAC), "up", "--flower", "--data", str(tmp_path)]
    command += [str(each) for option in ports.items() for each in option]
    with subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, text=True) as everything:
        try:
            assert everything.stdout is not None
            line = next(line for line in everything.stdout if line.startswith("Flower"))
            printed = re.fullmatch(r"Flower: (\S+) \(sign in as almanac with the password (\S+)\)\n", line)
            assert printed is not None
            assert workers_seen(printed[1], ("almanac", printed[2])) == {"worker1", "worker2"}
            # Beat has ticked by then, and its health check says so.
            assert almanac("healthy", "beat", data=tmp_path).exit_code == 0
        finally:
            # A second signal, as from timeout(1) or an impatient user.
            for _ in range(3):
                everything.terminate()
                time.sleep(0.2)
            assert everything.wait(timeout=STOP_SECONDS) == 0
    for port in ports.values():
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0

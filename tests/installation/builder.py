"""A separate installation for tests: web, workers and beat as in production, and their logs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import requests

from app.server import commands as processes
from providers.sandbox.client import SandboxAccount
from store.config import embedded_redis
from store.config.settings import Settings
from store.sql.queries import api_keys
from store.stores import Stores
from tests.conftest import START_SECONDS, STOP_SECONDS, settings_of


@dataclass
class Installation:
    """``parts`` are its processes by name. Paths of calls are below ``/v1``; calls use ``key``."""

    url: str
    settings: Settings
    stores: Stores
    key: str
    folder: Path
    environment: dict[str, str]
    commands: dict[str, list[str]]
    parts: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    session: requests.Session = field(default_factory=requests.Session)

    def call(self, method: str, path: str, /, **more: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.key}"} | more.pop("headers", {})
        return self.session.request(method, f"{self.url}/v1{path}", headers=headers, timeout=30, **more)

    def get(self, path: str, /, headers: dict[str, str] | None = None, **query: Any) -> requests.Response:
        return self.call("GET", path, params=query, headers=headers or {})

    def user(self, name: str, *accounts: SandboxAccount) -> str:
        """Register a user with accounts connected."""
        assert self.call("POST", "/users", json={"id": name}).status_code == 201
        for account in accounts:
            body = {
                "accessToken": account.access_token,
                "refreshToken": account.refresh_token,
                "email": account.email,
                "expiresAt": account.expires_at.isoformat(),
                "scope": account.scope.split(),
            }
            made = self.call("POST", f"/users/{name}/oauth/{account.provider}", json=body)
            assert made.status_code == 201, made.text
        return name

    def output(self, part: str | None = None) -> str:
        """The log of a part so far, or the logs of all parts."""
        names = [part] if part else [path.stem for path in self.folder.glob("*.log")]
        return "".join((self.folder / f"{name}.log").read_text() for name in names)

    def lines(self, part: str) -> list[dict[str, Any]]:
        """The parsed log lines of a part that logs JSON; an error for any other line."""
        return [orjson.loads(line) for line in self.output(part).splitlines()]

    def start(self, part: str, **changed: str) -> None:
        """Run a part, with some variables of its environment changed."""
        with (self.folder / f"{part}.log").open("ab") as log:
            self.parts[part] = subprocess.Popen(
                self.commands[part], env=self.environment | changed, stderr=log, stdout=log
            )

    def stop(self, part: str) -> None:
        """Stop a part with SIGTERM."""
        self._end(part, signal.SIGTERM)

    def kill(self, part: str) -> None:
        """Kill a part with SIGKILL."""
        self._end(part, signal.SIGKILL)

    def _end(self, part: str, how: signal.Signals) -> None:
        process = self.parts.pop(part)
        process.send_signal(how)
        process.wait(timeout=STOP_SECONDS)


@contextmanager
def installed(
    environment: dict[str, str],
    folder: Path,
    *,
    web: int = 1,
    workers: Sequence[str] = ("worker1",),
    beat: bool = False,
    patience: float = START_SECONDS,
    **changed: str,
) -> Iterator[Installation]:
    """Start an installation within ``patience`` seconds; ``changed`` are environment variables."""
    port = free_port()
    ours = environment | {"ALMANAC_DATA_DIR": str(folder), "PATH": os.environ["PATH"], **changed}
    settings = settings_of(ours)
    with ExitStack() as closing:
        if settings.embedded_redis:
            redis = embedded_redis.start(folder, settings.redis_socket)
            closing.callback(redis.wait, timeout=STOP_SECONDS)
            closing.callback(redis.terminate)
        stores = closing.enter_context(Stores(settings))
        stores.database.upgrade()
        with stores.database.writing() as session:
            key = api_keys.create(session, prefix="alm_", name="observed")
        commands = {name: processes.worker(settings, name) for name in workers}
        commands |= {"beat": processes.beat(settings)} if beat else {}
        commands |= {"web": processes.web("127.0.0.1", port, web)} if web else {}
        made = Installation(f"http://127.0.0.1:{port}", settings, stores, key, folder, ours, commands)
        made.session.trust_env = False
        closing.callback(_stop, made)
        for name in commands:
            made.start(name)
        _wait(made, web=bool(web), worker=bool(workers), patience=patience)
        yield made


def _stop(made: Installation) -> None:
    for process in made.parts.values():
        process.terminate()
    for process in made.parts.values():
        process.wait(timeout=STOP_SECONDS)


def _wait(made: Installation, *, web: bool, worker: bool, patience: float) -> None:
    give_up = time.monotonic() + patience
    while web:
        assert all(part.poll() is None for part in made.parts.values()), made.output()
        assert time.monotonic() < give_up, "it does not start"
        try:
            answer = made.session.get(f"{made.url}/readyz", timeout=10)
            if answer.ok or not worker:
                return
        except requests.ConnectionError:
            pass
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

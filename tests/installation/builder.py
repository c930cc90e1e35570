"""A separate installation: Redis, database, web, workers and beat as in production, and their logs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import requests

from app.server import commands
from providers.sandbox.client import SandboxAccount
from store.config.settings import Settings
from store.sql.queries import api_keys
from store.stores import Stores
from tests import people
from tests.conftest import settings_of
from tests.installation import processes
from tests.installation.processes import START_SECONDS, STOP_SECONDS, Process


@dataclass
class Installation:
    """``parts`` are its processes by name. Paths of calls are below ``/v1``; calls use ``key``."""

    port: int
    settings: Settings
    stores: Stores
    key: str
    folder: Path
    environment: dict[str, str]
    commands: dict[str, list[str]]
    parts: dict[str, Process] = field(default_factory=dict)
    session: requests.Session = field(default_factory=requests.Session)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(self, method: str, path: str, /, **more: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.key}"} | more.pop("headers", {})
        return self.session.request(method, f"{self.url}/v1{path}", headers=headers, timeout=30, **more)

    def get(self, path: str, /, headers: dict[str, str] | None = None, **query: Any) -> requests.Response:
        return self.call("GET", path, params=query, headers=headers or {})

    def user(self, name: str, *accounts: SandboxAccount) -> str:
        """Register a user with accounts connected."""
        assert self.call("POST", "/users", json={"id": name}).status_code == 201
        for account in accounts:
            made = self.call("POST", f"/users/{name}/oauth/{account.provider}", json=people.posted(account))
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
        """Kill a part, and every process that it has started, with SIGKILL."""
        for child in processes.family(self.parts[part].pid)[1:]:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._end(part, signal.SIGKILL)

    def _end(self, part: str, how: signal.Signals) -> None:
        process = self.parts.pop(part)
        process.send_signal(how)
        process.wait(timeout=STOP_SECONDS)

    def answers(self) -> bool:
        """Whether the web server answers, and finds all it needs there if there are workers."""
        if self.commands.keys() <= {"web", "beat"}:
            return processes.listens(self.port)
        return self.ready()

    def ready(self) -> bool:
        """Whether the web server answers that everything it needs is there, workers included."""
        return processes.ready(self.url)

    @contextmanager
    def running(
        self, *, patience: float = START_SECONDS, ready: Callable[[], object] | None = None, **changed: str
    ) -> Iterator[None]:
        """Run all parts, with some variables of their environment changed; they end with the block.

        It begins when they are ``ready``: by default, when the web server says so.
        """
        try:
            for name in self.commands:
                self.start(name, **changed)
            if ready or "web" in self.commands:
                processes.wait_until(
                    ready or self.answers, self.parts.values(), patience=patience, output=self.output
                )
            yield
        finally:
            # A test may have stopped some, and started others.
            processes.stop(self.parts.values())
            self.parts.clear()


@contextmanager
def installed(
    environment: dict[str, str],
    folder: Path,
    *,
    web: int = 1,
    workers: Sequence[str] = ("worker1",),
    beat: bool = False,
    port: int | None = None,
    start: bool = True,
    patience: float = START_SECONDS,
    **changed: str,
) -> Iterator[Installation]:
    """An installation with Redis and a migrated database, whose parts start within ``patience`` seconds.

    ``web`` is the number of web processes, at a free port unless one is given; ``changed`` are environment
    variables. Without ``start`` the test runs the parts itself.
    """
    port = port or processes.free_port()
    ours = environment | {"ALMANAC_DATA_DIR": str(folder), "PATH": os.environ["PATH"], **changed}
    settings = settings_of(ours)
    with ExitStack() as closing:
        if settings.embedded_redis:
            closing.enter_context(processes.running_redis(folder, settings.redis_socket))
        stores = closing.enter_context(Stores(settings))
        stores.database.upgrade()
        with stores.database.writing() as session:
            key = api_keys.create(session, prefix="alm_", name="installation")
        parts = {name: commands.worker(settings, name) for name in workers}
        parts |= {"beat": commands.beat(settings)} if beat else {}
        parts |= {"web": commands.web("127.0.0.1", port, web)} if web else {}
        made = Installation(port, settings, stores, key, folder, ours, parts)
        made.session.trust_env = False
        if start:
            closing.enter_context(made.running(patience=patience))
        yield made

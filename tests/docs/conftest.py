"""An installation of its own with the demo company in it, as the documentation assumes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from app.cli import demo
from providers.sandbox.client import Sandbox
from store.sql.queries import api_keys
from store.stores import Stores
from tests import services
from tests.conftest import settings_of
from tests.docs.shell import Shell
from tests.installation.processes import free_port, ready, running, wait_until


@dataclass(frozen=True)
class Installation:
    """Where web and sandbox are, a key for everything, and the environment of the command line."""

    url: str
    sandbox: Sandbox
    key: str
    environment: dict[str, str]

    def shell(self, folder: Path) -> Shell:
        """A new terminal, which keeps its variables in a folder."""
        services.Service("curl", shutil.which("curl")).require()
        addresses = {"http://127.0.0.1:8080": self.url, "http://127.0.0.1:8090": self.sandbox.url}
        own = {"URL": self.url, "KEY": self.key, "SANDBOX": self.sandbox.url}
        return Shell(folder, addresses, self.environment | own)

    def seed(self) -> None:
        """Bring the demo company back to its first state, and delete everything else."""
        with requests.Session() as session:
            session.trust_env = False
            session.headers["Authorization"] = f"Bearer {self.key}"
            for things, name in (("users", "id"), ("organizations", "slug"), ("webhooks", "id")):
                for thing in session.get(f"{self.url}/v1/{things}").json()["data"]:
                    session.delete(f"{self.url}/v1/{things}/{thing[name]}").raise_for_status()
        self.sandbox.reset()
        with Stores(settings_of(self.environment)) as stores:
            demo.seed(stores, self.sandbox.url, report=str)


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation for pages that are run alone. Their deletions and creations affect no other test."""
    with started(tmp_path_factory.mktemp("documented")) as found:
        yield found


@pytest.fixture
def new_installation(tmp_path: Path) -> Iterator[Installation]:
    """An installation in which no page was run: answers to idempotency keys outlive its ``seed``."""
    with started(tmp_path) as found:
        yield found


@contextmanager
def started(folder: Path) -> Iterator[Installation]:
    """What `almanac up --sandbox` starts, with its data in a folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    environment |= {
        "ALMANAC_DATA_DIR": str(folder),
        # As the API guide starts it.
        "ALMANAC_REDIRECT_URLS": "https://app.example.com/*",
        "ALMANAC_RATE_LIMIT": "6000",
    }
    port, sandbox_port = free_port(), free_port()
    command = [str(Path(sys.executable).parent / "almanac"), "up", "--sandbox"]
    command += ["--port", str(port), "--sandbox-port", str(sandbox_port)]
    url = f"http://127.0.0.1:{port}"
    log = folder / "up.log"
    with log.open("wb") as output, running(command, environment, output) as process:
        wait_until(lambda: ready(url), [process], output=log.read_text)
        with Stores(settings_of(environment)) as stores, stores.database.writing() as session:
            key = api_keys.create(session, prefix="alm_", name="reader", shows_tokens=True)
        yield Installation(url, Sandbox(f"http://127.0.0.1:{sandbox_port}"), key, environment)

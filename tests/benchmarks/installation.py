"""An installation for the benchmarks: Redis, database, people and provider; web and workers on request."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import requests

from app.server import commands
from app.server.supervisor import WEB_PROCESSES, WORKER_PROCESSES, sandbox_environment
from store.config.settings import Settings, new_secrets
from store.sql.queries import api_keys, availability_profiles, organizations, users
from store.sql.queries.availability_profiles import StoredProfile
from tests import services
from tests.benchmarks import people
from tests.benchmarks.client import Client
from tests.benchmarks.provider import Behaviour
from tests.benchmarks.report import progress
from tests.conftest import settings_of
from tests.databases import own_postgresql
from tests.installation import processes
from tests.installation.builder import installed
from tests.installation.processes import Process, free_port, listens, wait_for_workers, wait_until

WORKERS = [f"bench{number}" for number in range(WORKER_PROCESSES)]

# The organization whose members are read by its grants: half of them at Google, half at Microsoft.
DELEGATED, DELEGATED_MEMBERS = "delegated", 1_000
# A day: nothing expires during a measurement.
LONG_TTL = 86_400
# As long as the settings allow: only one benchmark is about the deadline.
LONG_DEADLINE = 120
# In seconds: how long one round may still have work in progress when the next is to begin.
MAX_REST = 30.0
# In seconds: how long processes may take to start, on a busy machine too.
START_SECONDS = 300.0
# In seconds: how long processes may take to end.
END_SECONDS = 10.0
# The end of the logs, which is printed after a failure.
LOG_LINES = 30


class Provider:
    """The process that stands for both providers."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._client = Client(port)

    def behave(self, behaviour: Behaviour | None = None) -> None:
        """Set the behaviour, which begins a new record; without one, 200 ms and no faults.

        Waits for work in progress first: workers may continue after a request was answered.
        """
        give_up = time.monotonic() + MAX_REST
        while self.record()["in_flight"]:
            if time.monotonic() > give_up:
                raise RuntimeError("requests to the provider do not end")
            time.sleep(0.05)
        fields = behaviour or Behaviour()
        self._client.post("/bench", {name: getattr(fields, name) for name in Behaviour.__slots__})

    def record(self) -> dict[str, Any]:
        """See ``provider.Record``, and ``cpu``: the seconds its process has used."""
        record: dict[str, Any] = self._client.get("/bench").json()
        return record

    def plain_call(self) -> float:
        """Seconds of one call by requests."""
        with requests.Session() as session:
            session.trust_env = False
            start = time.perf_counter()
            answer = session.post(f"http://127.0.0.1:{self.port}/", data=b"{}", timeout=10)
            took = time.perf_counter() - start
        answer.raise_for_status()
        return took


class Running:
    """Web and workers with the settings of one benchmark."""

    def __init__(self, web: Process, workers: Sequence[Process], client: Client, settings: Settings) -> None:
        self.web, self.workers, self.client, self.settings = web, workers, client, settings

    @property
    def in_flight(self) -> int:
        """Provider reads that all workers may have in flight together."""
        return len(self.workers) * self.settings.reads_in_flight


class Installation:
    """Everything that outlives a benchmark; a context."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for variable in [each for each in os.environ if each.startswith("ALMANAC_")]:
            del os.environ[variable]
        try:
            self._start(Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="almanac-bench-"))))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, folder: Path) -> None:
        self.database = "PostgreSQL" if services.postgresql().present else "SQLite"
        if services.postgresql().present:
            database = self._stack.enter_context(own_postgresql())
        else:
            database = f"sqlite:///{folder / 'almanac.db'}"
        port = free_port()
        secret, encryption = new_secrets()
        environment = os.environ | sandbox_environment(f"http://127.0.0.1:{port}")
        environment |= {
            "ALMANAC_DATABASE_URL": database,
            "ALMANAC_SECRET_KEY": secret,
            "ALMANAC_ENCRYPTION_KEYS": encryption,
            "ALMANAC_FANOUT_DEADLINE": str(LONG_DEADLINE),
            "ALMANAC_BUSY_TTL": str(LONG_TTL),
            "ALMANAC_MAX_SLOTS": "100000000",
            # Otherwise the measurement would be of the real quota.
            "ALMANAC_GOOGLE_PER_MINUTE": "1000000000",
            "ALMANAC_GOOGLE_PER_MINUTE_AND_USER": "1000000000",
        }
        command = [sys.executable, "-m", "tests.benchmarks.provider", "--port", str(port)]
        provider = self._stack.enter_context(processes.running(command, environment))
        wait_until(lambda: listens(port), [provider])
        self.provider = Provider(port)
        made = self._stack.enter_context(
            installed(environment, folder, web=WEB_PROCESSES, workers=WORKERS, start=False)
        )
        self._made, self.environment = made, made.environment
        self.key, self.redis = made.key, made.stores.redis
        self._fill()

    def _fill(self) -> None:
        progress(f"creating {max(self.sizes):,} people in {self.database}")
        people.create(self._made.stores, max(self.sizes) + people.SPARE)
        for size in self.sizes:
            self.organize(f"org-{size}", range(size))
        people.delegate(self._made.stores, DELEGATED, DELEGATED_MEMBERS)

    def spare(self, number: int) -> int:
        """A person in no organization of the given sizes."""
        return max(self.sizes) + number

    def organize(self, slug: str, members: Sequence[int]) -> None:
        """One more organization."""
        with self._made.stores.database.writing() as session:
            people.organize(session, slug, members)

    def state(self, profiles: Mapping[int, StoredProfile]) -> None:
        """Store the profile of each of these people."""
        with self._made.stores.database.writing() as session:
            for person, profile in profiles.items():
                user = users.find(session, people.name(person), organization_id=None)
                assert user is not None
                availability_profiles.store(session, user.id, profile)

    def bound_key(self, slug: str) -> str:
        """One more key, bound to an organization."""
        with self._made.stores.database.writing() as session:
            organization_id = organizations.ids(session, [slug], organization_id=None)[slug]
            return api_keys.create(session, prefix="alm_", name=slug, organization_id=organization_id)

    def settings(self, **changed: object) -> Settings:
        """The settings, with some of them (``BUSY_TTL=5``) changed."""
        return settings_of(self.environment | _variables(changed))

    def client(self, port: int, zone: str = "UTC") -> Client:
        """A client with the key."""
        return Client(port, {"Authorization": f"Bearer {self.key}", "X-Timezone": zone})

    @contextmanager
    def running(
        self, *, environment: Mapping[str, str] | None = None, web: int = WEB_PROCESSES, **changed: object
    ) -> Iterator[Running]:
        """Web and workers on an empty Redis; ``environment`` has further variables of the processes."""
        self.redis.flushall()
        made = self._made
        settings = self.settings(**changed)
        made.commands["web"] = commands.web("127.0.0.1", made.port, web)
        # "/readyz" would open the connections of the first request, which is measured.
        variables = {**_variables(changed), **(environment or {})}
        with made.running(patience=START_SECONDS, ready=lambda: listens(made.port), **variables):
            client = self.client(made.port)
            client.get("/healthz")
            workers = [made.parts[name] for name in WORKERS]
            wait_for_workers(settings, workers)
            self.provider.behave()
            try:
                yield Running(made.parts["web"], workers, client, settings)
            except Exception:
                print("\n".join(made.output().splitlines()[-LOG_LINES:]), file=sys.stderr)
                raise
            finally:
                # A worker would first finish reads whose results are no longer measured.
                with suppress(subprocess.TimeoutExpired):
                    processes.stop(made.parts.values(), patience=END_SECONDS)


def _variables(settings: Mapping[str, object]) -> dict[str, str]:
    return {f"ALMANAC_{name}": str(value) for name, value in settings.items()}


@contextmanager
def bare_server(environment: dict[str, str]) -> Iterator[int]:
    """The routes of ``bare`` on the server of ``almanac serve``; yields its port."""
    port = free_port()
    command = commands.web("127.0.0.1", port, WEB_PROCESSES, "tests.benchmarks.bare:asgi")
    with processes.running(command, environment) as server:
        wait_until(lambda: listens(port), [server])
        yield port

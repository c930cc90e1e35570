"""An installation for the benchmarks: Redis, database, people and provider; web and workers on request."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import redis
import requests

from app.server.supervisor import WEB_PROCESSES, WORKER_PROCESSES, sandbox_environment
from store.config import embedded_redis
from store.config.settings import Settings, new_secrets, read_settings, socket_path
from store.sql.queries import api_keys
from store.stores import Stores
from tests import services
from tests.benchmarks import people
from tests.benchmarks.client import Client
from tests.benchmarks.processes import START_SECONDS, NotReady, Process, all_of, free_port
from tests.benchmarks.provider import Behaviour
from tests.benchmarks.report import progress
from tests.databases import own_postgresql
from workers.celery_app import create_celery

ALMANAC = str(Path(sys.executable).with_name("almanac"))
SYNC = [sys.executable, "-m", "gunicorn", "--worker-class", "sync", "--workers", str(WEB_PROCESSES)]
# An answer about 10 000 members who have to be read takes longer than gunicorn waits by itself.
SYNC += ["--timeout", "150", "--log-level", "warning", "--bind"]

# A day: nothing expires during a measurement.
LONG_TTL = 86_400
# As long as the settings allow: only one benchmark is about the deadline.
LONG_DEADLINE = 120
# In seconds: how long one round may still have work in progress when the next is to begin.
LONGEST_REST = 30.0


class Provider:
    """The process that stands for both providers."""

    def __init__(self, process: Process, port: int) -> None:
        self.process, self.port = process, port
        self._client = Client(port)

    def behave(self, behaviour: Behaviour | None = None) -> None:
        """Set the behaviour, which begins a new record; without one, 200 ms and no faults.

        Waits for work in progress first: workers may continue after a request was answered.
        """
        give_up = time.monotonic() + LONGEST_REST
        while self.record()["in_flight"]:
            if time.monotonic() > give_up:
                raise RuntimeError("requests to the provider do not end")
            time.sleep(0.05)
        fields = behaviour or Behaviour()
        self._client.post("/bench", {name: getattr(fields, name) for name in Behaviour.__slots__})

    def record(self) -> dict[str, Any]:
        """See ``provider.Record``, and ``cpu``: the seconds its process has used."""
        told: dict[str, Any] = self._client.get("/bench").json()
        return told

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
        socket = socket_path(folder)
        server = embedded_redis.start(folder, socket)
        self._stack.callback(server.wait)
        self._stack.callback(server.terminate)
        self.database = "PostgreSQL" if services.postgresql().present else "SQLite"
        if services.postgresql().present:
            database = self._stack.enter_context(own_postgresql())
        else:
            database = f"sqlite:///{folder / 'almanac.db'}"
        port = free_port()
        secret, encryption = new_secrets()
        self.environment = os.environ | sandbox_environment(f"http://127.0.0.1:{port}")
        self.environment |= {
            "ALMANAC_DATA_DIR": str(folder),
            "ALMANAC_DATABASE_URL": database,
            "ALMANAC_REDIS_URL": f"unix://{socket}",
            "ALMANAC_BROKER_URL": f"redis+socket://{socket}",
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
        process = self._stack.enter_context(Process(command, self.environment))
        self.provider = Provider(process.wait_for(port), port)
        self.redis = redis.Redis(unix_socket_path=str(socket))
        self._stack.callback(self.redis.close)
        self._fill()

    def _fill(self) -> None:
        progress(f"creating {max(self.sizes):,} people in {self.database}")
        with Stores(self.settings()) as stores:
            stores.database.upgrade()
            people.create(stores, max(self.sizes) + people.SPARE)
            with stores.database.writing() as session:
                for size in self.sizes:
                    people.organize(session, f"org-{size}", range(size))
                self.key = api_keys.create(session, prefix="alm_", name="benchmarks")

    def spare(self, number: int) -> int:
        """A person in no organization of the given sizes."""
        return max(self.sizes) + number

    def organize(self, slug: str, members: Sequence[int]) -> None:
        """One more organization."""
        with Stores(self.settings()) as stores, stores.database.writing() as session:
            people.organize(session, slug, members)

    def settings(self, **changed: object) -> Settings:
        """The settings, with some of them (``BUSY_TTL=5``) changed."""
        kept = dict(os.environ)
        os.environ.update(self.with_settings(**changed))
        try:
            return read_settings()
        finally:
            os.environ.clear()
            os.environ.update(kept)

    def with_settings(self, **changed: object) -> dict[str, str]:
        """The environment of a process with some settings changed."""
        return self.environment | {f"ALMANAC_{each}": str(value) for each, value in changed.items()}

    def client(self, port: int, zone: str = "UTC") -> Client:
        """A client with the key."""
        return Client(port, {"Authorization": f"Bearer {self.key}", "X-Timezone": zone})

    @contextmanager
    def running(
        self, *, sync: bool = False, environment: Mapping[str, str] | None = None, **changed: object
    ) -> Iterator[Running]:
        """Web and workers on an empty Redis; ``sync``: gunicorn's plain workers instead of our threads.

        ``environment`` has further variables of the processes.
        """
        self.redis.flushall()
        settings = self.settings(**changed)
        environment = {**self.with_settings(**changed), **(environment or {})}
        port = free_port()
        serve = [ALMANAC, "serve", "--port", str(port), "--processes", str(WEB_PROCESSES)]
        command = [*SYNC, f"127.0.0.1:{port}", "app.wsgi:app"] if sync else serve
        with ExitStack() as stack:
            names = [f"bench{number}" for number in range(WORKER_PROCESSES)]
            workers = [Process([ALMANAC, "worker", "--name", each], environment) for each in names]
            all_of(stack, workers)
            web = stack.enter_context(Process(command, environment)).wait_for(port)
            client = self.client(port)
            # Neither opens the connections of the first request, which is measured.
            client.get("/healthz")
            _wait_for_workers(settings)
            self.provider.behave()
            yield Running(web, workers, client, settings)


def _wait_for_workers(settings: Settings) -> None:
    celery = create_celery(settings)
    give_up = time.monotonic() + START_SECONDS
    while len(celery.control.ping(timeout=0.5)) < WORKER_PROCESSES:
        if time.monotonic() > give_up:
            raise NotReady("the workers do not answer")
    celery.close()

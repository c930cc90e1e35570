"""The real parts, once for a session: sandbox, Redis, a Celery worker, and the web application on them."""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import hypothesis
import pytest
from flask import Flask
from flask.testing import FlaskClient
from jinja2.bccache import Bucket, BytecodeCache
from sqlalchemy import delete
from werkzeug.test import TestResponse

from app.server.supervisor import sandbox_environment
from app.services import EXTENSION, Services
from app.web import create_app
from providers.sandbox.client import Sandbox, SandboxAccount
from providers.sandbox.process import running
from store.config.garbage_collection import OF_ANSWERS, collect_seldom
from store.config.settings import Settings
from store.coordination.provider_limits import Access, Circuit, record_key
from store.sql.database import Database
from store.sql.models import Hold, Organization, WebhookEndpoint
from store.sql.queries import api_keys, organizations
from store.stores import Stores
from tests import people, services
from tests.databases import new_database, opened
from tests.installation.processes import running_redis, running_worker
from tests.receiver import Receiver, receiving
from workers.settings import read_settings

hypothesis.settings.register_profile(
    "almanac",
    max_examples=int(os.environ.get("ALMANAC_EXAMPLES", "15")),
    # Oracles are slow on purpose, and a slow machine is no failure.
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    # CI judges a change by the same examples as the change before it; other runs try new ones.
    derandomize=services.IN_CI,
)
hypothesis.settings.load_profile("almanac")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect without the garbage collector, which took a fifth of the time and found nothing."""
    gc.disable()
    try:
        import_share(session.config)
        return (yield)
    finally:
        gc.enable()


def import_share(config: pytest.Config) -> None:
    """In a process of pytest-xdist, import a share of the test modules before the others.

    After a checkout, pytest rewrites the assertions of every module and saves the result as bytecode. All
    processes import the modules in the same order, so each of them rewrote everything, for 14 s of CPU time.
    With this, each process rewrites its share and reads what the others saved.
    """
    process = os.environ.get("PYTEST_XDIST_WORKER")
    if process is None or sys.dont_write_bytecode:
        return
    folders = [config.invocation_params.dir / argument for argument in config.args]
    modules = sorted({module for folder in folders for module in folder.rglob("test_*.py")})
    number, count = int(process.removeprefix("gw")), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for module in modules[number::count]:
        name = ".".join(module.relative_to(config.rootpath).with_suffix("").parts)
        # The collection imports the module again, and reports the error.
        with suppress(Exception):
            importlib.import_module(name)


def pytest_collection_finish() -> None:
    """Freezes the objects loaded so far: collecting them took a twelfth of the run."""
    collect_seldom(OF_ANSWERS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report the services that the tests used besides the embedded default."""
    found = [services.postgresql(), services.redis_server(), services.rabbitmq()]
    used = ", ".join(f"{service.name} {service.version or 'not here: skipped'}" for service in found)
    terminalreporter.write_line(f"services: embedded Redis, SQLite; {used}")


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[str]:
    """The URL of a sandbox of its own process."""
    with running() as url:
        yield url


@pytest.fixture
def sandbox(sandbox_process: str) -> Sandbox:
    """Controls an empty sandbox at ``.url``."""
    sandbox = Sandbox(sandbox_process)
    sandbox.reset()
    return sandbox


@pytest.fixture(scope="session")
def environment(sandbox_process: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The settings of an embedded installation that talks to the sandbox; its Redis runs."""
    folder = tmp_path_factory.mktemp("almanac")
    ours = sandbox_environment(sandbox_process) | {
        "ALMANAC_DATA_DIR": str(folder),
        # Short enough for tests that wait for it to pass.
        "ALMANAC_FANOUT_DEADLINE": "3",
        # The next line of a test often repairs a failure.
        "ALMANAC_FAILURE_TTL": "0",
        # The sandbox has no quotas, and a test calls one account more in a second than users in an hour.
        "ALMANAC_GOOGLE_PER_MINUTE": "10000000",
        "ALMANAC_GOOGLE_PER_MINUTE_AND_USER": "1000000",
        "ALMANAC_MICROSOFT_PER_MAILBOX": "10000000",
        # Failures of one test must not open a breaker for the next.
        "ALMANAC_BREAKER_ACCOUNTS": "0",
        "ALMANAC_BREAKER_FAILURES": "0",
        # Receivers are on this machine, and unavailable ones come back soon.
        "ALMANAC_WEBHOOKS_ALLOW_PRIVATE": "true",
        # So are CalDAV servers and feeds, whose content tests change.
        "ALMANAC_CALDAV_ALLOW_PRIVATE": "true",
        "ALMANAC_ICS_ALLOW_PRIVATE": "true",
        "ALMANAC_ICS_REFRESH_SECONDS": "0",
        "ALMANAC_WEBHOOKS_RETRY_SECONDS": ",".join(["0.3"] * 300),
    }
    # Tests ignore the operator's own settings.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    with running_redis(folder, settings_of(clean | ours).redis_socket):
        yield clean | ours


def settings_of(environment: Mapping[str, str]) -> Settings:
    """The settings that a process with this environment reads."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("ALMANAC_")]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        return read_settings()


@pytest.fixture(scope="session")
def settings(environment: dict[str, str]) -> Settings:
    """The settings of web and worker."""
    return settings_of(environment)


@pytest.fixture(scope="session")
def database(settings: Settings) -> Iterator[Database]:
    """The database of web and worker, migrated."""
    database = Database(settings.database_url)
    database.upgrade()
    yield database
    database.close()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """One of each kind, to be copied: a copy takes less time than all migrations."""
    with ExitStack() as closing:

        @cache
        def make(kind: str) -> str:
            with ExitStack() as made:
                url = made.enter_context(new_database(kind, tmp_path_factory.mktemp("migrated")))
                with opened(url) as database:
                    database.upgrade()
                closing.push(made.pop_all())
            return url

        yield make


@pytest.fixture(scope="session")
def worker(environment: dict[str, str], settings: Settings, database: Database) -> Iterator[None]:
    """A real Celery worker, as production runs it."""
    with running_worker(settings, environment, "test"):
        yield


@pytest.fixture(scope="session")
def app(settings: Settings, database: Database) -> Iterator[Flask]:
    """The web application without a worker, for requests that need none."""
    with application(settings) as made:
        yield made


@contextmanager
def application(settings: Settings) -> Iterator[Flask]:
    """A web application, closed at the end of the test."""
    made = create_app(settings)
    made.jinja_env.bytecode_cache = COMPILED
    yield made
    stores_of(made).close()


def stores_of(app: Flask) -> Stores:
    """The stores of an application."""
    wired: Services = app.extensions[EXTENSION]
    return wired.stores


class Compiled(BytecodeCache):
    """Templates are compiled once, and not by every application again."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if kept := self._kept.get(bucket.key):
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._kept[bucket.key] = bucket.bytecode_to_string()


COMPILED = Compiled()


@dataclass
class Api:
    """A client with a key: ``api.get("/users", limit=2)``; paths are below ``/v1``."""

    client: FlaskClient
    key: str

    def get(self, path: str, /, headers: Mapping[str, str] | None = None, **query: Any) -> TestResponse:
        return self.call("GET", path, headers=headers, query_string=query)

    def post(self, path: str, body: Any = None, /, **more: Any) -> TestResponse:
        return self.call("POST", path, json=body, **more)

    def put(self, path: str, body: Any = None, /, **more: Any) -> TestResponse:
        return self.call("PUT", path, json=body, **more)

    def delete(self, path: str, body: Any = None, /, **more: Any) -> TestResponse:
        return self.call("DELETE", path, **({} if body is None else {"json": body}), **more)

    def call(
        self, method: str, path: str, /, headers: Mapping[str, str] | None = None, **more: Any
    ) -> TestResponse:
        sent = {"Authorization": f"Bearer {self.key}", **(headers or {})}
        return self.client.open(f"/v1{path}", method=method, headers=sent, **more)


@pytest.fixture
def stores(settings: Settings, database: Database) -> Iterator[Stores]:
    """Stores of the test's own, on the same database and Redis."""
    with Stores(settings) as stores:
        yield stores


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Where webhooks and providers' notifications arrive."""
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def no_webhook_endpoints(stores: Stores) -> Iterator[None]:
    """No endpoint is registered before the test, and the test's own are deleted afterwards."""

    def delete_all() -> None:
        with stores.database.writing() as session:
            session.execute(delete(WebhookEndpoint))

    delete_all()
    yield
    delete_all()


@pytest.fixture
def open_breaker(stores: Stores) -> Iterator[Callable[..., None]]:
    """Open the circuit breaker of a provider, or of one account: ``open_breaker("google")``."""

    def make(
        provider: str,
        account: str | None = None,
        *,
        access: Access = Access.READS,
        ago: float = 0.0,
        seconds: float = 60.0,
        probed: float = 0.0,
    ) -> None:
        clock, _ = stores.redis.time()
        reason, lasts = ("probe:job", probed) if probed else ("open", seconds)
        record = f"{(clock + lasts) * 1000:.0f} {reason} {(clock - ago) * 1000:.0f} 0"
        stores.redis.set(record_key(Circuit(provider, access), account), record)

    yield make
    if found := stores.redis.keys("pause:*"):
        stores.redis.delete(*found)


@pytest.fixture
def new_api(app: Flask) -> Callable[..., Api]:
    """Make a client: ``new_api(organization="acme", read_only=True)``."""

    def make(organization: str | None = None, **rights: Any) -> Api:
        # Stores of its own for each test would compile every statement again.
        with stores_of(app).database.writing() as session:
            organization_id = None
            if organization is not None:
                organization_id = organizations.ids(session, [organization], organization_id=None)[
                    organization
                ]
            key = api_keys.create(
                session, prefix="alm_", name="test", organization_id=organization_id, **rights
            )
        return Api(app.test_client(), key)

    return make


@pytest.fixture
def api(new_api: Callable[..., Api]) -> Api:
    """A client that may do everything but show tokens. Nothing is held in the accounts of the sandbox."""
    client = new_api()
    stores = stores_of(client.client.application)
    with stores.database.writing() as session:
        left = session.scalars(delete(Hold).returning(Hold.id)).all()
    if left:
        stores.versioned_cache.bump_version()
    return client


_numbers = itertools.count(1)


@pytest.fixture
def unique() -> Callable[[str], str]:
    """An identifier that no other test uses: ``unique("ada")``."""
    return lambda name: f"{name}-{next(_numbers)}"


@pytest.fixture
def new_user(api: Api, unique: Callable[[str], str]) -> Callable[..., str]:
    """Create a user with connected accounts of the sandbox; returns the user's id."""

    def make(
        *accounts: SandboxAccount,
        name: str = "user",
        slugs: tuple[str, ...] = (),
        obtained: bool = False,
        identified: bool = True,
    ) -> str:
        stores = stores_of(api.client.application)
        with stores.database.writing() as session:
            user = people.connected(
                session, stores.keyring, unique(name), *accounts, obtained=obtained, identified=identified
            )
            found = organizations.ids(session, slugs, organization_id=None)
            assert found.keys() == set(slugs)
            for organization_id in found.values():
                organizations.add_members(session, organization_id, [user.id])
        return user.custom_id

    return make


def connect(api: Api, user: str, account: SandboxAccount, **changed: Any) -> None:
    """Connect an account of the sandbox to a user."""
    made = api.post(f"/users/{user}/oauth/{account.provider}", people.posted(account) | changed)
    assert made.status_code == 201, made.json


@pytest.fixture
def new_organization(api: Api, unique: Callable[[str], str]) -> Callable[[], str]:
    """Create an empty organization; returns its slug."""

    def make() -> str:
        slug = unique("org")
        with stores_of(api.client.application).database.writing() as session:
            session.add(Organization(slug=slug))
        return slug

    return make


@pytest.fixture
def new_app(settings: Settings, database: Database) -> Iterator[Callable[..., Flask]]:
    """Make another web application with other settings: ``new_app(max_slots=10)``."""
    with ExitStack() as closing:

        def make(**changed: Any) -> Flask:
            return closing.enter_context(application(replace(settings, **changed)))

        yield make

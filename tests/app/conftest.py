"""Fixtures: the web tier on each kind of database, parallel calls, users with two accounts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.services import EXTENSION, Services
from providers.sandbox.client import Sandbox
from store.config.settings import Settings
from store.sql.database import Database
from store.sql.queries import api_keys
from store.stores import Stores
from tests.app.cached_people import SEED, Person, cache, create
from tests.app.consenting import BELOW, OWN
from tests.app.days import MORNING, PROVIDERS, meeting
from tests.app.explaining import BUSY, thursday
from tests.app.fast_client import FastClient
from tests.app.listing import ADA, SIDE, TEAM
from tests.conftest import Api
from tests.databases import KINDS, new_database

Call = Callable[[Api], TestResponse]


@pytest.fixture(scope="module", params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database for the module, of each kind."""
    with new_database(request.param, tmp_path_factory.mktemp("race")) as url:
        yield url


@pytest.fixture
def racing_app(new_app: Callable[..., Flask], database_url: str) -> Flask:
    """The web application with that database."""
    app = new_app(database_url=database_url)
    wired: Services = app.extensions[EXTENSION]
    wired.stores.database.upgrade()
    return app


@pytest.fixture
def racer(racing_app: Flask) -> Api:
    """An API client of that application."""
    wired: Services = racing_app.extensions[EXTENSION]
    with wired.stores.database.writing() as session:
        key = api_keys.create(session, prefix="alm_", name="race")
    return Api(racing_app.test_client(), key)


@pytest.fixture
def at_once(racing_app: Flask, racer: Api) -> Callable[[Sequence[Call]], list[TestResponse]]:
    """Make calls in parallel, each in its own thread; returns the answers in order."""

    def run(calls: Sequence[Call]) -> list[TestResponse]:
        gate = threading.Barrier(len(calls))

        def one(call: Call) -> TestResponse:
            caller = Api(racing_app.test_client(), racer.key)
            gate.wait(timeout=10)
            return call(caller)

        with ThreadPoolExecutor(len(calls)) as threads:
            return list(threads.map(one, calls))

    return run


@pytest.fixture
def user_with_two_accounts(sandbox: Sandbox, new_user: Callable[..., str]) -> str:
    """A user with an account of each provider, two calendars in each, a meeting in every one."""
    google = sandbox.account(
        "google",
        ADA["google"],
        calendars=[{"primary": True}, {"id": TEAM}],
        events=[
            meeting("11:00", "12:00", subject="g main"),
            meeting("09:00", "10:00", subject="g team", calendarId=TEAM),
        ],
    )
    microsoft = sandbox.account(
        "microsoft",
        ADA["microsoft"],
        calendars=[{"id": "AAMk-main", "primary": True}, {"id": SIDE}],
        events=[
            meeting("10:00", "11:00", subject="m main"),
            meeting("12:00", "13:00", subject="m side", calendarId=SIDE),
        ],
    )
    return new_user(google, microsoft)


@pytest.fixture
def explain(api: Api) -> Callable[..., TestResponse]:
    """Explain a moment on Thursday for a user; the slots are the hours of the morning."""
    return lambda user, time, headers=None, **query: api.get(
        f"/users/{user}/scheduling/explain", headers=headers, **(MORNING | {"at": thursday(time)} | query)
    )


@pytest.fixture
def explain_members(api: Api) -> Callable[..., TestResponse]:
    """Explain a moment on Thursday for an organization."""
    return lambda slug, time, **query: api.get(
        f"/organizations/{slug}/scheduling/explain", **(MORNING | {"at": thursday(time)} | query)
    )


@pytest.fixture
def new_user_with_two_accounts(sandbox: Sandbox, new_user: Callable[..., str]) -> Callable[..., str]:
    """Make a user with an account of each provider, busy at ten."""

    def make(slugs: tuple[str, ...] = ()) -> str:
        emails = ("ada@example.com", "ada@contoso.example")
        accounts = [
            sandbox.account(provider, email, events=[meeting(*busy)])
            for provider, email, busy in zip(PROVIDERS, emails, BUSY, strict=True)
        ]
        return new_user(*accounts, slugs=slugs)

    return make


@pytest.fixture
def allowing(new_app: Callable[..., Flask], api: Api) -> Api:
    """A client of an installation that allows redirects."""
    return Api(new_app(redirect_urls=(OWN, BELOW)).test_client(), api.key)


@pytest.fixture(scope="session")
def connected_people(settings: Settings, database: Database, sandbox_process: str) -> dict[str, list[Person]]:
    """Nine users in three organizations, by organization. No provider knows their tokens."""
    random = Random(SEED)
    groups = {f"plain-{n}": [Person(random, f"plain-{n}-{m}") for m in range(3)] for n in range(3)}
    with Stores(settings) as stores:
        for slug, members in groups.items():
            for person in members:
                create(stores, slug, person)
    return groups


@pytest.fixture
def cached_people(settings: Settings, connected_people: dict[str, list[Person]]) -> dict[str, list[Person]]:
    """The same, with their busy periods in the cache, which other tests may have emptied."""
    with Stores(replace(settings, busy_ttl_seconds=3600)) as stores:
        for members in connected_people.values():
            for person in members:
                cache(stores, person)
    return connected_people


@pytest.fixture
def fast(app: Flask, api: Api) -> Iterator[FastClient]:
    """A client of the fast path for slots."""
    with FastClient(app, api.key) as client:
        yield client

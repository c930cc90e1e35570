"""The web tier on either database, called by several at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.services import EXTENSION, Services
from store.queries import api_keys
from tests.app.databases import KINDS, new_database
from tests.conftest import Api

Call = Callable[[Api], TestResponse]


@pytest.fixture(scope="module", params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database of the module's own, of each kind."""
    with new_database(request.param, tmp_path_factory.mktemp("race")) as url:
        yield url


@pytest.fixture
def racing_app(new_app: Callable[..., Flask], database_url: str) -> Flask:
    """The web application on that database."""
    app = new_app(database_url=database_url)
    wired: Services = app.extensions[EXTENSION]
    wired.stores.database.upgrade()
    return app


@pytest.fixture
def racer(racing_app: Flask) -> Api:
    """A caller of it."""
    wired: Services = racing_app.extensions[EXTENSION]
    with wired.stores.database.writing() as session:
        key = api_keys.create(session, prefix="alm_", name="race")
    return Api(racing_app.test_client(), key)


@pytest.fixture
def at_once(racing_app: Flask, racer: Api) -> Callable[[Sequence[Call]], list[TestResponse]]:
    """Make calls at the same moment, each from a thread of its own; returns the answers in order."""

    def run(calls: Sequence[Call]) -> list[TestResponse]:
        gate = threading.Barrier(len(calls))

        def one(call: Call) -> TestResponse:
            caller = Api(racing_app.test_client(), racer.key)
            gate.wait(timeout=10)
            return call(caller)

        with ThreadPoolExecutor(len(calls)) as threads:
            return list(threads.map(one, calls))

    return run

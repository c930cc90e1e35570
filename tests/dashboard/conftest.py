"""Fixtures: administrators, and browsers signed in as one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from flask import Flask
from sqlalchemy import delete

from app.cli import administrator_setup
from app.dashboard.sign_in import passwords
from store.config.settings import Settings
from store.coordination import registration_checks
from store.sql.database import Database
from store.sql.models import Administrator, Invitation, Role
from store.stores import Stores
from tests.conftest import stores_of
from tests.dashboard.installations import PASSWORD, Installation
from tests.dashboard.visiting import Browser, Person
from tests.databases import KINDS, new_database


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Cheap password hashes: hundreds of tests sign in, and other tests check the real parameters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", PasswordHasher(time_cost=1, memory_cost=16, parallelism=1))
        yield


@pytest.fixture(scope="session")
def administrator(settings: Settings, database: Database) -> Person:
    """An administrator for tests that do not change it, shared because hashing a password is slow."""
    with Stores(settings) as stores:
        administrator_setup.create(stores, "ada", PASSWORD)
    return Person("ada", PASSWORD)


@pytest.fixture
def new_administrator(stores: Stores, unique: Callable[[str], str]) -> Callable[..., Person]:
    """Create an administrator for this test: ``new_administrator()``."""

    def make(name: str | None = None) -> Person:
        person = Person(name or unique("admin"), PASSWORD)
        assert administrator_setup.create(stores, person.name, person.password)
        return person

    return make


@pytest.fixture
def browser_of(app: Flask) -> Callable[..., Browser]:
    """A browser, signed in if a person is given: ``browser_of(person, at=new_app(...), address=...)``."""

    def make(person: Person | None = None, *, at: Flask | None = None, address: str = "127.0.0.1") -> Browser:
        browser = Browser((at or app).test_client(), address)
        if person is not None:
            assert browser.sign_in(person).status == 303
        return browser

    return make


@pytest.fixture
def person_with(stores: Stores, unique: Callable[[str], str]) -> Callable[[Role], Person]:
    """Create a person with a role."""

    def make(role: Role) -> Person:
        person = Person(unique(role), PASSWORD)
        assert administrator_setup.create(stores, person.name, person.password, role)
        return person

    return make


@pytest.fixture
def signed_in(browser_of: Callable[..., Browser], administrator: Person) -> Browser:
    """A signed-in browser."""
    return browser_of(administrator)


@pytest.fixture
def visitor(browser_of: Callable[..., Browser]) -> Browser:
    """A browser without sign-in."""
    return browser_of()


@pytest.fixture(scope="module", params=KINDS)
def new_installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a database of each kind, without administrators."""
    with new_database(request.param, tmp_path_factory.mktemp("new")) as url:
        yield url


@pytest.fixture
def new_service(new_app: Callable[..., Flask], new_installation: str) -> Flask:
    """The web application on that database, without the administrators and links of earlier tests."""
    app = new_app(database_url=new_installation)
    database = stores_of(app).database
    database.upgrade()
    with database.writing() as session:
        session.execute(delete(Administrator))
        session.execute(delete(Invitation))
    return app


FIRST_HOST = IPv4Address("10.0.0.0")
_hosts = itertools.count(1)

UNREGISTERED = {
    f"{provider}_client_{part}": "" for provider in ("google", "microsoft") for part in ("id", "secret")
}


@pytest.fixture
def client_address() -> Callable[[], str]:
    """An unused client address, because failed sign-ins are counted by address."""
    return lambda: str(FIRST_HOST + os.getpid() % 65_536 * 256 + next(_hosts))


@pytest.fixture
def install(
    new_app: Callable[..., Flask], settings: Settings, migrated: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[..., Installation]]:
    """Create an installation for this test: ``install(registered=False, public_url=...)``.

    ``registered`` is whether its environment has OAuth clients of the providers.
    """
    with ExitStack() as closing:

        def make(*, registered: bool = True, **changed: Any) -> Installation:
            copy = new_database("sqlite", tmp_path, copied=migrated("sqlite"))
            if not registered:
                changed["providers"] = replace(settings.providers, **UNREGISTERED)
            app = new_app(database_url=closing.enter_context(copy), **changed)
            # Redis is shared with other tests: a refused registration of theirs would need attention here.
            stores_of(app).redis.delete(registration_checks.KEY)
            person = Person("ada", PASSWORD)
            assert administrator_setup.create(stores_of(app), person.name, person.password)
            browser = Browser(app.test_client())
            assert browser.sign_in(person).status == 303
            return Installation(app, browser)

        yield make

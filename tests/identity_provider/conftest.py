"""An installation whose people sign in at a real OpenID Connect server: ``make test-openid``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest
from flask import Flask

from app.services import EXTENSION
from store.config.settings import Settings
from store.sql.database import Database
from store.stores import Stores
from tests.conftest import application, settings_of, stores_of
from tests.dashboard.visiting import Browser, Page
from tests.identity_provider.provider import SECRET, IdentityProvider, running_identity_provider
from tests.installation.processes import running_redis, running_worker
from workers.runtime import Runtime

# Browsers of these tests are at the address of this machine.
REDIRECT = "http://localhost/dashboard/sign-in/openid/callback"
_hosts = itertools.count(1)
ROLES = "admins=administrator,operators=operator,staff=viewer"


@dataclass(frozen=True)
class Installation:
    """Web and worker of an installation, and the identity provider of its people."""

    app: Flask
    provider: IdentityProvider

    @property
    def stores(self) -> Stores:
        return stores_of(self.app)

    @property
    def runtime(self) -> Any:
        return Runtime(self.app.extensions[EXTENSION].settings, self.app.extensions[EXTENSION].stores)

    def browser(self) -> Browser:
        """A browser without sign-in, at an address of its own, as sign-ins from one address are limited."""
        return Browser(self.app.test_client(), f"10.0.0.{next(_hosts)}")

    def sign_in(self, name: str, browser: Browser | None = None, **visit: Any) -> tuple[Browser, Page]:
        """Sign a person in; returns the browser, and the page after the way back."""
        browser = browser or self.browser()
        there = browser.get("/sign-in/openid").location
        assert there is not None
        assert there.startswith(self.provider.issuer)
        back = self.provider.visit(there, name, **visit)
        return browser, browser.get(back.removeprefix("http://localhost"))


@pytest.fixture(scope="session")
def provider() -> Iterator[IdentityProvider]:
    """The OpenID Connect server."""
    with running_identity_provider(REDIRECT) as provider:
        yield provider


@pytest.fixture(scope="session")
def openid_environment(
    environment: dict[str, str], provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The settings of the installation."""
    return environment | {
        "ALMANAC_DATA_DIR": str(tmp_path_factory.mktemp("openid")),
        "ALMANAC_OIDC_ISSUER": provider.issuer,
        "ALMANAC_OIDC_CLIENT_ID": "almanac-basic",
        "ALMANAC_OIDC_CLIENT_SECRET": SECRET,
        "ALMANAC_OIDC_ROLES": ROLES,
        "ALMANAC_OIDC_CHECK_SECONDS": "60",
        # This provider follows the standard, and gives refresh tokens with a consent only.
        "ALMANAC_OIDC_PROMPT": "consent",
        "ALMANAC_LOG_LEVEL": "debug",
    }


@pytest.fixture(scope="session")
def worker_log(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The log of the worker."""
    return tmp_path_factory.mktemp("log") / "worker.log"


@pytest.fixture(scope="session")
def openid_settings(openid_environment: dict[str, str], worker_log: Any) -> Iterator[Settings]:
    """The settings, with Redis, a migrated database and a worker running."""
    settings = settings_of(openid_environment)
    database = Database(settings.database_url)
    with ExitStack() as running:
        running.enter_context(running_redis(settings.data_dir, settings.redis_socket))
        database.upgrade()
        database.close()
        output = running.enter_context(worker_log.open("wb"))
        running.enter_context(running_worker(settings, openid_environment, "openid", output=output))
        yield settings


@pytest.fixture
def new_installation(
    openid_settings: Settings, provider: IdentityProvider
) -> Iterator[Callable[..., Installation]]:
    """The installation, its web part with other settings: ``new_installation(password_sign_in=False)``."""
    with ExitStack() as closing:

        def make(**changed: Any) -> Installation:
            app = closing.enter_context(application(replace(openid_settings, **changed)))
            return Installation(app, provider)

        yield make


@pytest.fixture
def installation(new_installation: Callable[..., Installation]) -> Installation:
    """The installation."""
    return new_installation()

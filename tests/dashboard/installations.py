"""Installations of a test's own, for what depends on everything that is there."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flask import Flask
from sqlalchemy import event

from app import invitations
from store.settings import Settings
from store.stores import Stores
from tests.dashboard.conftest import PASSWORD, stores_of
from tests.dashboard.visiting import Browser, Person

UNREGISTERED = {
    f"{provider}_client_{part}": "" for provider in ("google", "microsoft") for part in ("id", "secret")
}


@dataclass(frozen=True)
class Installation:
    """One with nothing in it, and a browser that its administrator ``ada`` has signed in."""

    app: Flask
    browser: Browser

    ACTOR = "administrator ada"

    @property
    def stores(self) -> Stores:
        return stores_of(self.app)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Another process writes into the database for longer than ours wait, which is shortened."""
        engine = self.stores.database.engine
        assert engine.url.database is not None
        engine.dispose()
        event.listen(engine, "connect", lambda each, _: each.execute("PRAGMA busy_timeout = 50"))
        other = sqlite3.connect(engine.url.database, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.close()


def install(
    new_app: Callable[..., Flask],
    settings: Settings,
    folder: Path,
    *,
    registered: bool = True,
    **changed: Any,
) -> Installation:
    """Make one; ``registered`` says whether its environment has registrations with the providers."""
    providers = settings.providers if registered else replace(settings.providers, **UNREGISTERED)
    file = folder / f"{secrets.token_hex(4)}.db"
    app = new_app(database_url=f"sqlite:///{file}", providers=providers, **changed)
    stores_of(app).database.upgrade()
    person = Person("ada", PASSWORD)
    assert invitations.create(stores_of(app), person.name, person.password)
    browser = Browser(app.test_client())
    assert browser.sign_in(person).status == 303
    return Installation(app, browser)

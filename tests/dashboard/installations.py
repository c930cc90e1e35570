"""Separate installations, for tests that depend on all stored data."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from flask import Flask
from sqlalchemy import event

from store.stores import Stores
from tests.conftest import stores_of
from tests.dashboard.visiting import Browser

PASSWORD = "seven quiet calendars"


@dataclass(frozen=True)
class Installation:
    """An empty installation, and a browser signed in as its administrator ``ada``."""

    app: Flask
    browser: Browser

    ACTOR = "administrator ada"

    @property
    def stores(self) -> Stores:
        return stores_of(self.app)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the database as another process's write would, and shorten the application's busy timeout."""
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

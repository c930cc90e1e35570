"""Installations of a test's own, for what depends on everything that is there."""

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

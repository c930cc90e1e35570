"""Databases for single tests, of both kinds."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from store.sql.database import Database
from tests import services

# The default run needs no service, so PostgreSQL is left to `make test-slow`.
KINDS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.slow))


@contextmanager
def new_database(kind: str, folder: Path, *, copied: str | None = None) -> Iterator[str]:
    """The URL of an empty database, or of a copy of one that has no connections."""
    if kind == "postgresql":
        services.postgresql().require()
        with own_postgresql(copied) as url:
            yield url
        return
    file = folder / f"{secrets.token_hex(6)}.db"
    if copied is not None:
        shutil.copyfile(str(make_url(copied).database), file)
    yield f"sqlite:///{file}"


@contextmanager
def own_postgresql(copied: str | None = None) -> Iterator[str]:
    """The URL of an empty database of this machine's PostgreSQL, or of a copy of one; dropped afterwards."""
    url = make_url(services.POSTGRESQL).set(
        drivername="postgresql+psycopg", database=f"almanac_{secrets.token_hex(6)}"
    )
    template = make_url(copied).database if copied else "template1"
    with psycopg.connect(services.POSTGRESQL, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {url.database} TEMPLATE {template}")
        try:
            yield url.render_as_string(hide_password=False)
        finally:
            admin.execute(f"DROP DATABASE {url.database} WITH (FORCE)")


@contextmanager
def opened(url: str) -> Iterator[Database]:
    """A database by its URL."""
    database = Database(url)
    try:
        yield database
    finally:
        database.close()

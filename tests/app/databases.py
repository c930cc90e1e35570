"""The two kinds of database, for tests of what they decide: uniqueness, races."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests import services

KINDS = ("sqlite", "postgresql")


@contextmanager
def new_database(kind: str, folder: Path) -> Iterator[str]:
    """The URL of an empty database of our own; skips where PostgreSQL is missing, which CI does not allow."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'race.db'}"
        return
    services.postgresql().require()
    name = f"almanac_{secrets.token_hex(6)}"
    with psycopg.connect(services.POSTGRESQL, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        base = services.POSTGRESQL.replace("postgresql://", "postgresql+psycopg://").rsplit("/", 1)[0]
        yield f"{base}/{name}"
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")

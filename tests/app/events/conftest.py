"""Fixtures: users with an account of one provider, their held time, and interrupted writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisDown

from app.events import worker_calls
from providers.sandbox.client import Sandbox
from store.sql.models import HeldTime, Hold, User
from tests.app.at_provider import AtProvider, Person
from tests.app.days import NOVEMBER
from tests.conftest import Api, stores_of

ADA = "ada@example.com"


@pytest.fixture
def new_person(api: Api, sandbox: Sandbox, new_user: Callable[..., str]) -> Callable[..., Person]:
    """Make a user with an account of one provider."""

    def make(provider: str, **account: Any) -> Person:
        made = sandbox.account(provider, ADA, **account)
        return Person(api, new_user(made), made, AtProvider(sandbox, made))

    return make


@pytest.fixture
def person(new_person: Callable[..., Person], provider: str) -> Person:
    """A user with an account of the parametrized provider."""
    return new_person(provider)


@pytest.fixture
def in_november(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time can be held on that Thursday."""
    monkeypatch.setattr("app.events.holds.is_past", lambda end: end <= NOVEMBER)


@pytest.fixture
def held_rows(api: Api) -> Callable[[str], list[Hold]]:
    """The rows of a user's held time: of holds, and the leases of writes in progress."""

    def rows(user: str) -> list[Hold]:
        with stores_of(api.client.application).database.reading() as session:
            query = session.query(Hold).join(HeldTime, HeldTime.hold_id == Hold.id).join(User)
            return query.filter(User.custom_id == user).all()

    return rows


@pytest.fixture
def redis_interrupts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractContextManager[None]]:
    """Lose Redis before a write reaches a worker, or once the provider has ``executed`` it."""

    @contextmanager
    def interrupting(executed: bool = False) -> Iterator[None]:
        write = worker_calls.write_events

        def interrupted(*args: Any, **named: Any) -> None:
            if executed:
                write(*args, **named)
            raise RedisDown("Redis is away")

        with monkeypatch.context() as patched:
            patched.setattr(worker_calls, "write_events", interrupted)
            yield

    return interrupting

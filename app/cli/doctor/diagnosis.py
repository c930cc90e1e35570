"""What a check finds, and what checks look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Self

from flask import Flask
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from app.services import EXTENSION, Services
from app.web import create_app
from store.config.settings import Settings

# Whoever hangs for longer is down.
SECONDS = 5


class State(StrEnum):
    """How bad it is. ``UNKNOWN``: another part that is wrong hides this one."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One part: what was found, and where it is not ok, what to do."""

    name: str
    state: State
    sentence: str
    advice: str = ""


# What a check answers: the state, a sentence, and what to do.
Found = tuple[State, str, str]


@dataclass(frozen=True, slots=True)
class Check:
    """Looks at one part; ``needs`` are the parts without which there is nothing to see."""

    name: str
    look: Callable[[Patient], Found]
    needs: tuple[str, ...] = ()


class Patient:
    """The installation that the settings describe, and which of its parts are wrong so far. A context."""

    def __init__(self, settings: Settings) -> None:
        self.settings = replace(settings, database_url=_impatient(settings.database_url))
        self._wrong: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "app" in self.__dict__:
            self.services.stores.close()

    @cached_property
    def app(self) -> Flask:
        """The web application, as its processes make it."""
        return create_app(self.settings)

    @property
    def services(self) -> Services:
        """Its stores, and its way to the workers."""
        services: Services = self.app.extensions[EXTENSION]
        return services

    def look(self, check: Check) -> Diagnosis:
        """Have one part looked at; what does not answer at all is wrong."""
        if hidden := [name for name in check.needs if name in self._wrong]:
            self._wrong.add(check.name)
            return Diagnosis(check.name, State.UNKNOWN, f"Not looked at, because of: {', '.join(hidden)}")
        try:
            diagnosis = Diagnosis(check.name, *check.look(self))
        except (SQLAlchemyError, RedisError, BrokerError, OSError) as error:
            # The texts of these errors may hold addresses with passwords.
            cause = getattr(error, "orig", None) or error
            sentence = f"It does not answer as it should ({type(cause).__name__})"
            diagnosis = Diagnosis(check.name, State.WRONG, sentence, _ADVICE.get(check.name, _MORE))
        if diagnosis.state is State.WRONG:
            self._wrong.add(check.name)
        return diagnosis


_MORE = "Look into the logs of web and worker, which say more with --verbose"
_ADVICE = {
    "database": "Check ALMANAC_DATABASE_URL, and that the database runs and takes connections from here",
    "redis": "Check ALMANAC_REDIS_URL, and that Redis runs and takes connections from here",
    "broker": "Check ALMANAC_BROKER_URL, and that the broker runs and takes connections from here",
}


def _impatient(url: str) -> str:
    """The database's address, for who does not wait for ever."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "postgresql":
        return url
    hurried = parsed.update_query_dict({"connect_timeout": str(SECONDS), **parsed.query})
    return hurried.render_as_string(hide_password=False)

"""Checks, their results, and the installation that they examine."""

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

# Timeout of a connection or request, in seconds.
SECONDS = 5


class CheckState(StrEnum):
    """The result of a check. ``UNKNOWN``: not checked, because another part that it needs is wrong."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result for one part; ``advice`` says what to do, if it is not ok."""

    name: str
    state: CheckState
    sentence: str
    advice: str = ""


# The result of a check function: the state, a sentence, and the advice ("" if none is needed).
CheckResult = tuple[CheckState, str, str]


@dataclass(frozen=True, slots=True)
class Check:
    """The check of one part; it is skipped if one of the parts in ``needs`` is wrong."""

    name: str
    function: Callable[[Examination], CheckResult]
    needs: tuple[str, ...] = ()


class Examination:
    """The installation that the settings describe, and its parts found wrong so far. A context manager."""

    def __init__(self, settings: Settings) -> None:
        self.settings = replace(settings, database_url=_with_timeout(settings.database_url))
        self._wrong: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "app" in self.__dict__:
            self.services.stores.close()

    @cached_property
    def app(self) -> Flask:
        """The application, as web processes create it."""
        return create_app(self.settings)

    @property
    def services(self) -> Services:
        """The application's stores and its Celery client."""
        services: Services = self.app.extensions[EXTENSION]
        return services

    def run(self, check: Check) -> Diagnosis:
        """Check one part. A part that does not answer is wrong."""
        if causes := [name for name in check.needs if name in self._wrong]:
            self._wrong.add(check.name)
            return Diagnosis(check.name, CheckState.UNKNOWN, f"Not checked, because of: {', '.join(causes)}")
        try:
            diagnosis = Diagnosis(check.name, *check.function(self))
        except (SQLAlchemyError, RedisError, BrokerError, OSError) as error:
            # The texts of these errors may hold addresses with passwords.
            cause = getattr(error, "orig", None) or error
            sentence = f"It does not answer as it should ({type(cause).__name__})"
            diagnosis = Diagnosis(check.name, CheckState.WRONG, sentence, self._advice(check.name))
        if diagnosis.state is CheckState.WRONG:
            self._wrong.add(check.name)
        return diagnosis

    def _advice(self, name: str) -> str:
        """What to do about a part that does not answer."""
        url = {"redis": self.settings.redis_url, "broker": self.settings.broker_url}.get(name)
        if self.settings.embedded_redis and url == self.settings.redis_url:
            return f"Start almanac up: the Redis in {self.settings.data_dir.resolve()} does not run"
        return _ADVICE.get(name, _MORE)


_MORE = "Look into the logs of web and worker, which have more lines with --verbose"
_ADVICE = {
    "database": "Check ALMANAC_DATABASE_URL, and that the database runs and accepts connections of this host",
    "redis": "Check ALMANAC_REDIS_URL, and that Redis runs and accepts connections of this host",
    "broker": "Check ALMANAC_BROKER_URL, and that the broker runs and accepts connections of this host",
}


def _with_timeout(url: str) -> str:
    """The database URL with a connect timeout, which PostgreSQL's driver does not have by default."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "postgresql":
        return url
    limited = parsed.update_query_dict({"connect_timeout": str(SECONDS), **parsed.query})
    return limited.render_as_string(hide_password=False)

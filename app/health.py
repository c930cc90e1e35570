"""Liveness and readiness, for whatever watches the process."""

from __future__ import annotations

import logging
from collections.abc import Callable

from flask import Flask, Response
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.envelope import whole
from app.services import services

log = logging.getLogger(__name__)

# A worker on the same network answers within milliseconds; one that takes longer is not ready.
WORKER_SECONDS = 1.0


def install(app: Flask) -> None:
    """The routes."""
    app.add_url_rule("/healthz", view_func=healthz)
    app.add_url_rule("/readyz", view_func=readyz)


def healthz() -> Response:
    """This process answers."""
    return whole({"status": "ok"})


def readyz() -> Response:
    """Database, Redis and a worker answer: 200 when all do, 503 that names those that do not."""
    checks = {"database": _database, "redis": _redis, "worker": _worker}
    states = {name: _state(name, check) for name, check in checks.items()}
    ready = all(state == "ok" for state in states.values())
    return whole({"status": "ok" if ready else "unavailable", **states}, 200 if ready else 503)


def _state(name: str, check: Callable[[], bool]) -> str:
    try:
        return "ok" if check() else "unavailable"
    except (SQLAlchemyError, RedisError, BrokerError, OSError) as error:
        log.warning("%s is not ready: %s", name, type(error).__name__)
        return "unavailable"


def _database() -> bool:
    return services().stores.database.is_current()


def _redis() -> bool:
    return bool(services().stores.redis.ping())


def _worker() -> bool:
    return bool(services().celery.control.ping(timeout=WORKER_SECONDS, limit=1))

"""Liveness and readiness, for whatever watches the process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from flask import Flask, Response

from app.http.responses import json_response
from app.observability.probes import Trouble
from app.services import Services, services
from workers import broker

log = logging.getLogger(__name__)

# For all parts together: a probe of an orchestrator waits a second by default.
SECONDS = 0.8

# A worker on the same network answers within milliseconds; one that takes longer is not ready.
WORKER_SECONDS = 0.7

# Without these nothing is answered. Beat does what can wait: without it, tokens end and channels do.
NEEDED = ("database", "redis", "worker")

PARTS = (*NEEDED, "beat")

OK, UNAVAILABLE = "ok", "unavailable"


def install(app: Flask) -> None:
    """The routes."""
    app.add_url_rule("/healthz", view_func=healthz)
    app.add_url_rule("/readyz", view_func=readyz)


def healthz() -> Response:
    """This process answers."""
    return json_response({"status": "ok"})


def readyz() -> Response:
    """How each part is, within a second: 200 when those that are needed are well, else 503.

    ``reasons`` has what is wrong with each that is not.
    """
    reasons = {part: each.reason for part, each in troubles().items() if each is not None}
    for part, reason in reasons.items():
        log.warning("%s is not ready: it %s", part, reason)
    states = {part: UNAVAILABLE if part in reasons else OK for part in PARTS}
    ready = not any(part in reasons for part in NEEDED)
    told = {"status": OK if ready else UNAVAILABLE, **states, "reasons": reasons}
    return json_response(told, 200 if ready else 503)


def troubles() -> dict[str, Trouble | None]:
    """What is wrong with each of ``PARTS``, None where nothing is; within a second, also when one hangs."""
    wired = services()
    questions: dict[str, Callable[[], Trouble | None]] = {
        "database": partial(_database, wired),
        "redis": partial(_redis, wired),
        "worker": partial(_worker, wired),
        "beat": partial(_beat, wired),
    }
    found = wired.parts.ask({f"{part} ready": each for part, each in questions.items()}, seconds=SECONDS)
    return {part: found[f"{part} ready"] for part in PARTS}


def _database(wired: Services) -> Trouble | None:
    current = wired.stores.database.is_current()
    return None if current else Trouble("lacks migrations: run `almanac db upgrade`")


def _redis(wired: Services) -> Trouble | None:
    wired.stores.redis.ping()
    return None


def _worker(wired: Services) -> Trouble | None:
    there = broker.any_worker(wired.celery, wired.settings, seconds=WORKER_SECONDS)
    return None if there else Trouble("does not answer: is any running?")


def _beat(wired: Services) -> Trouble | None:
    present = wired.stores.heartbeats.present()
    if present.beats:
        return None
    if present.beat_seconds is None:
        return Trouble("has never ticked: is it running?")
    return Trouble(f"last ticked {present.beat_seconds:.0f} seconds ago")

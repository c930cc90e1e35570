"""Liveness and readiness routes for orchestrators and load balancers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from flask import Flask, Response

from app.http.responses import json_response
from app.observability.probes import Fault, FaultKind
from app.services import Services, services
from store.sql.database import MigrationState
from workers import broker

log = logging.getLogger(__name__)

# The time for all probes together, in seconds: orchestrators wait one second by default.
SECONDS = 0.8

# A worker on the same network answers within milliseconds; one that takes longer is not ready.
WORKER_SECONDS = 0.7

# The parts without which requests fail. Beat's work can wait: without it, tokens and push channels expire
# in time.
NEEDED = ("database", "redis", "worker")

PARTS = (*NEEDED, "beat")

OK, UNAVAILABLE = "ok", "unavailable"

_NO_WORKER = Fault("does not answer: is any running?")

_DATABASE_FAULTS = {
    MigrationState.CURRENT: None,
    MigrationState.OLDER: Fault("lacks migrations: run `almanac db upgrade`", FaultKind.OUTDATED),
    MigrationState.NEWER: Fault(
        "has been migrated by a later version: start that version here too", FaultKind.TOO_NEW
    ),
}


def install(app: Flask) -> None:
    """Register the routes."""
    app.add_url_rule("/healthz", view_func=healthz)
    app.add_url_rule("/readyz", view_func=readyz)


def healthz() -> Response:
    """Answer 200: this process is alive."""
    return json_response({"status": "ok"})


def readyz() -> Response:
    """The state of each part, within a second: 200 if all needed parts are ready, else 503.

    ``reasons`` has the fault of each part that is not ready, and of a database that a later version has
    migrated: that one is ready.
    """
    found = {part: each for part, each in faults().items() if each is not None}
    reasons = {part: each.reason for part, each in found.items()}
    for part, reason in reasons.items():
        log.warning("part not ready: %s, it %s", part, reason)
    # Migrations keep the version before them working, so that its processes serve until they are replaced.
    failing = {part for part, each in found.items() if each.kind is not FaultKind.TOO_NEW}
    states = {part: UNAVAILABLE if part in failing else OK for part in PARTS}
    ready = failing.isdisjoint(NEEDED)
    body = {"status": OK if ready else UNAVAILABLE, **states, "reasons": reasons}
    return json_response(body, 200 if ready else 503)


def faults() -> dict[str, Fault | None]:
    """The fault of each of ``PARTS``, None for a ready part; within a second, even if a part hangs."""
    app_services = services()
    probes: dict[str, Callable[[], Fault | None]] = {
        "database": partial(_database, app_services),
        "redis": partial(_redis, app_services),
        "worker": partial(_worker, app_services),
        "beat": partial(_beat, app_services),
    }
    found = app_services.probes.run({f"{part} ready": each for part, each in probes.items()}, seconds=SECONDS)
    if (late := found["worker ready"]) is not None and late.kind is FaultKind.SLOW:
        # A ping waits for a worker for almost the whole time of a probe.
        found["worker ready"] = _NO_WORKER
    return {part: found[f"{part} ready"] for part in PARTS}


def _database(services: Services) -> Fault | None:
    return _DATABASE_FAULTS[services.stores.database.migration_state()]


def _redis(services: Services) -> Fault | None:
    services.stores.redis.ping()
    return None


def _worker(services: Services) -> Fault | None:
    answers = broker.any_worker(services.celery, services.settings, seconds=WORKER_SECONDS)
    return None if answers else _NO_WORKER


def _beat(services: Services) -> Fault | None:
    present = services.stores.heartbeats.live_processes()
    if present.beat_is_alive:
        return None
    if present.beat_seconds is None:
        return Fault("has never ticked: is it running?")
    return Fault(f"last ticked {present.beat_seconds:.0f} seconds ago")

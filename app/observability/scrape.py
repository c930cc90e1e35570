"""``GET /metrics``: the numbers of the whole installation for Prometheus, from any web process.

All processes add up their numbers in Redis, so one target is scraped, not each process.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version

from flask import Flask, Response, request
from prometheus_client.exposition import choose_encoder

from app.http.errors import Forbidden, Unauthenticated
from app.http.proxies import from_this_machine
from app.observability.metrics import GUARDED, Exposition, Found
from app.observability.probes import Trouble
from app.services import Services, services
from store.coordination.circuit_breaker import CircuitKey, CircuitState
from store.coordination.heartbeats import LiveProcesses
from store.metrics import totals
from store.metrics.totals import Totals
from store.sql.queries import connections, deliveries
from store.sql.queries.connections import Standing
from store.stores import Stores
from workers import broker

# For all parts together, in seconds; Prometheus waits ten by default.
SECONDS = 2.0

PATH = "/metrics"


def install(app: Flask) -> None:
    """The route."""
    app.add_url_rule(PATH, view_func=metrics)


def metrics() -> Response:
    """The numbers. Those of a part that is down are absent, and ``almanac_up`` names the part."""
    wired = services()
    _authenticate(wired.settings.metrics_token)
    found = wired.parts.ask(
        {
            "counts": partial(_counts, wired.stores),
            "records": partial(_records, wired),
            "queues": lambda: broker.lengths(wired.settings),
        },
        seconds=SECONDS,
    )
    counts, records, queues = (None if isinstance(each, Trouble) else each for each in found.values())
    if counts is None:
        # Without it nothing is known that has to be right.
        return Response(f"# Redis {found['counts'].reason}\n", 503, content_type="text/plain; charset=utf-8")
    counted, present, breakers = counts
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    exposition = Exposition(Found(version("almanac"), counted, present, breakers, records, queues))
    return Response(encode(exposition), content_type=content_type)


def _counts(stores: Stores) -> tuple[Totals, LiveProcesses, Mapping[CircuitKey, CircuitState]]:
    return totals.read(stores.redis), stores.heartbeats.present(), stores.circuit_breakers.standing(GUARDED)


def _records(wired: Services) -> tuple[dict[str, Standing], int]:
    with wired.stores.database.reading() as session:
        return connections.counts(session), deliveries.waiting(session)


def _authenticate(token: str) -> None:
    """Let in who has the token; without one, processes of this machine."""
    if not token:
        if not from_this_machine():
            raise Forbidden(
                "Metrics are for this machine alone until ALMANAC_METRICS_TOKEN is set; then send it in the "
                "header Authorization: Bearer <ALMANAC_METRICS_TOKEN>"
            )
        return
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(sent.strip().encode(), token.encode()):
        raise Unauthenticated(
            "Send the metrics token in the header Authorization: Bearer <ALMANAC_METRICS_TOKEN>"
        )

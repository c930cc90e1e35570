"""``GET /metrics``: the metrics of the whole installation for Prometheus, from any web process.

All processes add their counts in Redis, so Prometheus needs one target for the whole installation.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version

from flask import Flask, Response, request
from prometheus_client.exposition import choose_encoder

from app.availability.parameters import now_ms
from app.http.errors import Forbidden, Unauthenticated
from app.http.hosts import from_this_machine
from app.observability.metrics import CIRCUIT_KEYS, Exposition, QuotaUse, Records, Snapshot
from app.observability.probes import Fault
from app.schemas.error_codes import Code
from app.services import Services, services
from store.coordination.heartbeats import LiveProcesses
from store.coordination.provider_limits import Circuit, CircuitState
from store.coordination.shares import MIB, Quota, reported, share_of
from store.metrics import counters
from store.metrics.counters import Totals
from store.sql.queries import connections, deliveries, holds, organization_grants
from store.stores import Stores
from workers import broker
from workers.fanout.admission import QUOTAS, most_waiting
from workers.queues import MAX_WEBHOOK_ENDPOINTS

# The time for all probes together, in seconds; Prometheus waits ten by default.
SECONDS = 2.0

PATH = "/metrics"


def install(app: Flask) -> None:
    """Register the route."""
    app.add_url_rule(PATH, view_func=metrics)


def metrics() -> Response:
    """The metrics. Those of a part that is down are missing, and its ``almanac_up`` is 0."""
    app_services = services()
    _authenticate(app_services.settings.metrics_token)
    found = app_services.probes.run(
        {
            "counts": partial(_counts, app_services.stores),
            "records": partial(_records, app_services),
            "queues": lambda: broker.lengths(app_services.settings),
        },
        seconds=SECONDS,
    )
    counts, records, queues = (None if isinstance(each, Fault) else each for each in found.values())
    if counts is None:
        # All counters are in Redis: without them there is nothing to report.
        return Response(f"# Redis {found['counts'].reason}\n", 503, content_type="text/plain; charset=utf-8")
    counted, present, circuit_breakers, quotas, failing = counts
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    exposition = Exposition(
        Snapshot(version("almanac"), counted, present, circuit_breakers, quotas, failing, records, queues)
    )
    return Response(encode(exposition), content_type=content_type)


def _counts(
    stores: Stores,
) -> tuple[
    Totals,
    LiveProcesses,
    Mapping[Circuit, CircuitState],
    Mapping[Quota, QuotaUse],
    Mapping[tuple[str, str], int],
]:
    return (
        counters.read(stores.redis),
        stores.heartbeats.live_processes(),
        stores.provider_limits.states(CIRCUIT_KEYS),
        _quotas(stores),
        stores.last_reads.failing_counts(),
    )


def _quotas(stores: Stores) -> Mapping[Quota, QuotaUse]:
    """The largest use by one organization, for each quota that is counted in Redis."""
    settings = stores.settings
    percent = settings.organization_share
    totals_of = {
        Quota.WAITING_READS: settings.waiting_reads,
        Quota.WAITING_WRITES: settings.waiting_writes,
        Quota.WEBHOOK_TURNS: MAX_WEBHOOK_ENDPOINTS,
        Quota.BODY_BYTES: settings.waiting_body_mib * MIB,
    }
    used = reported(stores.redis)
    used |= {quota: most_waiting(stores.redis, queue) for queue, quota in QUOTAS.items()}
    return {
        quota: QuotaUse(used.get(quota, 0), share_of(total, percent)) for quota, total in totals_of.items()
    }


def _records(services: Services) -> Records:
    with services.stores.database.reading() as session:
        return Records(
            connections.counts(session),
            organization_grants.counts(session),
            deliveries.waiting(session),
            holds.count_active(session, now=now_ms()),
            QuotaUse(holds.most_held_users(session, now=now_ms()), services.settings.max_held_users),
        )


def _authenticate(token: str) -> None:
    """Require the metrics token; if none is set, require a client on this machine.

    :raise Forbidden: for another machine, if no token is set
    :raise Unauthenticated: for a wrong or missing token
    """
    if not token:
        if not from_this_machine():
            raise Forbidden(
                "Without ALMANAC_METRICS_TOKEN, only this machine may read metrics. Set it and send it in "
                "the header Authorization: Bearer <ALMANAC_METRICS_TOKEN>",
                Code.METRICS_FORBIDDEN,
            )
        return
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(sent.strip().encode(), token.encode()):
        raise Unauthenticated(
            "Send the metrics token in the header Authorization: Bearer <ALMANAC_METRICS_TOKEN>",
            Code.METRICS_TOKEN_INVALID,
        )

"""Sends recorded events to webhook endpoints, signed by the Standard Webhooks scheme.

https://www.standardwebhooks.com
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import orjson
from standardwebhooks import Webhook

from providers.http.ssrf_guard import ForbiddenUrl
from store.coordination.shares import NO_OWN, UNBOUND, Quota
from store.security.crypto import Undecipherable
from store.sql.queries import deliveries, webhooks
from store.sql.queries.deliveries import AttemptResult, ClaimedDelivery
from workers.runtime import Runtime
from workers.upkeep import batches
from workers.webhooks.fair_queue import Turn
from workers.webhooks.http import NoEndpointAnswer, post

log = logging.getLogger(__name__)

# Longest time in seconds for which one endpoint is served without a pause.
MAX_SERVE_SECONDS = 30.0
# The same while other endpoints wait.
MAX_SERVE_SECONDS_WHILE_OTHERS_WAIT = 5.0
# Lease of a claimed delivery: longer than an attempt can take, so that no other worker repeats it.
LEASE = timedelta(seconds=90)

# Endpoints that one sweep enqueues.
MAX_ENDPOINTS = 1000

# Random extra delay as a share of the pause, so that retries after one outage do not coincide.
JITTER = 0.1

GONE = 410


def due(runtime: Runtime) -> Sequence[str]:
    """The endpoints that have a delivery due."""
    with runtime.stores.database.reading() as session:
        return deliveries.endpoints_due(session, limit=MAX_ENDPOINTS)


def deliver(runtime: Runtime, endpoint_id: str) -> None:
    """Send the due deliveries of an endpoint, one after the other, unless another worker serves it.

    Adds the endpoint to the queue of this process, then serves endpoints in the order of the queue. After
    ``MAX_SERVE_SECONDS`` it begins no other, so that the worker can shut down. If the process already serves
    its maximum, or that of the endpoint's tenant, this returns at once, and another call serves the endpoint.
    """
    with runtime.stores.database.reading() as session:
        tenant, quotas = deliveries.organization_of(session, endpoint_id) or (UNBOUND, NO_OWN)
    runtime.webhook_turns.set_own(tenant, quotas.get(Quota.WEBHOOK_TURNS))
    runtime.webhook_queue.add(endpoint_id, tenant)
    until = time.monotonic() + MAX_SERVE_SECONDS
    while time.monotonic() < until and (turn := runtime.webhook_queue.take()) is not None:
        try:
            _serve(runtime, turn)
        finally:
            runtime.webhook_queue.done(turn)


def purge(runtime: Runtime) -> int:
    """Delete expired secrets, and deliveries that are too old for the log; returns how many deliveries."""
    with runtime.stores.database.writing() as session:
        webhooks.forget_expired(session)
    return batches.purge(runtime, deliveries.purge)


def _serve(runtime: Runtime, turn: Turn) -> None:
    """Send everything due to an endpoint, unless another worker sends to it.

    After one call without an answer, the rest waits.
    """
    began = time.monotonic()
    while not _is_over(runtime, turn, began):
        with runtime.stores.database.writing() as session:
            claimed = deliveries.claim(session, turn.endpoint_id, until=datetime.now(UTC) + LEASE)
        if claimed is None:
            return
        answer = _attempt(runtime, claimed)
        _settle(runtime, claimed, answer)
        if answer.status is None:
            return


def _is_over(runtime: Runtime, turn: Turn, began: float) -> bool:
    others = runtime.webhook_queue.others_wait_for(turn)
    return time.monotonic() - began >= (MAX_SERVE_SECONDS_WHILE_OTHERS_WAIT if others else MAX_SERVE_SECONDS)


def _attempt(runtime: Runtime, claimed: ClaimedDelivery) -> AttemptResult:
    body = orjson.dumps(claimed.payload)
    try:
        headers = _signed(runtime, claimed, body)
    except Undecipherable:
        log.exception("a webhook secret cannot be decrypted", extra={"endpoint": claimed.endpoint_id})
        return AttemptResult(None, "the secret cannot be opened")
    began = time.monotonic()
    try:
        response = post(claimed.url, headers, body, allow_private=runtime.settings.webhooks_allow_private)
    except ForbiddenUrl as error:
        return AttemptResult(None, f"url {error}")
    except NoEndpointAnswer as error:
        return AttemptResult(None, str(error), milliseconds=_milliseconds_since(began))
    status = response.status
    return AttemptResult(
        status,
        None if 200 <= status < 300 else f"answered {status}",
        response.start or None,
        _milliseconds_since(began),
    )


def _milliseconds_since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _signed(runtime: Runtime, claimed: ClaimedDelivery, body: bytes) -> dict[str, str]:
    """The headers of one attempt. Each attempt has a new signature, because receivers refuse old ones.

    After a rotation of the secret there are two, separated by a space; receivers accept either.
    """
    moment = datetime.now(UTC)
    signatures = [
        Webhook(secret).sign(claimed.id, moment, body.decode()) for secret in _secrets(runtime, claimed)
    ]
    return {
        "Content-Type": "application/json",
        "webhook-id": claimed.id,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _secrets(runtime: Runtime, claimed: ClaimedDelivery) -> list[str]:
    """The secrets to sign with, the current one first.

    :raise Undecipherable: when the key of one is no longer on the ring
    """
    endpoint_id, keyring = claimed.endpoint_id, runtime.stores.keyring
    found = [webhooks.open_secret(endpoint_id, claimed.sealed_secret, keyring)]
    if claimed.sealed_previous_secret is not None:
        found.append(webhooks.open_previous(endpoint_id, claimed.sealed_previous_secret, keyring))
    return found


def _settle(runtime: Runtime, claimed: ClaimedDelivery, answer: AttemptResult) -> None:
    pauses = runtime.settings.webhooks_retry_seconds
    with runtime.stores.database.writing() as session:
        if answer.error is None:
            deliveries.delivered(session, claimed, answer, most_attempts=len(pauses) + 1)
        elif answer.status == GONE:
            deliveries.gone(session, claimed, answer)
        else:
            again_at = next_attempt(claimed.attempts, pauses)
            deliveries.failed(session, claimed, answer, again_at=again_at)
    if answer.error is not None:
        log.info("webhook attempt failed: %s", answer.error, extra={"endpoint": claimed.endpoint_id})


def next_attempt(attempts: int, pauses: Sequence[float]) -> datetime | None:
    """When to retry after this number of attempts; None when the delivery is given up.

    The pause begins now. An installation that was stopped for a day has not used up the attempts of that day.
    """
    if attempts > len(pauses):
        return None
    pause = pauses[attempts - 1] * random.uniform(1, 1 + JITTER)
    return datetime.now(UTC) + timedelta(seconds=pause)

"""Rate limiting of upkeep's provider calls, which share the limits with requests and yield to them."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from redis.exceptions import RedisError

from providers.errors import RateLimited
from store.coordination.provider_limits import GO, Access, AcquireRequest, Circuit, WaitReason
from store.sql.queries.connection_rows import Credentials
from workers.execution.call_policy import circuit_open_error, leased_mailbox, rate_limited_message
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# Longest wait in seconds, because a waiting batch occupies a thread that requests need.
MAX_WAIT_SECONDS = 1.0
# Seconds for which a lease outlasts the deadline of its calls.
MARGIN = 1.0


@contextmanager
def acquire(
    runtime: Runtime, credentials: Credentials, calls: int, access: Access, *, deadline: float
) -> Iterator[None]:
    """Acquire a permit for ``calls`` calls to an account, which end by ``deadline``; waits for a moment.

    :raise RateLimited: if the permit is not granted in time
    :raise Unavailable: while the circuit of the account or of its provider is open
    """
    until = min(deadline, time.monotonic() + MAX_WAIT_SECONDS)
    circuit = Circuit(credentials.provider, access)
    job = f"upkeep:{secrets.token_hex(8)}"
    request = AcquireRequest(circuit, credentials.id, calls, leased_mailbox(credentials), job)
    limits, permit = runtime.stores.provider_limits, GO
    lease_seconds = max(0.0, deadline - time.monotonic()) + MARGIN
    try:
        while (
            permit := limits.acquire(
                [request], left=max(0.0, until - time.monotonic()), lease_seconds=lease_seconds
            )[0]
        ).wait:
            if permit.why is WaitReason.OPEN:
                raise circuit_open_error(credentials.provider, permit)
            if time.monotonic() + permit.wait >= until:
                message = rate_limited_message(credentials.provider, permit)
                raise RateLimited(message, retry_after=permit.wait)
            if permit.paid:
                request = replace(request, calls=0)
            time.sleep(permit.wait)
        yield
    finally:
        with runtime.stores.redis.pipeline(transaction=False) as pipe:
            limits.release(pipe, request, probed=permit.why is WaitReason.PROBE)
            try:
                pipe.execute()
            except RedisError as error:
                # The calls are done, and their results count.
                log.warning("permit not released, it expires by itself: %s", type(error).__name__)

"""Rate limiting of upkeep's provider calls, which share the limits with requests and yield to them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from providers.errors import RateLimited
from store.coordination.circuit_breaker import Family
from store.coordination.provider_rate_limiter import (
    GO,
    AcquireRequest,
    Permit,
    ProviderRateLimiter,
    WaitReason,
)
from store.sql.queries.connections import Credentials
from workers.execution.call_policy import TITLES, leased_mailbox, unanswered
from workers.runtime import Runtime

# Longest wait in seconds, because a waiting batch occupies a thread that requests need.
PATIENCE = 1.0
# Seconds for which a lease outlasts the deadline of its calls.
MARGIN = 1.0


@contextmanager
def acquire(
    runtime: Runtime, credentials: Credentials, calls: int, family: Family, *, deadline: float
) -> Iterator[None]:
    """Acquire a permit for ``calls`` calls to an account, which end by ``deadline``; waits for a moment.

    :raise RateLimited: if the permit is not granted in time
    :raise Unavailable: while the circuit of the account or of its provider is open
    """
    until = min(deadline, time.monotonic() + PATIENCE)
    answer = GO
    lease = f"upkeep:{secrets.token_hex(8)}"
    ask = AcquireRequest(
        credentials.provider, credentials.id, calls, leased_mailbox(credentials), lease, family
    )
    try:
        while (answer := _answer(runtime, ask, until, deadline)).wait:
            late = time.monotonic() + answer.wait >= until
            if answer.why is WaitReason.OPEN or (late and answer.why is WaitReason.PROBED):
                raise unanswered(credentials.provider, answer)
            if late:
                title = TITLES[credentials.provider]
                raise RateLimited(f"{title} asks us to slow down", retry_after=answer.wait)
            if answer.paid:
                ask = replace(ask, calls=0)
            time.sleep(answer.wait)
        if answer.why is WaitReason.PROBE:
            runtime.stores.circuit_breakers.probes(ask.guarded, ask.account)
        yield
    finally:
        with runtime.stores.redis.pipeline(transaction=False) as pipe:
            runtime.stores.circuit_breakers.tell(pipe)
            runtime.stores.provider_rate_limiter.release(pipe, ask)
            if answer.why is WaitReason.PROBE:
                runtime.stores.circuit_breakers.leave(pipe, ask.guarded, ask.account, ask.lease)
            pipe.execute()


def _answer(runtime: Runtime, ask: AcquireRequest, until: float, deadline: float) -> Permit:
    now = time.monotonic()
    lease = max(0.0, deadline - now) + MARGIN
    with runtime.stores.redis.pipeline(transaction=False) as pipe:
        runtime.stores.provider_rate_limiter.ask(pipe, [ask], left=max(0.0, until - now), lease=lease)
        (result,) = pipe.execute(raise_on_error=False)
    return ProviderRateLimiter.answers(result, [ask])[0]

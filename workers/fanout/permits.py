"""Gets permits from the rate limiter for the jobs of a drain, before they begin."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from redis.client import Pipeline

from providers.base import Failed
from store.coordination.provider_rate_limiter import (
    GO,
    AcquireRequest,
    Permit,
    ProviderRateLimiter,
    WaitReason,
)
from workers.execution import call_policy
from workers.failures import BROKEN
from workers.fanout.drain_state import TakenJob
from workers.fanout.named_results import NamedResults
from workers.runtime import Runtime

# Seconds for which a lease outlasts the last moment of its call.
LEASE_MARGIN = 1.0


@dataclass(frozen=True, slots=True)
class GrantedPermits:
    """The permits of some jobs, by their requests, and when they were given (``time.monotonic()``)."""

    permits: Mapping[AcquireRequest, Permit]
    at: float

    def permit(self, taken: TakenJob) -> Permit:
        """The permit of a job. Jobs that the rate limiter does not concern may begin at once."""
        return GO if taken.acquire_request is None else self.permits[taken.acquire_request]


class Permits:
    """Requests and releases the permits of one drain's jobs."""

    def __init__(self, runtime: Runtime, deadline: float) -> None:
        self._runtime = runtime
        self._deadline = deadline

    def request(self, taken: Sequence[TakenJob]) -> GrantedPermits:
        """Request permits and renew the flights of these jobs, in one round trip."""
        stores = self._runtime.stores
        # The jobs of a bundle may share a request.
        requests = list(
            dict.fromkeys(each.acquire_request for each in taken if each.acquire_request is not None)
        )
        flights = [each.flight for each in taken if each.flight is not None]
        left = self._deadline - time.monotonic()
        with stores.redis.pipeline(transaction=False) as pipe:
            results = NamedResults(pipe)
            if flights:
                stores.single_flight.renew(pipe, flights)
            if requests:
                lease_seconds = max(0.0, left) + self._runtime.grace + LEASE_MARGIN
                stores.provider_rate_limiter.acquire(pipe, requests, left=left, lease_seconds=lease_seconds)
                results.name("permits")
            named = results.by_name(pipe.execute(raise_on_error=False))
        permits = ProviderRateLimiter.permits(named["permits"], requests) if requests else []
        return GrantedPermits(dict(zip(requests, permits, strict=True)), time.monotonic())

    def decide(self, taken: TakenJob, granted: GrantedPermits) -> Failed | float | None:
        """Record a permit. Returns None if the job may begin, the moment to try again, or its failure."""
        permit = granted.permit(taken)
        if taken.acquire_request is not None and permit.paid:
            taken.acquire_request = replace(taken.acquire_request, calls=0)
        if not permit.wait:
            taken.probes = permit.why is WaitReason.PROBE
            if taken.acquire_request is not None and permit.record_success:
                self._runtime.stores.circuit_breakers.record_next_success(
                    taken.acquire_request.circuit, taken.acquire_request.account
                )
            return None
        if taken.row is not None and permit.why is WaitReason.OPEN:
            return call_policy.circuit_open_failure(taken.row, permit)
        # A wait for the mailbox does not replace the failure of an earlier wait.
        if taken.row is not None and (taken.failed is BROKEN or permit.why is not WaitReason.MAILBOX):
            taken.failed = call_policy.rate_limited_failure(taken.row, permit)
        when = granted.at + permit.wait
        return when if when < self._deadline else taken.failed

    def release(self, pipe: Pipeline, taken: TakenJob) -> None:
        """Queue the end of a job's leases on ``pipe``."""
        stores = self._runtime.stores
        if taken.acquire_request is not None:
            stores.provider_rate_limiter.release(pipe, taken.acquire_request)
            if taken.probes:
                stores.circuit_breakers.end_probe(
                    pipe,
                    taken.acquire_request.circuit,
                    taken.acquire_request.account,
                    taken.acquire_request.lease_name,
                )

"""The limits of one provider, as the tests of circuit breakers use them."""

from __future__ import annotations

from dataclasses import dataclass

from redis import Redis

from store.coordination.provider_limits import (
    Access,
    AcquireRequest,
    BreakerLimits,
    CallLimit,
    Circuit,
    CircuitState,
    Permit,
    ProviderLimits,
)

ACCOUNTS, FAILURES, PAUSE, LEASE = 3, 2, 10.0, 7.0
START = 1_800_000_000.0
LOOSE = CallLimit(10**6, 60)


@dataclass
class Breakers:
    """The circuit breakers of one provider; ``now`` is the time of a step, by default that of Redis."""

    redis: Redis
    provider: str = "google"
    accounts: int = ACCOUNTS
    failures: int = FAILURES
    pause: float = PAUSE
    jobs: int = 0
    access: Access = Access.READS
    mailbox: str | None = None

    def __post_init__(self) -> None:
        limits = {self.provider: LOOSE}
        breaker = BreakerLimits(self.accounts, self.failures, self.pause)
        self.limits = ProviderLimits(self.redis, limits, limits, breaker)

    @property
    def circuit(self) -> Circuit:
        return Circuit(self.provider, self.access)

    def at(self, now: float | None) -> ProviderLimits:
        self.limits._clock = None if now is None else lambda: now
        return self.limits

    def request(self, account: str, job: str) -> AcquireRequest:
        return AcquireRequest(self.circuit, account, 0, self.mailbox, job)

    def acquire(
        self, *accounts: str, job: str | None = None, lease: float = LEASE, now: float | None = None
    ) -> list[Permit]:
        """Acquire a permit for each account, as a worker does."""
        requests = []
        for account in accounts:
            self.jobs += 1
            requests.append(self.request(account, job or f"job:{self.jobs}"))
        return self.at(now).acquire(requests, left=60.0, lease_seconds=lease)

    def fail(
        self, account: str, *, given_up: bool = True, took: float = 0.0, now: float | None = None
    ) -> bool:
        """Whether the account is refused after it has failed."""
        held = self.at(now).failed(self.circuit, account, given_up=given_up, duration=took)
        return held is None

    def answer(self, account: str, *, took: float = 0.0, now: float | None = None) -> None:
        self.at(now).answered(self.circuit, account, duration=took)

    def end_probe(self, account: str, job: str) -> None:
        with self.redis.pipeline(transaction=False) as pipe:
            self.limits.release(pipe, self.request(account, job), probed=True)
            pipe.execute()

    def state(self, now: float | None = None) -> CircuitState:
        return self.at(now).states([self.circuit])[self.circuit]

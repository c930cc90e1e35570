"""The circuit breakers and the rate limiter of one provider, as their tests use them."""

from __future__ import annotations

from dataclasses import dataclass

from redis import Redis

from store.coordination import circuit_breaker
from store.coordination.circuit_breaker import Access, CircuitBreakers, CircuitKey
from store.coordination.provider_rate_limiter import AcquireRequest, Limit, Permit, ProviderRateLimiter

ACCOUNTS, FAILURES, PAUSE, LEASE = 3, 2, 10.0, 7.0
START = 1_800_000_000.0
LOOSE = Limit(10**6, 60)


@dataclass
class Both:
    """The circuit breakers of one provider and the rate limiter that checks them, on one Redis."""

    redis: Redis
    provider: str = "google"
    accounts: int = ACCOUNTS
    failures: int = FAILURES
    pause: float = PAUSE
    jobs: int = 0
    access: Access = Access.READS

    def __post_init__(self) -> None:
        limits = {self.provider: LOOSE}
        self.provider_rate_limiter = ProviderRateLimiter(self.redis, limits, limits)
        self.circuit_breakers = CircuitBreakers(
            self.redis, accounts=self.accounts, failures=self.failures, pause=self.pause
        )

    @property
    def circuit(self) -> CircuitKey:
        return CircuitKey(self.provider, self.access)

    def acquire(
        self, *accounts: str, job: str | None = None, lease: float = LEASE, now: float | None = None
    ) -> list[Permit]:
        """Acquire a permit for each account, as a worker does."""
        requests = []
        for account in accounts:
            self.jobs += 1
            name = job or f"job:{self.jobs}"
            requests.append(AcquireRequest(self.provider, account, 0, None, name, self.access))
        with self.redis.pipeline(transaction=False) as pipe:
            self.provider_rate_limiter.acquire(pipe, requests, left=60.0, lease_seconds=lease, now=now)
            (result,) = pipe.execute(raise_on_error=False)
        permits = ProviderRateLimiter.permits(result, requests)
        for account, permit in zip(accounts, permits, strict=True):
            if permit.record_success and not permit.wait:
                self.circuit_breakers.record_next_success(self.circuit, account)
        return permits

    def fail(
        self, account: str, *, given_up: bool = True, took: float = 0.0, now: float | None = None
    ) -> bool:
        return self.circuit_breakers.failed(self.circuit, account, given_up=given_up, duration=took, now=now)

    def answer(self, account: str, *, now: float | None = None) -> None:
        self.circuit_breakers.answered(self.circuit, account, now=now)

    def end_probe(self, account: str, job: str) -> None:
        with self.redis.pipeline(transaction=False) as pipe:
            self.circuit_breakers.end_probe(pipe, self.circuit, account, job)
            pipe.execute()

    def state(self, now: float | None = None) -> circuit_breaker.CircuitState:
        return self.circuit_breakers.states([self.circuit], now=now)[self.circuit]

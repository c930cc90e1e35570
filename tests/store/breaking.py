"""The circuit breakers and the rate limiter of one provider, as their tests use them."""

from __future__ import annotations

from dataclasses import dataclass

from redis import Redis

from store.coordination import circuit_breaker
from store.coordination.circuit_breaker import CircuitBreakers, CircuitKey, Family
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
    young: float = LEASE
    asked: int = 0
    family: Family = Family.BUSY

    @property
    def guarded(self) -> CircuitKey:
        return CircuitKey(self.provider, self.family)

    def __post_init__(self) -> None:
        limits = {self.provider: LOOSE}
        self.provider_rate_limiter = ProviderRateLimiter(
            self.redis, limits, limits, pause=self.pause, young=self.young
        )
        self.circuit_breakers = CircuitBreakers(
            self.redis, accounts=self.accounts, failures=self.failures, pause=self.pause
        )

    def ask(self, account: str, *, by: str | None = None, lease=LEASE, now: float | None = None) -> Permit:
        return self.ask_all([account], by=by, lease=lease, now=now)[0]

    def ask_all(
        self, accounts: list[str], *, by: str | None = None, lease=LEASE, now: float | None = None
    ) -> list[Permit]:
        asks = []
        for account in accounts:
            self.asked += 1
            asks.append(
                AcquireRequest(self.provider, account, 0, None, by or f"job:{self.asked}", self.family)
            )
        with self.redis.pipeline(transaction=False) as pipe:
            self.provider_rate_limiter.ask(pipe, asks, left=60.0, lease=lease, now=now)
            (told,) = pipe.execute(raise_on_error=False)
        return ProviderRateLimiter.answers(told, asks)

    def fail(
        self, account: str, *, given_up: bool = True, took: float = 0.0, now: float | None = None
    ) -> bool:
        return self.circuit_breakers.failed(self.guarded, account, given_up=given_up, took=took, now=now)

    def answer(self, account: str, *, now: float | None = None) -> None:
        self.circuit_breakers.answered(self.guarded, account)
        with self.redis.pipeline(transaction=False) as pipe:
            self.circuit_breakers.tell(pipe, now=now)
            pipe.execute()

    def leave(self, account: str, by: str) -> None:
        with self.redis.pipeline(transaction=False) as pipe:
            self.circuit_breakers.leave(pipe, self.guarded, account, by)
            pipe.execute()

    def standing(self, now: float | None = None) -> circuit_breaker.CircuitState:
        return self.circuit_breakers.standing([self.guarded], now=now)[self.guarded]

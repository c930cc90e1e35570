"""What one process keeps open: the database, Redis, and the caches in it."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from redis import Redis

from store.cache.busy_cache import BusyCache
from store.cache.calendar_lists import CalendarLists
from store.cache.fast_redis import FastRedis
from store.cache.versioned_cache import VersionedCache
from store.config.settings import Settings
from store.coordination.api_rate_limiter import ApiRateLimiter
from store.coordination.channel_usage import ChannelUsage
from store.coordination.circuit_breaker import YOUNG, YOUNG_SHARE, CircuitBreakers
from store.coordination.grants import Grants
from store.coordination.heartbeats import Heartbeats
from store.coordination.provider_rate_limiter import MICROSOFT_APP, Limit, ProviderRateLimiter
from store.coordination.single_flight import SingleFlight
from store.metrics.counters import Counters
from store.metrics.flusher import Flusher
from store.metrics.key_usage import KeyUsage
from store.security.crypto import Keyring
from store.security.oauth_states import OAuthStates
from store.security.registration_trials import RegistrationTrials
from store.sql.after_commit import Tell
from store.sql.database import Database

# Redis is beside us: one that takes longer is down, and the caller had better know soon.
REDIS_TIMEOUT = 2.0

# One blocking pop, in seconds: whoever waits for longer pops again, so that a Redis that hangs is noticed.
LONGEST_POP = 1.0


class Stores:
    """Opened when first used, so that a command that needs only the database connects only there."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # Until somebody is there to be told, the next round of upkeep finds what waits.
        self.tell: Tell = lambda _endpoints: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what was opened; what is used afterwards opens anew."""
        # What it writes last needs the others.
        if (flusher := self.__dict__.pop("flusher", None)) is not None:
            flusher.close()
        for name in ("database", "redis"):
            opened = self.__dict__.pop(name, None)
            if opened is not None:
                opened.close()
        # They speak to a Redis or a database that is closed.
        caches = (
            "circuit_breakers",
            "busy",
            "calendar_lists",
            "versioned_cache",
            "single_flight",
            "fast_redis",
            "api_rate_limiter",
            "provider_rate_limiter",
        )
        for name in ("counters", "grants", "key_usage", "heartbeats", "channel_usage", *caches):
            self.__dict__.pop(name, None)

    @cached_property
    def database(self) -> Database:
        """The SQL database."""
        return Database(
            self.settings.database_url,
            changing=lambda: self.versioned_cache.changing(),
            tell=lambda endpoints: self.tell(endpoints),
        )

    @cached_property
    def redis(self) -> Redis:
        """Redis, one pool for all threads of the process."""
        return Redis.from_url(
            self.settings.redis_url,
            # Every thread of a process may hold one at once.
            max_connections=1000,
            socket_connect_timeout=REDIS_TIMEOUT,
            socket_timeout=LONGEST_POP + REDIS_TIMEOUT,
        )

    @cached_property
    def counters(self) -> Counters:
        """What the service does over time."""
        return Counters(self.redis)

    @cached_property
    def heartbeats(self) -> Heartbeats:
        """Which workers are there, and whether beat is."""
        return Heartbeats(self.redis)

    @cached_property
    def key_usage(self) -> KeyUsage:
        """When API keys are used."""
        return KeyUsage(self.database)

    @cached_property
    def flusher(self) -> Flusher:
        """Writes down what those two have noted, once it is started."""
        return Flusher([self.counters.flush, self.key_usage.flush])

    @cached_property
    def versioned_cache(self) -> VersionedCache:
        """What this process remembers of the database."""
        return VersionedCache(self.redis, self.fast_redis)

    @cached_property
    def fast_redis(self) -> FastRedis:
        """What every request reads from Redis comes this way."""
        return FastRedis(self.redis)

    @cached_property
    def keyring(self) -> Keyring:
        """What seals and opens tokens."""
        return Keyring(self.settings.encryption_keys)

    @cached_property
    def busy(self) -> BusyCache:
        """The busy cache."""
        settings = self.settings
        return BusyCache(
            self.redis,
            self.fast_redis,
            ttl_seconds=settings.busy_ttl_seconds,
            stale_seconds=settings.busy_stale_seconds,
            bucket=settings.busy_bucket,
            watched_seconds=settings.push_ttl_seconds,
        )

    @cached_property
    def channel_usage(self) -> ChannelUsage:
        """What is known of calendars in use and of their channels."""
        return ChannelUsage(self.redis)

    @cached_property
    def calendar_lists(self) -> CalendarLists:
        """The remembered calendar lists."""
        settings = self.settings
        return CalendarLists(self.redis, settings.busy_ttl_seconds, stale_seconds=settings.busy_stale_seconds)

    @cached_property
    def single_flight(self) -> SingleFlight:
        """The reads under way."""
        return SingleFlight(
            self.redis,
            failure_seconds=self.settings.failure_ttl_seconds,
            asking_seconds=self.settings.fanout_deadline_seconds,
            young=self._young,
        )

    @cached_property
    def api_rate_limiter(self) -> ApiRateLimiter | None:
        """How often each API key may still ask; None when they have no limit."""
        limit = self.settings.rate_limit
        return ApiRateLimiter(self.fast_redis, limit) if limit else None

    @cached_property
    def provider_rate_limiter(self) -> ProviderRateLimiter:
        """What may be asked of the providers."""
        settings = self.settings
        return ProviderRateLimiter(
            self.redis,
            {"google": Limit(settings.google_per_minute, 60), "microsoft": MICROSOFT_APP},
            {
                "google": Limit(settings.google_per_minute_and_user, 60),
                "microsoft": Limit(settings.microsoft_per_mailbox, 600),
            },
            pause=settings.breaker_pause_seconds,
            young=self._young,
        )

    @property
    def _young(self) -> float:
        return min(YOUNG, self.settings.fanout_deadline_seconds * YOUNG_SHARE)

    @cached_property
    def circuit_breakers(self) -> CircuitBreakers:
        """Who is not asked for a while, because they do not answer."""
        settings = self.settings
        return CircuitBreakers(
            self.redis,
            accounts=settings.breaker_accounts,
            failures=settings.breaker_failures,
            pause=settings.breaker_pause_seconds,
        )

    @cached_property
    def oauth_states(self) -> OAuthStates:
        """Consents under way, and codes that wait for a worker."""
        return OAuthStates(self.redis, self.keyring)

    @cached_property
    def grants(self) -> Grants:
        """Revocations and consents of provider accounts, kept apart."""
        return Grants(self.redis)

    @cached_property
    def registration_trials(self) -> RegistrationTrials:
        """Registrations that wait for a worker to try them."""
        return RegistrationTrials(self.redis, self.keyring)

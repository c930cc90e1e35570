"""The database, Redis and everything that is kept in them, opened once for each process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Self

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from store.cache.busy_cache import BusyCache
from store.cache.calendar_lists import CalendarLists
from store.cache.calendar_usage import AskedCalendars, ChannelUsage
from store.cache.fast_redis import FastRedis
from store.cache.last_reads import LastReads
from store.cache.versioned_cache import ActiveTime, HeldTimes, VersionedCache
from store.cache.web_heartbeat import WebHeartbeat
from store.config.settings import Settings
from store.coordination.heartbeats import Heartbeats
from store.coordination.locks import AccountLocks
from store.coordination.provider_limits import BreakerLimits, ProviderLimits
from store.coordination.registration_checks import RegistrationChecks
from store.coordination.single_flight import SingleFlight
from store.lua import ScriptRedis
from store.metrics.counters import Counters
from store.metrics.flusher import SECONDS, Flusher
from store.metrics.key_usage import KeyUsage
from store.security.crypto import Keyring
from store.security.grant_tokens import GrantTokens
from store.security.one_time_secrets import (
    STATE_SECONDS,
    AccountByForm,
    EnteredForm,
    GrantTrial,
    OneTimeSecrets,
    PendingConsent,
    PendingExchange,
    PendingRevocation,
    PendingSignIn,
    RegistrationTrial,
)
from store.sql.database import Database, EventsCallback
from store.sql.queries import holds

# Seconds. Redis is on the same network: if it takes longer, it is down, and the caller should fail early.
REDIS_TIMEOUT = 2.0

# Seconds of one blocking pop. A caller that waits longer pops again, so that a Redis that hangs is noticed.
MAX_POP = 1.0


class Stores:
    """The stores of one process. Each is opened when it is first used.

    So a command that needs only the database does not connect to Redis.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # Called after a transaction that recorded webhook events, with the ids of their endpoints. Without a
        # listener the next sweep (``workers.webhooks.tasks``) finds the deliveries.
        self.on_events_recorded: EventsCallback = lambda _endpoints: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every store that was opened. A store that is used afterwards is opened again.

        No other thread may use the stores meanwhile.
        """
        # First, because its last flush needs the other stores.
        if (flusher := self.__dict__.pop("flusher", None)) is not None:
            flusher.close()
        for name in ("database", "redis"):
            opened = self.__dict__.pop(name, None)
            if opened is not None:
                opened.close()
        # The others hold the Redis client or the database that was just closed.
        for name in self.__dict__.keys() - {"settings", "on_events_recorded"}:
            del self.__dict__[name]

    @cached_property
    def database(self) -> Database:
        """The SQL database."""
        return Database(
            self.settings.database_url,
            on_cached_rows_changed=lambda: self.versioned_cache.bump_version(),
            on_events_recorded=lambda endpoints: self.on_events_recorded(endpoints),
        )

    @cached_property
    def redis(self) -> Redis:
        """Redis, one pool for all threads of the process."""
        return ScriptRedis.from_url(
            self.settings.redis_url,
            # Every thread of a process may hold one at once.
            max_connections=1000,
            socket_connect_timeout=REDIS_TIMEOUT,
            socket_timeout=MAX_POP + REDIS_TIMEOUT,
            # A request whose command fails answers 503 at once: the client knows best when to repeat it.
            retry=Retry(NoBackoff(), 0),
        )

    @cached_property
    def counters(self) -> Counters:
        """Usage counters over time."""
        return Counters(self.redis)

    @cached_property
    def heartbeats(self) -> Heartbeats:
        """Heartbeats of workers and of beat."""
        return Heartbeats(self.redis)

    @cached_property
    def web_heartbeat(self) -> WebHeartbeat:
        """The heartbeat of this web process."""
        return WebHeartbeat(self.redis)

    @cached_property
    def registration_checks(self) -> RegistrationChecks:
        """The last answer of each provider about its registration."""
        return RegistrationChecks(self.redis)

    @cached_property
    def key_usage(self) -> KeyUsage:
        """When API keys are used."""
        return KeyUsage(self.database)

    @cached_property
    def flusher(self) -> Flusher:
        """The thread that flushes counters and notes, once it is started."""
        flushes = [self.counters.flush, self.key_usage.flush, self.asked_calendars.flush]
        # Several times before an audit is due.
        return Flusher(flushes, seconds=min(SECONDS, self.settings.max_age_seconds / 20))

    @cached_property
    def versioned_cache(self) -> VersionedCache:
        """This process's cache of database rows."""
        return VersionedCache(self.redis, self.fast_redis)

    @cached_property
    def held_times(self) -> HeldTimes:
        """This process's cache of held time."""
        return HeldTimes(self._active_time, self.redis, self.fast_redis)

    def _active_time(self, names: Collection[str], now: int) -> Mapping[str, Sequence[ActiveTime]]:
        with self.database.reading() as session:
            return holds.active(session, names, now=now)

    @cached_property
    def fast_redis(self) -> FastRedis:
        """The Redis client for the reads that every request makes."""
        return FastRedis(self.redis)

    @cached_property
    def keyring(self) -> Keyring:
        """The keys that encrypt and decrypt secrets."""
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
            max_age_seconds=settings.max_age_seconds,
            bucket=settings.busy_bucket,
            watched_seconds=settings.watched_seconds,
        )

    @cached_property
    def channel_usage(self) -> ChannelUsage:
        """Which calendars are in use, and the state of their channels."""
        return ChannelUsage(self.redis)

    @cached_property
    def asked_calendars(self) -> AskedCalendars:
        """Which watched calendars requests ask for."""
        settings = self.settings
        return AskedCalendars(
            self.redis, ttl_seconds=settings.busy_ttl_seconds, max_age_seconds=settings.max_age_seconds
        )

    @cached_property
    def calendar_lists(self) -> CalendarLists:
        """The cached calendar lists."""
        settings = self.settings
        return CalendarLists(
            self.redis,
            settings.busy_ttl_seconds,
            stale_seconds=settings.busy_stale_seconds,
            max_age_seconds=settings.max_age_seconds,
        )

    @cached_property
    def last_reads(self) -> LastReads:
        """The results of the last reads of main calendars."""
        return LastReads(self.redis)

    @cached_property
    def single_flight(self) -> SingleFlight:
        """Single flight for reads from providers."""
        return SingleFlight(
            self.redis,
            failure_seconds=self.settings.failure_ttl_seconds,
            keep_seconds=self.settings.fanout_deadline_seconds,
        )

    @cached_property
    def provider_limits(self) -> ProviderLimits:
        """Rate limits, pauses and circuit breakers of the calls to providers."""
        settings = self.settings
        projects, accounts = settings.providers.limits()
        return ProviderLimits(
            self.redis,
            projects,
            accounts,
            BreakerLimits(
                settings.breaker_accounts, settings.breaker_failures, settings.breaker_pause_seconds
            ),
        )

    @cached_property
    def oauth_states(self) -> OneTimeSecrets[PendingConsent]:
        """Pending consents, each under its ``state``."""
        return OneTimeSecrets(
            self.redis, self.keyring, "oauth-state", PendingConsent, STATE_SECONDS, hashed=True
        )

    @cached_property
    def code_exchanges(self) -> OneTimeSecrets[PendingExchange]:
        """Authorization codes that a worker is to exchange."""
        return OneTimeSecrets(self.redis, self.keyring, "oauth-code", PendingExchange)

    @cached_property
    def entered_forms(self) -> OneTimeSecrets[EnteredForm]:
        """Forms whose accounts a worker is to open."""
        return OneTimeSecrets(self.redis, self.keyring, "form", EnteredForm)

    @cached_property
    def opened_accounts(self) -> OneTimeSecrets[AccountByForm]:
        """Accounts that a worker has opened, to be stored."""
        return OneTimeSecrets(self.redis, self.keyring, "opened-account", AccountByForm)

    @cached_property
    def begun_sign_ins(self) -> OneTimeSecrets[PendingSignIn]:
        """Sign-ins whose browsers were sent to the identity provider, each under its ``state``."""
        return OneTimeSecrets(self.redis, self.keyring, "sign-in-state", PendingSignIn, STATE_SECONDS)

    @cached_property
    def sign_ins(self) -> OneTimeSecrets[PendingSignIn]:
        """Sign-ins with a code that a worker is to redeem."""
        return OneTimeSecrets(self.redis, self.keyring, "sign-in", PendingSignIn)

    @cached_property
    def revocations(self) -> OneTimeSecrets[PendingRevocation]:
        """Grants of removed connections that a worker is to revoke."""
        return OneTimeSecrets(self.redis, self.keyring, "oauth-revocation", PendingRevocation)

    @cached_property
    def account_locks(self) -> AccountLocks:
        """Mutual exclusion of revocations and consents of one provider account."""
        return AccountLocks(self.redis)

    @cached_property
    def registration_trials(self) -> OneTimeSecrets[RegistrationTrial]:
        """Client registrations that a worker is to try before they are saved."""
        return OneTimeSecrets(self.redis, self.keyring, "registration", RegistrationTrial)

    @cached_property
    def grant_tokens(self) -> GrantTokens:
        """Access tokens of organization grants."""
        return GrantTokens(self.redis, self.keyring)

    @cached_property
    def grant_trials(self) -> OneTimeSecrets[GrantTrial]:
        """Grants of organizations that a worker is to try before they are saved."""
        return OneTimeSecrets(self.redis, self.keyring, "grant", GrantTrial)

"""What one process keeps open: the database, Redis, and the caches in it."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from redis import Redis

from store.authorizations import Authorizations
from store.busy_cache import BusyCache
from store.calendar_lists import CalendarLists
from store.crypto import Keyring
from store.database import Database
from store.directory import Directory
from store.line import Line
from store.settings import Settings
from store.throttle import MICROSOFT_APP, Limit, Throttle

# Redis is beside us: one that takes longer is down, and the caller had better know soon.
REDIS_TIMEOUT = 2.0

# One blocking pop, in seconds: whoever waits for longer pops again, so that a Redis that hangs is noticed.
LONGEST_POP = 1.0


class Stores:
    """Opened when first used, so that a command that needs only the database connects only there."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what was opened; what is used afterwards opens anew."""
        for name in ("database", "redis"):
            opened = self.__dict__.pop(name, None)
            if opened is not None:
                opened.close()
        # They speak to a Redis that is closed.
        for name in ("busy", "calendar_lists", "directory", "line", "throttle"):
            self.__dict__.pop(name, None)

    @cached_property
    def database(self) -> Database:
        """The SQL database."""
        return Database(self.settings.database_url, changing=lambda: self.directory.changing())

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
    def directory(self) -> Directory:
        """What this process remembers of the database."""
        return Directory(self.redis, self.line)

    @cached_property
    def line(self) -> Line:
        """What every request reads from Redis comes this way."""
        return Line(self.redis)

    @cached_property
    def keyring(self) -> Keyring:
        """What seals and opens tokens."""
        return Keyring(self.settings.encryption_keys)

    @cached_property
    def busy(self) -> BusyCache:
        """The busy cache."""
        settings = self.settings
        return BusyCache(
            self.redis, self.line, ttl_seconds=settings.busy_ttl_seconds, bucket=settings.busy_bucket
        )

    @cached_property
    def calendar_lists(self) -> CalendarLists:
        """The remembered calendar lists."""
        return CalendarLists(self.redis, self.settings.busy_ttl_seconds)

    @cached_property
    def throttle(self) -> Throttle:
        """What may be asked of the providers."""
        settings = self.settings
        return Throttle(
            self.redis,
            {"google": Limit(settings.google_per_minute, 60), "microsoft": MICROSOFT_APP},
            {
                "google": Limit(settings.google_per_minute_and_user, 60),
                "microsoft": Limit(settings.microsoft_per_mailbox, 600),
            },
        )

    @cached_property
    def authorizations(self) -> Authorizations:
        """Consents under way, and codes that wait for a worker."""
        return Authorizations(self.redis, self.keyring)

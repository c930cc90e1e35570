"""What the tasks of one process share: stores, providers, and the pool that reads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from threading import BoundedSemaphore

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from providers.http import transport
from providers.names import ProviderName
from providers.registry import Provider
from store.config.garbage_collection import OF_JOBS, collect_seldom
from store.config.settings import Settings
from store.stores import Stores
from workers.execution.registrations import Registrations
from workers.fanout import egress
from workers.fanout.egress import Egress
from workers.fanout.pool import FairPool
from workers.webhooks.fair_queue import FairQueue

log = logging.getLogger(__name__)


# Receivers of webhooks that a process sends to at once: those that hang must leave it threads for reads.
RECEIVERS = 16

# Places that all upkeep of a process may hold at once: a provider that hangs leaves the others to requests.
UPKEEP = 8


class Runtime:
    """Opened when first used: the web tier makes the same Celery app and never reads."""

    def __init__(self, settings: Settings, stores: Stores | None = None) -> None:
        self.settings = settings
        self.stores = stores or Stores(settings)
        self.webhook_queue = FairQueue(RECEIVERS)
        # The worker that this is, if it is one.
        self._name: str | None = None
        self.upkeep = BoundedSemaphore(max(1, min(UPKEEP, settings.reads_in_flight // 2)))

    def prepare(self, worker: str) -> None:
        """Open now what the first request would have to wait for; what is down is tried again by it.

        From now on it says every few seconds that this worker is there.
        """
        transport.prepare()
        _ = self.providers, self.pool
        for ping in (self.stores.database.ping, self.stores.redis.ping):
            try:
                ping()
            except (SQLAlchemyError, RedisError) as error:
                log.warning("not there yet: %s", type(error).__name__)
        self.announce(worker)
        with suppress(RedisError):
            self.stores.heartbeats.come_back(worker)
        self.stores.flusher.add(self._say_so)
        self.stores.flusher.start()
        collect_seldom(OF_JOBS)

    def announce(self, worker: str) -> None:
        """Send a heartbeat as the worker of this name, and watch from now on which providers it reaches."""
        self._name = worker
        self.egress.start(worker)
        self._say_so()

    def retire(self) -> None:
        """The worker takes no new tasks: other workers must not hand it any jobs."""
        # In a thread of its own: Celery calls this inside a signal handler, which may have interrupted a
        # Redis call of the main thread.
        threading.Thread(target=self._deregister, name="retire", daemon=True).start()

    def leave(self) -> None:
        """The worker ends."""
        self.egress.stop()
        self._deregister()

    def _deregister(self) -> None:
        name, self._name = self._name, None
        if name is not None:
            with suppress(RedisError):
                self.stores.heartbeats.leave(name)

    def _say_so(self) -> None:
        if self._name is not None:
            try:
                self.stores.heartbeats.work(
                    self._name,
                    used=self.pool.used,
                    places=self.pool.size,
                    unreachable=self.egress.unreachable,
                )
            except RedisError as error:
                log.warning("worker heartbeat failed: %s", type(error).__name__)

    @cached_property
    def registrations(self) -> Registrations:
        """Both providers, at the addresses of the settings, with the registrations that count."""
        return Registrations(self.settings.providers, self.stores)

    @property
    def providers(self) -> Mapping[ProviderName, Provider]:
        """Both providers; a registration saved elsewhere counts within a second."""
        return self.registrations.recent()

    @property
    def grace(self) -> float:
        """Seconds for which a read goes on after its request has given up.

        Long enough for a provider that is slow just now, so that who asks again is answered from the cache;
        no longer, as the place that it holds is lacking elsewhere.
        """
        return self.settings.fanout_deadline_seconds / 2

    @cached_property
    def egress(self) -> Egress:
        """Whether this process can reach the providers."""
        return Egress(self.stores.heartbeats, egress.hosts(self.settings.providers), self._say_so)

    @cached_property
    def pool(self) -> FairPool:
        """As many reads at once as this process may have in flight, across all requests."""
        return FairPool(self.settings.reads_in_flight)

"""The objects that the tasks of one process share: stores, providers, and the thread pool."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from threading import BoundedSemaphore

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from providers import registry
from providers.base import Token
from providers.definition import Provider
from providers.http import transport
from providers.openid.client import ClientRegistration, IdentityProvider
from store.config.garbage_collection import OF_JOBS, collect_seldom
from store.config.settings import Settings
from store.coordination import shares
from store.coordination.shares import Quota, SharedPlaces, share_of
from store.stores import Stores
from workers.egress import Egress
from workers.execution.registrations import Registrations
from workers.fanout.pool import StepPool
from workers.queues import MAX_WEBHOOK_ENDPOINTS
from workers.webhooks.fair_queue import FairQueue

log = logging.getLogger(__name__)

# Threads that upkeep may hold at once in one process, so that a provider that hangs leaves some to requests.
UPKEEP_THREADS = 8


class Runtime:
    """Opens the shared objects on first use, because beat has the same app and never reads."""

    def __init__(self, settings: Settings, stores: Stores | None = None) -> None:
        self.settings = settings
        self.stores = stores or Stores(settings)
        turns = share_of(MAX_WEBHOOK_ENDPOINTS, settings.organization_share)
        self.webhook_turns = SharedPlaces(Quota.WEBHOOK_TURNS, MAX_WEBHOOK_ENDPOINTS, turns)
        self.webhook_queue = FairQueue(self.webhook_turns)
        # The name of this worker; None in other processes.
        self._name: str | None = None
        # Makes the worker take tasks of reads and writes, or none.
        self.consume: Callable[[bool], None] = lambda _: None
        # Several threads send heartbeats. The lock makes the last one that is stored the newest.
        self._heartbeat_lock = threading.Lock()
        self.upkeep = BoundedSemaphore(max(1, min(UPKEEP_THREADS, settings.reads_in_flight // 2)))

    def prepare(self, worker: str) -> None:
        """Open connections before the first request needs them, and start the heartbeat of this worker.

        A database or Redis that is down is logged; the first request connects again.
        """
        transport.prepare()
        # Now, because from Python 3.12 on two threads that use one first could make it twice.
        _ = self.registrations, self.pool, self.with_push_address, self.stores.provider_limits
        _ = self.stores.busy, self.stores.calendar_lists, self.stores.last_reads
        for ping in (self.stores.database.ping, self.stores.redis.ping):
            try:
                ping()
            except (SQLAlchemyError, RedisError) as error:
                log.warning("database or Redis is not available yet: %s", type(error).__name__)
        self.start_heartbeat(worker)
        self.stores.flusher.start()
        collect_seldom(OF_JOBS)

    def start_heartbeat(self, worker: str) -> None:
        """Send a heartbeat under this name, and start to check which providers this worker reaches.

        The flusher repeats the heartbeat, once it is started.
        """
        self._name = worker
        self.egress.start(worker)
        self._send_heartbeat()
        self.stores.flusher.add(self._send_heartbeat)

    def deregister(self) -> None:
        """Remove the heartbeat in the background, so that other workers leave no work to this one."""
        # In a thread of its own: Celery calls this inside a signal handler, which may have interrupted a
        # Redis call of the main thread.
        threading.Thread(target=self._deregister, name="retire", daemon=True).start()

    def stop(self) -> None:
        """End what this worker has under way, and its heartbeat."""
        # The tasks have ended; their steps perform the jobs that they have taken.
        self.pool.finish(self.settings.fanout_deadline_seconds + self.grace)
        self.egress.stop()
        self._deregister()

    def _deregister(self) -> None:
        with self._heartbeat_lock:
            name, self._name = self._name, None
            if name is not None:
                with suppress(RedisError):
                    self.stores.heartbeats.record_worker_exit(name)

    def _send_heartbeat(self) -> None:
        with self._heartbeat_lock:
            if self._name is None:
                return
            try:
                self.stores.heartbeats.record_worker(
                    self._name,
                    used=self.pool.used,
                    places=self.pool.size,
                    unreachable=self.egress.unreachable,
                )
                shares.report(self.stores.redis, self._name, self.webhook_turns)
            except RedisError as error:
                log.warning("worker heartbeat failed: %s", type(error).__name__)

    @cached_property
    def registrations(self) -> Registrations:
        """The providers with the OAuth registrations in force, each bound when it is first asked for."""
        return Registrations(self.settings.providers, self.stores)

    @cached_property
    def identity_provider(self) -> IdentityProvider | None:
        """The identity provider of the people who sign in to the dashboard, if the settings name one."""
        settings = self.settings
        if not settings.oidc_issuer:
            return None
        secret = Token(settings.oidc_client_secret)
        return IdentityProvider(
            ClientRegistration(
                settings.oidc_issuer, settings.oidc_client_id, secret, settings.oidc_role_claim
            )
        )

    def provider(self, name: str) -> Provider:
        """A provider; a registration that another process saved is seen within a second."""
        return self.registrations.recent(name)

    @cached_property
    def with_push_address(self) -> frozenset[str]:
        """The providers for which there is an address for change notifications. Not all of them send any."""
        return frozenset(name for name in registry.names() if self.settings.push_address(name))

    @property
    def grace(self) -> float:
        """Seconds for which a read continues after its request has timed out.

        Long enough for a slow provider to answer, so that a repeated request finds the result in the cache.
        No longer, because the read occupies a thread of the pool.
        """
        return self.settings.fanout_deadline_seconds / 2

    @cached_property
    def egress(self) -> Egress:
        """Whether this process can reach the providers."""
        return Egress(
            self.stores.heartbeats,
            self.registrations.hosts,
            self._send_heartbeat,
            consume=lambda wanted: self.consume(wanted),
        )

    @cached_property
    def pool(self) -> StepPool:
        """The threads for the jobs of all requests in this process."""
        return StepPool(self.settings.reads_in_flight, self.stores)

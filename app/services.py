"""Objects that views share: settings, stores, and the client for the workers."""

from __future__ import annotations

import logging
import time
from functools import cached_property, partial
from typing import cast

from flask import Flask, current_app
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.observability.probes import Probes
from store.config.settings import Settings
from store.stores import Stores
from workers.celery_app import create_celery, send_deliveries
from workers.execution.registrations import Registrations
from workers.fanout.admission import Admission
from workers.fanout.client import Fanout
from workers.jobs import Job, Reply
from workers.queues import Queue

EXTENSION = "almanac"

log = logging.getLogger(__name__)


class Services:
    """The shared objects of one web process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stores = Stores(settings)
        self.celery = create_celery(settings)
        self.stores.on_events_recorded = partial(send_deliveries, self.celery)
        self.probes = Probes()

    def prepare(self) -> None:
        """Open connections before the first request. One that fails here is opened by a later request."""
        connects = (self.stores.database.warm_up, self.stores.versioned_cache.current, self.fanout.prepare)
        for connect in connects:
            try:
                connect()
            except (SQLAlchemyError, RedisError, BrokerError) as error:
                log.warning("connection not ready at startup: %s", type(error).__name__)
        self.stores.flusher.start()

    @cached_property
    def registrations(self) -> Registrations:
        """The providers with the OAuth registrations in force. The web tier only makes links with them."""
        return Registrations(self.settings.providers, self.stores)

    def deadline(self) -> float:
        """The deadline for the replies to a request that begins now, in seconds of ``time.monotonic()``."""
        return time.monotonic() + self.settings.fanout_deadline_seconds

    def ask(self, job: Job, *, bypass_admission: bool = False) -> Reply:
        """The reply of a worker to one job that is no read of a calendar; raises like ``Fanout.gather``."""
        (reply,) = self.fanout.gather(
            [job], queue=Queue.WRITES, deadline=self.deadline(), bypass_admission=bypass_admission
        )
        return reply

    @cached_property
    def fanout(self) -> Fanout:
        """The client that sends jobs to the workers and gathers their replies."""
        stores, settings = self.stores, self.settings
        most = {Queue.READS: settings.waiting_reads, Queue.WRITES: settings.waiting_writes}
        return Fanout(
            self.celery,
            stores.redis,
            stores.single_flight,
            tasks=settings.fanout_tasks,
            counters=stores.counters,
            admission=Admission(stores.redis, most, share=settings.organization_share),
        )


def install(app: Flask, settings: Settings) -> None:
    """Create the services of the app."""
    app.extensions[EXTENSION] = Services(settings)


def services() -> Services:
    """The services of the app that handles this request."""
    return cast(Services, current_app.extensions[EXTENSION])

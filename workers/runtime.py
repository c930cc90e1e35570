"""What the tasks of one process share: stores, providers, and the pool that reads."""

from __future__ import annotations

import logging
from functools import cached_property

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from providers import transport
from providers.base import Token
from providers.endpoints import Client, GoogleEndpoints, MicrosoftEndpoints
from providers.names import ProviderName
from providers.registry import Provider, providers
from store.garbage import collect_seldom
from store.settings import Settings
from store.stores import Stores
from workers.places import Places

log = logging.getLogger(__name__)


class Runtime:
    """Opened when first used: the web tier makes the same Celery app and never reads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stores = Stores(settings)

    def prepare(self) -> None:
        """Open now what the first request would have to wait for; what is down is tried again by it."""
        transport.prepare()
        _ = self.providers, self.places
        for ping in (self.stores.database.ping, self.stores.redis.ping):
            try:
                ping()
            except (SQLAlchemyError, RedisError) as error:
                log.warning("not there yet: %s", type(error).__name__)
        collect_seldom()

    @cached_property
    def providers(self) -> dict[ProviderName, Provider]:
        """Both providers, at the addresses of the settings."""
        there = self.settings.providers
        return providers(
            GoogleEndpoints(
                api=there.google_api_url,
                auth=there.google_auth_url,
                token=there.google_token_url,
                revoke=there.google_revoke_url,
                userinfo=there.google_userinfo_url,
            ),
            Client(there.google_client_id, Token(there.google_client_secret)),
            MicrosoftEndpoints(
                graph=there.microsoft_graph_url,
                login=there.microsoft_login_url,
                tenant=there.microsoft_tenant,
            ),
            Client(there.microsoft_client_id, Token(there.microsoft_client_secret)),
        )

    @property
    def grace(self) -> float:
        """Seconds for which a read goes on after its request has given up.

        Long enough for a provider that is slow just now, so that who asks again is answered from the cache;
        no longer, as the place that it holds is lacking elsewhere.
        """
        return self.settings.fanout_deadline_seconds / 2

    @cached_property
    def places(self) -> Places:
        """As many reads at once as this process may have in flight, across all requests."""
        return Places(self.settings.reads_in_flight)

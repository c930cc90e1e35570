"""The providers with the OAuth registrations in force: from the environment, else from the database."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from providers import registry
from providers.definition import Provider
from providers.errors import Misconfigured
from store.config.settings import ProviderSettings
from store.security.crypto import Undecipherable
from store.sql.queries import provider_clients
from store.sql.queries.provider_clients import SealedClient, StoredClient
from store.stores import Stores

if TYPE_CHECKING:
    from providers.oauth.client import OAuth

log = logging.getLogger(__name__)

# Seconds for which a registration saved by one process may be unknown to reads in another.
REFRESH_SECONDS = 1.0


class Registrations:
    """All providers; thread-safe. If the environment sets all registrations, the database is not read.

    A provider without a registration is bound when it is first asked for: a process that reads no account of
    it does not load its libraries.
    """

    def __init__(self, provider_settings: ProviderSettings, stores: Stores) -> None:
        self._stores = stores
        self._own = {name: provider_settings.of(name) for name in registry.names()}
        # By name: with the registration of the environment or none, and with the saved one, which goes first.
        self._bound: dict[str, Provider] = {}
        self._registered: dict[str, Provider] = {}
        self._binding = Lock()
        self._unset = [name for name in registry.with_consent() if not self._of_environment(name).configured]
        self._rows: Mapping[str, SealedClient] = {}
        self._loading = Lock()
        self._refresh_at = 0.0

    def current(self, name: str) -> Provider:
        """A provider with the registration that is saved now.

        Unless the environment sets all registrations, this costs a round trip to Redis, and a statement if
        anything has changed.

        :raise sqlalchemy.exc.SQLAlchemyError: if the database has to be read and is down
        :raise ProviderNotConfigured: if this version does not have the provider
        """
        if self._unset:
            with self._loading:
                self._load()
        return self._in_force(name)

    def recent(self, name: str) -> Provider:
        """A provider as of at most a second ago; older if the database is down.

        Once a second, one caller refreshes all at the cost of ``current``; others that call it then wait.

        :raise ProviderNotConfigured: if this version does not have the provider
        """
        if self._unset and time.monotonic() >= self._refresh_at:
            with self._loading:
                if time.monotonic() >= self._refresh_at:
                    self._refresh()
        return self._in_force(name)

    @property
    def hosts(self) -> dict[str, tuple[str, ...]]:
        """The hosts of each provider. They do not depend on registrations."""
        return {
            name: tuple(own[setting] for setting in registry.definition(name).hosts)
            for name, own in self._own.items()
        }

    @property
    def consent_pages(self) -> list[str]:
        """The addresses of the providers' consent pages, without a registration in them."""
        return [self._own[name][registry.consent(name).page] for name in registry.with_consent()]

    def set_by_environment(self, name: str) -> bool:
        """Whether the environment sets id and secret of a provider with consent, and so takes precedence."""
        return name not in self._unset

    def with_client(self, name: str, client: StoredClient) -> Provider:
        """A provider with this OAuth client. Calendars and channels stay the same objects."""
        changed = {"client_id": client.client_id, "client_secret": client.secret}
        if "client_certificate" in self._own[name]:
            # That of the environment belongs to another client.
            changed["client_certificate"] = ""
        if client.tenant:
            changed["tenant"] = client.tenant
        bound = registry.definition(name).bind({**self._own[name], **changed})
        known = self._of_environment(name)
        return replace(known, oauth=bound.oauth, grants=bound.grants, configured=bound.configured)

    def _in_force(self, name: str) -> Provider:
        return self._registered.get(name) or self._of_environment(name)

    def _of_environment(self, name: str) -> Provider:
        found = self._bound.get(name)
        if found is None:
            with self._binding:
                found = self._bound.get(name)
                if found is None:
                    found = registry.definition(name).bind(self._own.get(name, {}))
                    self._bound[name] = found
        return found

    def _refresh(self) -> None:
        try:
            self._load()
        except SQLAlchemyError as error:
            log.warning("provider registrations could not be refreshed: %s", type(error).__name__)
        self._refresh_at = time.monotonic() + REFRESH_SECONDS

    def _load(self) -> None:
        """Load the saved registrations, and apply each that has changed. The lock of loading is held."""
        rows = self._stores.versioned_cache.current().get_or_load("provider clients", self._saved)
        before, self._rows = self._rows, rows
        for name in self._unset:
            row = rows.get(name)
            if row == before.get(name):
                continue
            provider = None if row is None else self._opened(name, row)
            if provider is None:
                self._registered.pop(name, None)
            else:
                self._registered[name] = provider

    def _saved(self) -> Mapping[str, SealedClient]:
        with self._stores.database.reading() as session:
            return provider_clients.load(session)

    def _opened(self, name: str, row: SealedClient) -> Provider | None:
        """The provider with a saved registration, None if that cannot be used."""
        try:
            client = provider_clients.open_client(row, self._stores.keyring)
        except Undecipherable:
            # Logged once: it is not opened again until the operator saves another registration.
            log.error(
                "the registration with %s cannot be decrypted, its encryption key is gone: save it again",
                registry.title(name),
            )
            return None
        try:
            return self.with_client(name, client)
        except Exception:
            # The other providers stay in use.
            log.exception("the registration with %s cannot be used: save another", registry.title(name))
            return None


@contextmanager
def note_registration(stores: Stores, oauth: OAuth, *, calls: bool = True) -> Iterator[None]:
    """Note whether the provider accepts the client id and secret, and log what to check when it does not.

    Without ``calls``, the block may succeed without a call, which proves nothing.
    """
    provider = oauth.name
    try:
        yield
    except Misconfigured:
        stores.registration_checks.note(provider, oauth.client_id, accepted=False)
        log.error(
            "%s refuses the registration of this installation: check its client id and secret in the "
            "dashboard, or ALMANAC_%s_CLIENT_ID and ALMANAC_%s_CLIENT_SECRET where they are set, and whether "
            "the secret has expired. Connections stay as they are.",
            *(oauth.title, provider.upper(), provider.upper()),
        )
        raise
    if calls:
        stores.registration_checks.note(provider, oauth.client_id, accepted=True)

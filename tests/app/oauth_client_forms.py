"""Registrations entered through the page, and their stored results."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask
from redis import Redis
from sqlalchemy import select

from app.accounts import oauth_clients
from app.accounts.oauth_clients import Registration
from app.http.hosts import base_url
from app.services import EXTENSION, Services
from providers.oauth.registration_probe import Finding
from store.sql.models import AuditRecord
from store.sql.queries import api_keys, provider_clients
from store.sql.queries.provider_clients import SealedClient, StoredClient
from tests.conftest import Api

ACTOR = "administrator ada"
SITE = "http://127.0.0.1:8080"

# In an application's config: the id of the last audit record before the test.
AUDITED = "AUDITED"


def caller_of(app: Flask) -> Api:
    with services_of(app).stores.database.writing() as session:
        key = api_keys.create(session, prefix="alm_", name="test")
    return Api(app.test_client(), key)


def services_of(app: Flask) -> Services:
    found: Services = app.extensions[EXTENSION]
    return found


def save(
    app: Flask, provider: str, client_id: str = "ours", secret: str = "planted", tenant: str | None = None
) -> Finding:
    with app.app_context():
        return oauth_clients.check_and_save(provider, client_id, secret, tenant, site=SITE, actor=ACTOR)


def remove(app: Flask, provider: str) -> None:
    with app.test_request_context():
        oauth_clients.remove(provider, actor=ACTOR)


def overview(app: Flask, host_url: str = SITE) -> dict[str, Registration]:
    with app.test_request_context(base_url=host_url):
        return {each.provider: each for each in oauth_clients.overview(base_url())}


def saved(app: Flask) -> dict[str, SealedClient]:
    with services_of(app).stores.database.reading() as session:
        return provider_clients.load(session)


def audited(app: Flask) -> list[tuple[str, str, str]]:
    """The audit records after the one with the id ``AUDITED``."""
    with services_of(app).stores.database.reading() as session:
        new = AuditRecord.id > (app.config.get(AUDITED) or 0)
        found = session.scalars(select(AuditRecord).where(new).order_by(AuditRecord.id))
        return [(each.actor, each.action, each.subject) for each in found]


def put(app: Flask, provider: str, secret: str) -> None:
    """Save a registration without a trial."""
    stores = services_of(app).stores
    client = StoredClient("ours", secret, None)
    with stores.database.writing() as session:
        provider_clients.save(session, stores.keyring, provider, client)


@contextmanager
def watched(redis: Redis) -> Iterator[list[str]]:
    """All commands that Redis gets in the meantime, from any client."""
    seen: list[str] = []
    end = f"PING {secrets.token_hex(8)}"
    with redis.monitor() as monitor:

        def listen() -> None:
            while not seen or seen[-1] != end:
                seen.append(monitor.next_command()["command"])

        listener = threading.Thread(target=listen)
        listener.start()
        yield seen
        redis.execute_command(*end.split())
        listener.join(timeout=10)
        assert not listener.is_alive()

"""Data survives a downgrade to the first revision and an upgrade again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from alembic import command
from flask import Flask
from sqlalchemy import select

from app.cli import administrator_setup
from store.cache.busy_cache import CalendarKey
from store.sql.database import MigrationState, alembic_config
from store.sql.models import Base, OAuthConnection, Role, User, now
from store.sql.queries import (
    administrators,
    api_keys,
    channels,
    connection_rows,
    connections,
    event_feeds,
    holds,
    identities,
    organization_grants,
    organizations,
    provider_clients,
    second_factors,
    user_invitations,
)
from store.sql.queries.organization_grants import NewGrant
from store.sql.queries.provider_clients import StoredClient
from tests import people
from tests.conftest import Api, connect, stores_of
from tests.dashboard.visiting import Browser, Person
from tests.databases import KINDS, new_database
from tests.store.migrating import every_revision, lost, rows

pytestmark = pytest.mark.slow

PASSWORD = "seven quiet calendars"


@pytest.fixture(params=KINDS)
def own(request, new_app, tmp_path) -> Iterator[Flask]:
    """A web application on a database of its own."""
    with new_database(request.param, tmp_path) as url:
        made = new_app(database_url=url)
        stores_of(made).database.upgrade()
        yield made
        stores_of(made).close()


@pytest.fixture
def api(own) -> Api:
    with stores_of(own).database.writing() as session:
        return Api(own.test_client(), api_keys.create(session, prefix="alm_", name="ops"))


@pytest.fixture
def accounts(sandbox, unique):
    return [sandbox.account(each, f"{unique('ada')}@{each}.example") for each in ("google", "microsoft")]


@pytest.fixture
def written(own, api, accounts):
    """Users, their connections and their webhook events, each written by the service itself."""
    stores = stores_of(own)
    assert api.post("/organizations", {"slug": "acme", "name": "Acmé"}).status_code == 200
    assert api.post("/webhooks", {"url": "http://127.0.0.1:9/hook"}).status_code == 201
    once = {"Idempotency-Key": "once"}
    body = {"id": "ada", "organizationSlugs": ["acme"]}
    assert api.post("/users", body, headers=once).status_code == 201
    assert api.post("/users", {"id": "bob"}).status_code == 201
    profile = {"timeZone": "Europe/Berlin", "holidays": {"country": "DE"}}
    assert api.call("PUT", "/users/bob/availability", json=profile).status_code == 200
    for account in accounts:
        connect(api, "ada", account)
    with stores.database.writing() as session:
        user = session.scalars(select(User)).first()
        assert user is not None
        hold = holds.NewHold(starts=0, ends=1, expires_at=2, request_key="once")
        assert isinstance(holds.take(session, {user.id: ["name"]}, hold, now=0), holds.TakenHold)
        for row in session.scalars(select(OAuthConnection)).all():
            assert channels.add(session, f"channel-{row.provider}", CalendarKey(row.id, "primary"), "proof")
            until = now() + timedelta(days=1)
            channels.opened(
                session, f"channel-{row.provider}", provider_id="p", resource="r", expires_at=until
            )
            connections.mark_dead(session, row.id, "The grant has ended")
            key = CalendarKey(row.id, "primary")
            assert event_feeds.store(session, key, "state", stores.keyring, after=None, began=now())
        administrators.invite(session)
        issuer = people.add_operator(session, "olga")
        user_invitations.make(session, {"bob": user.id}, scope="", created_by="operator olga", issuer=issuer)
        acme = organizations.ids(session, ["acme"], organization_id=None)["acme"]
        grant = NewGrant("microsoft", None, None, "tenant", None, "secret", ["Calendars.Read"])
        organization_grants.save(session, stores.keyring, acme, grant)
        provider_clients.save(session, stores.keyring, "google", StoredClient("client", "secret", None))
    # One of them consents again.
    connect(api, "ada", accounts[0])
    administrator_setup.create(stores, "root", PASSWORD)
    with stores.database.writing() as session:
        root = administrators.find(session, "root")
        assert root is not None
        known = {"issuer": "https://login.example.com", "subject": "eve", "name": "eve", "role": Role.VIEWER}
        identities.create(session, **known, until=now())
        second_factors.new_recovery_codes(session, root.id)
    assert Browser(own.test_client()).sign_in(Person("root", PASSWORD)).status == 303


def test_it_goes_down_to_the_first_revision_and_up_again(own, api, written, accounts):
    database, newest_first = stores_of(own).database, every_revision()
    down, up = newest_first[1:], newest_first[-2::-1]
    at_head = before = rows(database)
    assert set(before) == set(Base.metadata.tables)
    assert all(before.values()), [table for table, kept in before.items() if not kept]
    for step, targets in ((command.downgrade, down), (command.upgrade, up)):
        for target in targets:
            with database.migrating() as connection:
                step(alembic_config(connection), target)
            after = rows(database)
            assert lost(before, after) == [], f"{step.__name__} to {target}"
            before = after
        if step is command.downgrade:
            # Only tables and columns that the first revision lacks are gone.
            first = after
            assert lost(at_head, first) == []
            assert {"users", "organizations", "memberships", "oauth_connections", "api_keys"} <= set(first)
    assert lost(first, before) == []
    assert not any(kept for table, kept in before.items() if table not in first)

    # The installation still works: its API key, its users, and tokens that decrypt.
    assert database.migration_state() is MigrationState.CURRENT
    (ada,) = api.get("/organizations/acme/members").json["data"]
    alive = {each["provider"]: each["alive"] for each in ada["oauthConnections"]}
    assert (ada["id"], alive) == ("ada", {"google": True, "microsoft": False})
    assert {each["id"] for each in api.get("/users").json["data"]} == {"ada", "bob"}
    with database.reading() as session:
        ids = session.scalars(select(OAuthConnection.id)).all()
        sealed = connection_rows.sealed(session, ids)
    opened = [connection_rows.open_credentials(each, stores_of(own).keyring) for each in sealed.values()]
    tokens = {each.email: each.tokens.refresh_token for each in opened}
    assert tokens == {each.email: each.refresh_token for each in accounts}
    # Lost data can be written again.
    assert api.post("/webhooks", {"url": "http://127.0.0.1:9/hook"}).status_code == 201
    repeated = api.post("/users", {"id": "cid"}, headers={"Idempotency-Key": "once"})
    assert repeated.status_code == 201

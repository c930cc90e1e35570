"""The export of a person has every column of every row, or a reason; a deletion leaves what is listed."""

from __future__ import annotations

import pytest
from sqlalchemy import LargeBinary, select

from store.cache.busy_cache import CalendarKey
from store.sql.models import Base, OAuthConnection, User, WebhookDelivery, now
from store.sql.queries import (
    api_keys,
    audit,
    channels,
    event_feeds,
    holds,
    organizations,
    person_data,
    user_invitations,
    webhooks,
)
from store.sql.queries.webhook_events import WebhookEvent
from tests import people
from tests.conftest import Api, connect, stores_of
from tests.databases import KINDS, new_database
from tests.store.migrating import rows

HOLD = {"starts": 1000, "ends": 2000, "expires_at": 9_000_000_000_000}


@pytest.fixture(params=KINDS)
def service(request, new_app, migrated, tmp_path):
    """An installation with an empty database of each kind."""
    with new_database(request.param, tmp_path, copied=migrated(request.param)) as url:
        made = new_app(database_url=url)
        yield made
        stores_of(made).close()


@pytest.fixture
def api(service):
    with stores_of(service).database.writing() as session:
        return Api(service.test_client(), api_keys.create(session, prefix="alm_", name="ops"))


@pytest.fixture
def ada(service, api, sandbox):
    """The internal id of a user with a row in every table, and another user in the same hold and event."""
    stores = stores_of(service)
    assert api.post("/organizations", {"slug": "acme", "name": "Acme"}).status_code == 200
    for user in ("ada", "bob"):
        assert api.post("/users", {"id": user, "organizationSlugs": ["acme"]}).status_code == 201
    profile = {"timeZone": "Europe/Berlin", "holidays": {"country": "DE"}}
    assert api.call("PUT", "/users/ada/availability", json=profile).status_code == 200
    connect(api, "ada", sandbox.account("google", "ada@person.example"))
    with stores.database.writing() as session:
        ids = {row.custom_id: row.id for row in session.execute(select(User.custom_id, User.id))}
        endpoint, _ = webhooks.create(
            session, stores.keyring, url="https://a.example", events=[*WebhookEvent], organization_id=None
        )
        connection = session.scalars(select(OAuthConnection)).one()
        key = CalendarKey(connection.id, "ada@person.example")
        assert channels.add(session, "channel", key, "proof")
        assert event_feeds.store(session, key, "state", stores.keyring, after=None, began=now())
        hold = holds.NewHold(**HOLD, request_key="once", note="about ada")
        names = {ids["ada"]: ["a"], ids["bob"]: ["b"]}
        assert isinstance(holds.take(session, names, hold, now=0), holds.TakenHold)
        issuer = people.add_operator(session, "olga")
        user_invitations.make(
            session, {"ada": ids["ada"]}, scope="", created_by="operator olga", issuer=issuer
        )
        audit.record(session, actor="ops", action="makeLink", subject="ada/google")
        audit.record(session, actor="ops", action="makeLink", subject="adam/google")
        for number, (user, numbers) in enumerate([(ids["ada"], None), (None, [ids["ada"], ids["bob"]])]):
            named = {"userId": "ada"} if numbers is None else {"users": ["ada", "bob"]}
            session.add(
                WebhookDelivery(
                    id=f"delivery-{number}",
                    endpoint_id=endpoint.id,
                    user_id=user,
                    user_ids=numbers,
                    event="hold.created",
                    payload={"type": "hold.created", "data": named},
                )
            )
    return ids["ada"]


def test_every_column_of_every_table_is_exported_or_has_a_reason(service, ada):
    database = stores_of(service).database
    with database.reading() as session:
        exported = person_data.export(session, session.get(User, ada))
        present = {
            f"{table.name}.{column.name}" for table in Base.metadata.sorted_tables for column in table.columns
        }

    assert all(exported.values()), [table for table, found in exported.items() if not found]
    shown = {f"{table}.{name}" for table, found in exported.items() for row in found for name in row}
    # The slug of the organization is not a column of the membership.
    assert shown - present == {"memberships.organization"}
    withheld = set(person_data.WITHHELD)
    others = {each for each in present if each.partition(".")[0] in person_data.OF_NOBODY}
    assert shown & withheld == set()
    assert (shown - {"memberships.organization"}) | withheld | others == present
    assert not (set(exported) & set(person_data.OF_NOBODY))


def test_the_export_has_the_values_of_the_database(service, ada):
    database = stores_of(service).database
    with database.reading() as session:
        exported = person_data.export(session, session.get(User, ada))
        for table, found in exported.items():
            stored = session.execute(select(Base.metadata.tables[table])).mappings().all()
            for row in found:
                # The slug is of another table, and the event of a hold is cut to its user.
                own = {name: value for name, value in row.items() if name not in ("organization", "payload")}
                assert any(all(each[name] == own[name] for name in own) for each in stored), (table, row)


def test_the_export_has_no_secret_and_nobody_else(service, api, ada):
    answer = api.get("/users/ada/export")

    assert answer.status_code == 200
    data = answer.json["data"]
    assert data["users"][0]["customId"] == "ada"
    assert data["memberships"][0]["organization"] == "acme"
    assert data["oauthConnections"][0]["email"] == "ada@person.example"
    assert data["webhookDeliveries"][1]["payload"]["data"] == {"users": ["ada"]}
    assert {each["subject"] for each in data["auditRecords"]} >= {"ada", "ada/google"}
    assert "adam" not in answer.text
    assert "bob" not in answer.text
    for table in Base.metadata.sorted_tables:
        for column in table.columns:
            if isinstance(column.type, LargeBinary) or "digest" in column.name:
                assert f"{table.name}.{column.name}" in person_data.WITHHELD or (
                    table.name in person_data.OF_NOBODY
                )


def test_an_export_is_audited_and_of_no_bound_key(service, api, ada):
    stores = stores_of(service)
    assert api.get("/users/ada/export").status_code == 200
    with stores.database.writing() as session:
        acme = organizations.ids(session, ["acme"], organization_id=None)["acme"]
        bound = api_keys.create(session, prefix="alm_", name="acme", organization_id=acme)
        last = audit.page(session, limit=1)[0]

    assert (last.action, last.subject) == ("exportUser", "ada")
    refused = Api(service.test_client(), bound).get("/users/ada/export")
    assert (refused.status_code, refused.json["code"]) == (403, "keyBoundToOrganization")
    assert api.get("/users/eve/export").status_code == 404


# A deletion leaves the audit log, until ALMANAC_AUDIT_DAYS, and holds without users, for an hour.
LEFT = {"audit_records", "holds"}


@pytest.mark.usefixtures("worker")
def test_a_deletion_leaves_only_what_is_listed(service, api, ada):
    database = stores_of(service).database
    before = mentions(database)
    assert {"users", "oauth_connections", "webhook_deliveries", "audit_records"} <= before

    assert api.delete("/users/ada").status_code == 200

    assert mentions(database) <= LEFT
    with database.reading() as session:
        (kept,) = session.scalars(select(WebhookDelivery).where(WebhookDelivery.id == "delivery-1"))
        assert kept.payload["data"] == {"users": ["bob"]}
        assert len(kept.user_ids) == 1
        for table in Base.metadata.sorted_tables:
            if "user_id" in table.columns:
                found = session.execute(select(table).where(table.columns["user_id"] == ada)).all()
                assert found == []


def mentions(database):
    """The tables with a row that has the name or the address of the user in one of its columns."""
    return {
        table
        for table, found in rows(database).items()
        if any(mentions_ada(str(value)) for row in found for value in row.values())
    }


def mentions_ada(value):
    quoted = ("person.example", "about ada", "'ada'", '"ada"')
    return value in ("ada", "ada/google") or any(each in value for each in quoted)

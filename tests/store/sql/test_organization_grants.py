"""Grants of organizations and delegated connections in the database."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import func, select

from store.security.crypto import Keyring, Undecipherable
from store.sql.models import Membership, OAuthConnection, Organization, WebhookDelivery, now
from store.sql.queries import (
    connection_rows,
    connections,
    organization_grants,
    organizations,
    webhook_events,
    webhooks,
)
from store.sql.queries.connections import ConnectionCounts, ProviderAccount
from store.sql.queries.organization_grants import GrantCounts, NewGrant
from tests import people
from tests.store.statements import recorded

KEY_FILE = '{"client_email": "robot@project.example", "private_key": "planted-secret"}'
GOOGLE = NewGrant(
    "google", "admin@acme.example", "robot@project.example", None, None, KEY_FILE, ["calendar.readonly"]
)


@pytest.fixture
def acme(fresh_database):
    """The number of an organization."""
    with fresh_database.writing() as session:
        row = Organization(slug="acme")
        session.add(row)
    return row.id


@pytest.fixture
def save(fresh_database, keyring, acme):
    def save(grant=GOOGLE, organization=acme):
        with fresh_database.writing() as session:
            return organization_grants.save(session, keyring, organization, grant)

    return save


@pytest.fixture
def delegated(fresh_database, acme, save):
    """A user whose connection is delegated by the grant of acme."""

    def make(name, grant=None):
        with fresh_database.writing() as session:
            user = people.add_user(session, name)
            session.add(Membership(organization_id=acme, user_id=user.id))
            organization_grants.delegate(session, grant or saved, {user.id: f"{name}@acme.example"})
        return user

    saved = save()
    return make


@pytest.fixture
def end(fresh_database):
    def end(grant):
        with fresh_database.writing() as session:
            organization_grants.mark_dead(session, grant.id, "The delegation was withdrawn")

    return end


def of_user(database, name, organization_id=None):
    with database.reading() as session:
        return connection_rows.of_user(session, name, organization_id=organization_id)


def events(database):
    with database.reading() as session:
        rows = session.scalars(select(WebhookDelivery).order_by(WebhookDelivery.id)).all()
    return [(row.event, row.payload["data"]) for row in rows]


def test_one_mailbox_that_refuses_a_token_ends_no_delegated_connection(fresh_database, delegated):
    delegated("ada")
    (ref,) = of_user(fresh_database, "ada")

    with fresh_database.writing() as session:
        connections.mark_dead(session, ref.id, "The mailbox refuses the token")

    assert of_user(fresh_database, "ada") == [ref]
    assert ref.alive
    assert events(fresh_database) == []


def test_the_secret_is_sealed_for_its_grant_and_shown_nowhere(fresh_database, keyring, save):
    saved = save()

    with fresh_database.reading() as session:
        row = organization_grants.sealed(session, [saved.id])[saved.id]
    credentials = organization_grants.open_credentials(row, keyring)

    assert credentials.secret == KEY_FILE
    assert "planted" not in f"{credentials!r}{row!r}{saved!r}{GOOGLE!r}{row.sealed_secret!r}"
    with pytest.raises(Undecipherable):
        organization_grants.open_credentials(row._replace(id="other"), keyring)


def test_a_grant_without_a_secret_uses_that_of_the_installation(fresh_database, keyring, save):
    saved = save(NewGrant("microsoft", None, None, "tenant", None, None, ["Calendars.Read"]))

    with fresh_database.reading() as session:
        row = organization_grants.sealed(session, [saved.id])[saved.id]
        assert organization_grants.check_decryption(session, keyring, 10) == (0, 0)
    assert organization_grants.open_credentials(row, keyring).secret is None


def test_secrets_that_no_key_opens_are_counted(fresh_database, keyring, save):
    save()
    with fresh_database.reading() as session:
        assert organization_grants.check_decryption(session, keyring, 10) == (1, 0)
        assert organization_grants.check_decryption(session, Keyring([b"x" * 32]), 10) == (1, 1)


def test_an_event_of_a_delegated_connection_goes_to_its_own_organization(fresh_database, acme, delegated):
    user = delegated("ada")
    with fresh_database.writing() as session:
        other = Organization(slug="other")
        session.add(other)
        session.flush()
        session.add(Membership(organization_id=other.id, user_id=user.id))
        endpoints = {number: endpoint(number) for number in (acme, other.id, None)}
        session.add_all(endpoints.values())
        own = connection_rows.of_user(session, "ada", organization_id=None)[0].id
        webhook_events.record(
            session, webhook_events.WebhookEvent.CALENDAR_CHANGED, own, calendar_id="primary"
        )
    with fresh_database.reading() as session:
        found = {row.endpoint_id for row in session.scalars(select(WebhookDelivery))}
    assert found == {endpoints[acme].id, endpoints[None].id}


def test_a_replaced_grant_keeps_its_connections_and_revives_them(fresh_database, save, delegated, end):
    first = save()
    delegated("ada")
    with fresh_database.writing() as session:
        session.add(endpoint())
        own = connection_rows.of_user(session, "ada", organization_id=None)[0].id
        connections.mark_dead(session, own, "The account was suspended")
    end(first)
    end(first)
    assert [each.alive for each in of_user(fresh_database, "ada")] == [False]

    second = save(replace(GOOGLE, subject="other@acme.example", scope=["calendar"]))

    assert (second.id, second.created_at, second.alive) == (first.id, first.created_at, True)
    assert second.subject == "other@acme.example"
    (ref,) = of_user(fresh_database, "ada")
    assert (ref.id, ref.alive, ref.scope, ref.grant) == (own, True, {"calendar"}, first.id)
    data = {"organization": "acme", "provider": "google"}
    assert [each for each in events(fresh_database) if each[0].startswith("grant")] == [
        ("grant.expired", data),
        ("grant.restored", data),
    ]


def endpoint(organization_id=None, events=tuple(webhook_events.WebhookEvent)):
    return webhooks.WebhookEndpoint(
        id=f"wh_{organization_id}", organization_id=organization_id, url="-", events=list(events),
        sealed_secret=b"",
    )  # fmt: skip


def test_grant_event_goes_to_organization_and_service_endpoints(fresh_database, acme, delegated, save, end):
    for name in ("ada", "bob", "cid"):
        delegated(name)
    with fresh_database.writing() as session:
        other = Organization(slug="other")
        session.add(other)
        session.flush()
        session.add_all([endpoint(), endpoint(acme), endpoint(other.id)])
        off = endpoint(7, ["connection.expired"])
        off.organization_id = acme
        session.add(off)

    end(save())

    with fresh_database.reading() as session:
        rows = session.scalars(select(WebhookDelivery)).all()
    assert {row.endpoint_id for row in rows} == {"wh_None", f"wh_{acme}"}
    assert {row.event for row in rows} == {"grant.expired"}
    assert {row.user_id for row in rows} == {None}


def test_a_delegated_connection_lives_only_while_its_grant_does(
    fresh_database, keyring, delegated, save, end
):
    delegated("ada")
    with fresh_database.writing() as session:
        people.add_connection(session, keyring, people.add_user(session, "bob"))

    end(save_again := save())

    (ada,) = of_user(fresh_database, "ada")
    (bob,) = of_user(fresh_database, "bob")
    assert (ada.alive, ada.grant, bob.alive, bob.grant) == (False, save_again.id, True, None)
    with fresh_database.reading() as session:
        row = connection_rows.sealed(session, [ada.id])[ada.id]
        assert (row.alive, row.grant, row.sealed_access_token) == (False, save_again.id, None)
        stored = session.get_one(OAuthConnection, ada.id)
        assert (stored.alive, stored.usable) == (True, False)
        assert connections.counts(session) == {"google": ConnectionCounts(1, 1)}
        assert organization_grants.counts(session) == {"google": GrantCounts(0, 1)}
        assert connections.dead(session) == []
        assert organizations.summary(session, "acme").dead == 1
        assert connection_rows.check_decryption(session, keyring, 10) == (1, 0)


def test_credentials_of_a_delegated_connection_have_no_tokens(fresh_database, keyring, delegated):
    delegated("ada")
    (ref,) = of_user(fresh_database, "ada")

    with fresh_database.reading() as session:
        row = connection_rows.sealed(session, [ref.id])[ref.id]
        stored = session.get_one(OAuthConnection, ref.id)
    for each in (row, stored):
        opened = connection_rows.open_credentials(each, keyring)
        assert (opened.tokens, opened.grant) == (None, ref.grant)


def test_delegated_mailbox_does_not_block_personal_revocation(fresh_database, delegated):
    ada = delegated("ada")
    account = ProviderAccount("google", None, "ada@acme.example")
    with fresh_database.reading() as session:
        assert not connections.uses_account(session, account, or_user=ada.id)


def test_grant_connection_is_hidden_from_another_organization(fresh_database, acme, delegated):
    delegated("ada")
    with fresh_database.writing() as session:
        other = Organization(slug="other")
        session.add(other)
        session.flush()
        ada = organizations.load(session, "acme", organization_id=None).members[0].id
        session.add(Membership(organization_id=other.id, user_id=ada))

    assert len(of_user(fresh_database, "ada")) == len(of_user(fresh_database, "ada", acme)) == 1
    assert of_user(fresh_database, "ada", other.id) == []
    with fresh_database.reading() as session:
        assert connection_rows.of_members(session, other.id, only_organization_id=other.id) == {"ada": []}
        assert len(connection_rows.of_members(session, other.id)["ada"]) == 1


def test_removing_a_grant_removes_its_connections_alone(fresh_database, keyring, acme, delegated):
    delegated("ada")
    (ref,) = of_user(fresh_database, "ada")
    with fresh_database.writing() as session:
        people.add_connection(session, keyring, people.add_user(session, "bob"))

    with fresh_database.writing() as session:
        assert organization_grants.remove(session, acme, "microsoft") is None
        assert organization_grants.remove(session, acme, "google") == [ref.id]
        assert organization_grants.of_organization(session, acme) == []
    assert of_user(fresh_database, "ada") == []
    assert len(of_user(fresh_database, "bob")) == 1


def test_a_deleted_organization_takes_its_delegated_connections_along(fresh_database, acme, delegated):
    delegated("ada")
    with fresh_database.writing() as session:
        organizations.remove(session, acme)
    assert of_user(fresh_database, "ada") == []


def test_leaving_member_loses_the_delegated_connection(fresh_database, acme, delegated):
    ada, _ = delegated("ada"), delegated("bob")
    (ref,) = of_user(fresh_database, "ada")
    with fresh_database.writing() as session:
        assert organization_grants.delete_connections_of(session, acme, [ada.id]) == [ref.id]
    assert of_user(fresh_database, "ada") == []
    assert len(of_user(fresh_database, "bob")) == 1


def test_delegate_reports_created_changed_and_kept_connections(fresh_database, keyring, save):
    grant = save()
    with fresh_database.writing() as session:
        ids = {name: people.add_user(session, name).id for name in ("new", "same", "moved", "personal")}
        session.add(endpoint())
        first = {ids["same"]: "same@acme.example", ids["moved"]: "old@acme.example"}
        organization_grants.delegate(session, grant, first)
        personal = people.add_connection(session, keyring, session.get_one(people.User, ids["personal"]))
        connections.mark_dead(session, personal.id, "revoked")
    emails = {ids[name]: f"{name.upper()}@acme.example" for name in ids}

    with fresh_database.writing() as session:
        done = organization_grants.delegate(session, grant, emails)
        again = organization_grants.delegate(session, grant, emails)

    assert done.created == {ids["new"]}
    assert done.changed == {ids["moved"], ids["personal"]}
    assert done.unchanged == {ids["same"]}
    assert {each.user_id for each in done.replaced} == done.changed
    assert again.unchanged == set(ids.values())
    restored = [data["userId"] for event, data in events(fresh_database) if event == "connection.restored"]
    assert restored == ["personal"]


@pytest.mark.slow
def test_a_thousand_delegations_take_as_many_statements_as_two(fresh_database, save):
    grant = save()
    with fresh_database.writing() as session:
        session.add(endpoint())
        session.add_all([people.User(custom_id=f"user-{n}") for n in range(1000)])
    with fresh_database.reading() as session:
        ids = session.scalars(select(people.User.id).order_by(people.User.id)).all()

    def delegate(some, domain):
        with fresh_database.writing() as session, recorded(fresh_database) as statements:
            organization_grants.delegate(session, grant, {each: f"u{each}@{domain}" for each in some})
        return len(statements)

    assert delegate(ids[:2], "a.example") == delegate(ids, "b.example") == delegate(ids, "c.example")
    with fresh_database.reading() as session:
        assert session.scalars(select(func.count()).select_from(OAuthConnection)).one() == 1000
        (stored,) = session.scalars(select(OAuthConnection).limit(1))
    assert (stored.usable, stored.obtained, stored.sealed_refresh_token) == (True, False, None)
    assert stored.created_at <= now()

"""Several connections of a user with one provider: one is the default, whatever is stored or removed."""

from __future__ import annotations

from random import Random

import pytest
from alembic import command
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError

from store.sql.database import Database, alembic_config
from store.sql.models import OAuthConnection, Organization, OrganizationGrant, User, now
from store.sql.queries import connection_rows, connections, organization_grants
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.connections import ReplacedConnection

TOKENS = Tokens("planted-access", "planted-refresh", None)


@pytest.fixture
def user_id(fresh_database: Database) -> int:
    with fresh_database.writing() as session:
        user = User(custom_id="ada")
        session.add(user)
    return user.id


@pytest.fixture
def put(fresh_database, keyring, user_id):
    """Store tokens; returns the connection's row."""

    def put(email, account=ReplacedConnection.ADD, provider="google", **more):
        with fresh_database.writing() as session:
            row, _ = connections.replace(
                session,
                keyring,
                user_id=user_id,
                provider=provider,
                email=email,
                scope=["calendar"],
                tokens=TOKENS,
                account=account,
                **more,
            )
        return row

    return put


@pytest.fixture
def stored(fresh_database):
    """The connections of ada: address and whether it is the default one, in the order of answers."""

    def stored():
        with fresh_database.reading() as session:
            rows = session.scalars(select(OAuthConnection).order_by(*connection_rows.BY_PROVIDER))
            return [(row.email, row.is_default) for row in rows]

    return stored


def test_a_connection_that_is_named_keeps_its_id_with_another_id_of_its_account(put):
    first = put(None, provider="caldav", account_id="https://old.example.org/ada/", label="Family")
    second = put(None, provider="caldav", account_id="https://new.example.org/ada/")

    again = put(None, provider="caldav", account=second.public_id, account_id="https://dav.example.org/ada/")
    assert again.public_id == second.public_id
    # One that is the same account as another one takes the place of both.
    again = put(None, provider="caldav", account=first.public_id, account_id="https://dav.example.org/ada/")
    assert (again.public_id, again.label, again.is_default) == (first.public_id, "Family", True)


def test_the_first_connection_is_the_default_one_and_others_are_added(put, stored):
    for email in ("a@example.com", "b@example.com"):
        put(email)
    put("c@example.com", provider="microsoft")

    assert stored() == [("a@example.com", True), ("b@example.com", False), ("c@example.com", True)]


def test_the_same_account_again_keeps_its_id_label_and_place(put, stored):
    put("a@example.com")
    first = put("b@example.com", label="Family", account_id="account-b")
    again = put("B@example.com", account_id="account-b")
    renamed = put("new-b@example.com", account_id="account-b", label="Home")

    assert first.id != again.id != renamed.id
    assert first.public_id == again.public_id == renamed.public_id
    assert (again.label, renamed.label) == ("Family", "Home")
    assert stored() == [("a@example.com", True), ("new-b@example.com", False)]


def test_another_account_in_place_of_the_default_one_has_another_id(put, stored):
    first = put("a@example.com", label="Work")
    put("b@example.com")

    other = put("c@example.com", ReplacedConnection.DEFAULT)

    assert other.public_id != first.public_id
    assert other.label is None
    assert stored() == [("c@example.com", True), ("b@example.com", False)]


def test_a_consent_for_the_default_one_by_another_connected_account_leaves_one_connection(put, stored):
    put("a@example.com")
    second = put("b@example.com", label="Family")

    moved = put("b@example.com", ReplacedConnection.DEFAULT)

    assert (moved.public_id, moved.label) == (second.public_id, "Family")
    assert stored() == [("b@example.com", True)]


def test_tokens_without_an_address_are_those_of_the_default_account(put, stored):
    first = put(None)
    again = put(None, ReplacedConnection.DEFAULT)
    put(None)

    assert first.public_id == again.public_id
    assert stored() == [(None, True), (None, False)]


def test_the_oldest_connection_takes_the_place_of_a_removed_default_one(fresh_database, put, stored):
    first = put("a@example.com")
    put("b@example.com")
    put("c@example.com")

    with fresh_database.writing() as session:
        connections.remove(session, [first.id])

    assert stored() == [("b@example.com", True), ("c@example.com", False)]


def test_the_database_refuses_a_second_default_one(fresh_database, put):
    put("a@example.com")
    other = put("b@example.com")

    with pytest.raises(IntegrityError), fresh_database.writing() as session:
        session.get_one(OAuthConnection, other.id).is_default = True


def test_the_release_before_replaces_all_of_them(fresh_database, put, stored, user_id):
    """It deletes the connections of a provider, and inserts one without a value for the new columns."""
    put("a@example.com")
    put("b@example.com")

    with fresh_database.writing() as session:
        session.execute(
            text("DELETE FROM oauth_connections WHERE user_id = :id AND provider = 'google'"), {"id": user_id}
        )
        session.execute(
            text(
                "INSERT INTO oauth_connections (id, user_id, provider, email, scope, alive, created_at) "
                "VALUES ('old', :id, 'google', 'old@example.com', '[]', :alive, :now)"
            ),
            {"id": user_id, "alive": True, "now": now()},
        )

    assert stored() == [("old@example.com", True)]


def test_every_way_of_changing_connections_leaves_one_default_one(fresh_database, put, stored, user_id):
    random = Random(38)
    with fresh_database.writing() as session:
        organization = Organization(slug="acme", name=None)
        session.add(organization)
        session.flush()
        grant = {"id": "grant", "organization_id": organization.id, "provider": "google"}
        session.execute(
            insert(OrganizationGrant).values(**grant, subject="x@example.com", scope=["calendar"])
        )
    (summary,) = read(fresh_database, lambda s: organization_grants.of_organization(s, organization.id))

    def remove_one(session):
        row = random.choice(session.scalars(select(OAuthConnection)).all())
        connections.remove(session, [row.id])

    def prefer_one(session):
        connections.make_default(session, random.choice(session.scalars(select(OAuthConnection)).all()))

    def delegate(session, adds):
        organization_grants.delegate(session, summary, {user_id: email()}, adds=adds)

    def email():
        return f"{random.choice('abcd')}@example.com"

    for _ in range(200):
        step = random.randrange(6)
        if step == 0 or not stored():
            put(email())
        elif step == 1:
            put(email(), ReplacedConnection.DEFAULT)
        else:
            with fresh_database.writing() as session:
                if step == 2:
                    remove_one(session)
                elif step == 3:
                    prefer_one(session)
                elif step == 4:
                    delegate(session, adds=bool(random.randrange(2)))
                else:
                    organization_grants.delete_connections_of(session, organization.id, [user_id])
        found = stored()
        assert [default for _, default in found] == [True, *[False] * (len(found) - 1)][: len(found)]


def read(database, query):
    with database.reading() as session:
        return query(session)


def test_a_delegated_connection_stands_beside_a_personal_one_of_its_mailbox(
    fresh_database, put, stored, user_id
):
    put("a@example.com")
    with fresh_database.writing() as session:
        organization = Organization(slug="acme", name=None)
        session.add(organization)
        session.flush()
        session.execute(
            insert(OrganizationGrant).values(
                id="grant", organization_id=organization.id, provider="google", scope=["calendar"]
            )
        )
        (summary,) = organization_grants.of_organization(session, organization.id)
        first = organization_grants.delegate(session, summary, {user_id: "a@example.com"}, adds=True)
        again = organization_grants.delegate(session, summary, {user_id: "A@example.com"}, adds=True)

    assert (first.created, again.unchanged) == ({user_id}, {user_id})
    assert stored() == [("a@example.com", True), ("a@example.com", False)]
    # An import replaces the delegated one by this grant, and not the personal one.
    with fresh_database.writing() as session:
        changed = organization_grants.delegate(session, summary, {user_id: "b@example.com"})
    assert changed.changed == {user_id}
    assert stored() == [("a@example.com", True), ("b@example.com", False)]


def test_the_way_down_keeps_the_default_ones(own_database: Database, keyring):
    with own_database.writing() as session:
        user = User(custom_id="ada")
        session.add(user)
        session.flush()
        for email in ("a@example.com", "b@example.com"):
            connections.replace(
                session,
                keyring,
                user_id=user.id,
                provider="google",
                email=email,
                scope=["calendar"],
                tokens=TOKENS,
                account=ReplacedConnection.ADD,
            )

    with own_database.migrating() as connection:
        command.downgrade(alembic_config(connection), "0016")
    with own_database.engine.connect() as connection:
        assert connection.execute(text("SELECT email FROM oauth_connections")).all() == [("a@example.com",)]

    own_database.upgrade()
    with own_database.engine.connect() as connection:
        assert connection.execute(text("SELECT email, is_default FROM oauth_connections")).all() == [
            ("a@example.com", True)
        ]

"""The queries of the dashboard's pages of an organization and of API keys."""

from __future__ import annotations

from datetime import timedelta

import pytest

from store.sql.keyset import Position
from store.sql.models import ApiKey, Membership, Organization, User, now
from store.sql.queries import api_keys, audit, connections, organizations, webhooks
from tests import people


@pytest.fixture
def acme(fresh_database):
    """An organization with a member; beside it another, whose member it is too."""
    with fresh_database.writing() as session:
        acme, zoo, user = Organization(slug="acme"), Organization(slug="zoo"), User(custom_id="ada")
        session.add_all([acme, zoo, user])
        session.flush()
        for organization in (acme, zoo):
            session.add(Membership(organization_id=organization.id, user_id=user.id))
    return acme


@pytest.fixture
def keys(fresh_database, acme):
    """Keys by name: in force, about to end, ended in either way, and one that is bound."""
    ends = {
        "forever": None,
        "lasting": timedelta(1),
        "expired": -timedelta(1),
        "revoked": None,
        "bound": None,
    }
    with fresh_database.writing() as session:
        for name, left in ends.items():
            bound = acme.id if name == "bound" else None
            expires_at = None if left is None else now() + left
            api_keys.create(session, prefix="alm_", name=name, organization_id=bound, expires_at=expires_at)
        api_keys.revoke(session, "revoked", prefix="alm_")
    with fresh_database.reading() as session:
        return {row.name: row.id for row in session.query(ApiKey)}


def names(database, **filters):
    with database.reading() as session:
        return [row.name for row in api_keys.page(session, **filters).rows]


def test_active_and_ended_keys_are_listed_newest_first(fresh_database, keys):
    assert names(fresh_database, in_force=True) == ["bound", "lasting", "forever"]
    assert names(fresh_database, in_force=False) == ["revoked", "expired"]
    assert names(fresh_database, in_force=True, limit=2) == ["bound", "lasting"]
    assert names(fresh_database, in_force=True, position=Position(keys["lasting"])) == ["forever"]


def test_keys_of_one_organization(fresh_database, acme, keys):
    assert names(fresh_database, in_force=True, organization_id=acme.id) == ["bound"]
    with fresh_database.reading() as session:
        assert api_keys.count(session, acme.id) == 1
        (row,) = api_keys.page(session, in_force=True, organization_id=acme.id).rows
        assert row.organization.slug == "acme"


@pytest.mark.parametrize("name", ["expired", "revoked"])
def test_a_key_that_has_ended_is_not_revoked_again(fresh_database, keys, name):
    with fresh_database.writing() as session:
        assert api_keys.revoke_one(session, keys[name]) is None
        assert api_keys.revoke_one(session, 0) is None


def test_revoking_one_key_leaves_the_others(fresh_database, acme, keys):
    with fresh_database.writing() as session:
        visible = api_keys.revoke_one(session, keys["bound"])
    assert visible.startswith("alm_")
    assert names(fresh_database, in_force=True) == ["lasting", "forever"]
    with fresh_database.reading() as session:
        assert api_keys.count(session, acme.id) == 0


def test_connections_that_ended_in_one_organization(fresh_database, keyring, acme):
    with fresh_database.writing() as session:
        stranger = people.add_user(session, "bob")
        member = session.query(User).filter_by(custom_id="ada").one()
        for user in (member, stranger):
            for provider in ("google", "microsoft"):
                row = people.add_connection(session, keyring, user, provider=provider, email=None)
                if provider == "google":
                    connections.mark_dead(session, row.id, "It is gone")

    with fresh_database.reading() as session:
        (ended,) = connections.dead(session, organization_id=acme.id)
        assert len(connections.dead(session)) == 2
    # A member of two organizations is there once.
    assert (ended.user, ended.provider, ended.ended_because) == ("ada", "google", "It is gone")


def test_the_organizations_of_a_user(fresh_database, acme):
    with fresh_database.reading() as session:
        user = session.query(User).filter_by(custom_id="ada").one()
        assert [row.slug for row in organizations.of_user(session, user.id)] == ["acme", "zoo"]
        assert organizations.of_user(session, 0) == []
        assert organizations.slugs(session, limit=1) == ["acme"]


def test_the_webhooks_of_an_organization_are_counted(fresh_database, keyring, acme):
    with fresh_database.writing() as session:
        for organization_id in (acme.id, None):
            webhooks.create(
                session,
                keyring,
                url="https://example.com",
                events=["calendar.changed"],
                organization_id=organization_id,
            )

    with fresh_database.reading() as session:
        assert webhooks.count(session, acme.id) == 1


def test_names_that_are_longer_than_the_log_do_not_stop_a_deed(fresh_database):
    with fresh_database.writing() as session:
        audit.record(session, actor="administrator " + "a" * 128, action="renameUser", subject="s" * 300)

    with fresh_database.reading() as session:
        (row,) = audit.page(session)
    assert len(row.actor) == 128
    assert row.subject == "s" * 256

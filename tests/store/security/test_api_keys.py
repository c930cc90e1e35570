"""API keys."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text

from store.security.crypto import digest, new_key
from store.sql.database import Database
from store.sql.models import ApiKey, Organization, now
from store.sql.queries import api_keys


def make(database: Database, **rights: object) -> str:
    with database.writing() as session:
        return api_keys.create(session, prefix="alm_", name="ops", **rights)  # type: ignore[arg-type]


def caller(database: Database, key: str) -> api_keys.Caller | None:
    with database.reading() as session:
        return api_keys.caller(session, key)


def test_a_key_is_stored_as_a_hash_with_a_visible_start(fresh_database):
    key = make(fresh_database)

    with fresh_database.engine.connect() as connection:
        row = connection.execute(text("SELECT * FROM api_keys")).one()
    assert key.startswith("alm_")
    assert key not in str(row)
    assert row.digest == digest(key)
    assert row.visible == key[:12]


def test_no_two_keys_are_alike():
    assert len({new_key("alm_") for _ in range(1000)}) == 1000


def test_caller_has_the_rights_of_its_key(fresh_database):
    with fresh_database.writing() as session:
        organization = Organization(slug="acme", name=None)
        session.add(organization)
    key = make(fresh_database, organization_id=organization.id, read_only=True)

    found = caller(fresh_database, key)

    with fresh_database.reading() as session:
        (row,) = api_keys.every(session)
    assert found == api_keys.Caller(row.id, key[:12], organization.id, read_only=True, shows_tokens=False)


def test_unknown_revoked_and_expired_keys_have_no_caller(fresh_database):
    revoked = make(fresh_database)
    with fresh_database.writing() as session:
        assert len(api_keys.revoke(session, revoked, prefix="alm_")) == 1
    expired = make(fresh_database, expires_at=now() - timedelta(seconds=1))
    later = make(fresh_database, expires_at=now() + timedelta(hours=1))

    assert caller(fresh_database, "alm_unknown") is None
    assert caller(fresh_database, revoked) is None
    assert caller(fresh_database, expired) is None
    assert caller(fresh_database, later) is not None


def test_keys_are_revoked_by_name_or_visible_part_and_only_once(fresh_database):
    first = make(fresh_database)
    with fresh_database.writing() as session:
        assert len(api_keys.revoke(session, first[:12], prefix="alm_")) == 1
        assert len(api_keys.revoke(session, first[:12], prefix="alm_")) == 0
    make(fresh_database)
    make(fresh_database)
    with fresh_database.writing() as session:
        assert len(api_keys.revoke(session, "ops", prefix="alm_")) == 2


def test_a_whole_key_is_revoked_whatever_prefix_it_was_made_under(fresh_database):
    key, other = make(fresh_database), make(fresh_database)

    with fresh_database.writing() as session:
        assert len(api_keys.revoke(session, key, prefix="acme_live_")) == 1

    assert caller(fresh_database, key) is None
    assert caller(fresh_database, other) is not None


def test_a_key_ends_with_its_organization(fresh_database):
    with fresh_database.writing() as session:
        organization = Organization(slug="acme", name=None)
        session.add(organization)
    key = make(fresh_database, organization_id=organization.id)

    with fresh_database.writing() as session:
        session.delete(session.get_one(Organization, organization.id))

    assert caller(fresh_database, key) is None


def test_keys_that_are_accepted_are_counted(fresh_database):
    with fresh_database.writing() as session:
        session.add(ApiKey(name="gone", visible="alm_gone", digest="0", revoked_at=now()))
    make(fresh_database)
    make(fresh_database, expires_at=now() + timedelta(hours=1))
    make(fresh_database, expires_at=now() - timedelta(seconds=1))

    with fresh_database.reading() as session:
        assert api_keys.count_in_force(session) == 2

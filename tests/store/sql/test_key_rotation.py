"""Key rotation: every value is re-encrypted, and concurrent writes are not lost."""

from __future__ import annotations

import secrets
from datetime import timedelta

import pytest
from sqlalchemy import LargeBinary, select, update

from store.security.crypto import Keyring
from store.sql import key_rotation
from store.sql.models import Base, IdempotencyKey, OAuthConnection, Organization, Role, WebhookEndpoint, now
from store.sql.queries import (
    administrators,
    api_keys,
    connection_rows,
    connections,
    idempotency,
    identities,
    organization_grants,
    provider_clients,
    second_factors,
    webhooks,
)
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.organization_grants import NewGrant
from store.sql.queries.provider_clients import StoredClient
from tests import people

OLD, NEW = secrets.token_bytes(32), secrets.token_bytes(32)


@pytest.fixture
def both():
    """The old key opens, the new one seals."""
    return Keyring([NEW, OLD])


@pytest.fixture
def new():
    return Keyring([NEW])


@pytest.fixture
def connected(fresh_database):
    """Connections whose tokens the old key has sealed; one has no refresh token."""
    with fresh_database.writing() as session:
        return [connect(session, Keyring([OLD]), n) for n in range(5)]


def connect(session, keyring, n):
    tokens = Tokens(f"access-{n}", f"refresh-{n}" if n else None, None)
    return people.add_connection(session, keyring, people.add_user(session, f"user-{n}"), tokens=tokens).id


def tokens(database, keyring):
    with database.reading() as session:
        rows = session.scalars(select(OAuthConnection)).all()
        return {row.id: connection_rows.open_credentials(row, keyring).tokens for row in rows}


def run(database, keyring, batch=2):
    """The values re-encrypted in each column, and the values that no key decrypts."""
    progress = {
        str(each.column): (each.reencrypted, each.undecryptable)
        for each in key_rotation.reencrypt(database, keyring, batch=batch)
    }
    return {column: counts for column, counts in progress.items() if any(counts)}


def test_every_column_of_ciphertexts_is_known():
    binary = {
        (table.name, column.name)
        for table in Base.metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, LargeBinary)
    }
    assert {(each.model.__tablename__, each.column.key) for each in key_rotation.EVERY} == binary


def test_everything_opens_with_the_new_key_alone(fresh_database, connected, both, new):
    old = Keyring([OLD])
    with fresh_database.writing() as session:
        provider_clients.save(session, old, "google", StoredClient("id", "client-secret", None))
        endpoint, secret = webhooks.create(
            session, old, url="https://a.example", events=[], organization_id=None
        )
        rotated = webhooks.rotate(session, old, endpoint, overlap=timedelta(days=1))
        session.add(Organization(id=1, slug="acme"))
        session.flush()
        grant = NewGrant("google", "admin@acme.example", "robot", None, None, "key file", ["calendar"])
        saved = organization_grants.save(session, old, 1, grant)
        api_keys.create(session, prefix="alm_", name="caller")
        key = {"api_key_id": 1, "digest": "d", "fingerprint": "f"}
        claim = idempotency.claim(session, old, **key, until=now() + timedelta(minutes=1))
        assert idempotency.keep(session, old, claim, "the answer")
        ada = administrators.create(session, name="ada", password_hash="-").id
        second_factors.store(session, old, ada, totp := second_factors.new_secret(), step=1)
        known = {"issuer": "https://login.example.com", "subject": "bob", "name": "bob", "role": Role.VIEWER}
        bob = identities.create(session, **known, until=now()).id
        identities.confirm(session, old, bob, refresh_token="of bob", until=now())
    before = tokens(fresh_database, both)

    assert run(fresh_database, both) == {
        "oauth_connections.sealed_access_token": (5, 0),
        "oauth_connections.sealed_refresh_token": (4, 0),
        "organization_grants.sealed_secret": (1, 0),
        "provider_clients.sealed_secret": (1, 0),
        "webhook_endpoints.sealed_secret": (1, 0),
        "webhook_endpoints.sealed_previous_secret": (1, 0),
        "administrators.sealed_totp_secret": (1, 0),
        "identities.sealed_refresh_token": (1, 0),
        "idempotency_keys.sealed_answer": (1, 0),
    }

    assert not key_rotation.remaining(fresh_database, new)
    assert tokens(fresh_database, new) == before
    with fresh_database.writing() as session:
        row = provider_clients.load(session)["google"]
        assert provider_clients.open_client(row, new).secret == "client-secret"
        sealed = organization_grants.sealed(session, [saved.id])[saved.id]
        assert organization_grants.open_credentials(sealed, new).secret == "key file"
        assert webhooks.check_decryption(session, new, 10) == (1, 0)
        (row,) = session.scalars(select(WebhookEndpoint))
        assert webhooks.open_secret(endpoint.id, row.sealed_secret, new) == rotated
        assert webhooks.open_previous(endpoint.id, row.sealed_previous_secret, new) == secret
        row = administrators.load(session, ada)
        assert new.decrypt(row.sealed_totp_secret, second_factors.associated_data(ada)) == totp
        assert identities.refresh_token(identities.load(session, bob), new) == "of bob"
        kept = idempotency.claim(session, new, **key, until=now())
        assert kept == idempotency.StoredResponse("the answer")
    # Nothing is done twice.
    assert run(fresh_database, both) == {}


def test_a_token_that_is_renewed_meanwhile_stays(fresh_database, connected, both):
    column = key_rotation.EVERY[0]
    rows = key_rotation._older(fresh_database, both, column, after=None, limit=10)
    with fresh_database.writing() as session:
        connections.renew(session, both, connected[3], Tokens("renewed", "also", None))

    progress = key_rotation.ColumnProgress(column)
    key_rotation._seal(fresh_database, both, rows, progress)

    assert progress.reencrypted == 4
    assert tokens(fresh_database, both)[connected[3]].access_token == "renewed"


def test_what_no_key_opens_is_counted_and_left(fresh_database, connected, both):
    lost = {"sealed_access_token": Keyring([secrets.token_bytes(32)]).encrypt("x", "elsewhere")}
    with fresh_database.writing() as session:
        session.execute(update(OAuthConnection).where(OAuthConnection.id == connected[0]).values(lost))

    assert run(fresh_database, both)["oauth_connections.sealed_access_token"] == (4, 1)
    assert key_rotation.remaining(fresh_database, both) == {"oauth_connections.sealed_access_token": 1}


def test_it_goes_on_where_it_was_interrupted(fresh_database, connected, both):
    first = next(key_rotation.reencrypt(fresh_database, both, batch=2))
    assert first.reencrypted == 2
    assert key_rotation.remaining(fresh_database, both)["oauth_connections.sealed_access_token"] == 3

    assert run(fresh_database, both)["oauth_connections.sealed_access_token"] == (3, 0)


def test_rows_of_a_key_of_two_columns_come_batch_by_batch(fresh_database, both):
    old = Keyring([OLD])
    with fresh_database.writing() as session:
        for _ in range(2):
            api_keys.create(session, prefix="alm_", name="caller")
        for n in range(5):
            session.add(
                IdempotencyKey(
                    api_key_id=1 + n % 2,
                    digest=f"d{n}",
                    fingerprint="f",
                    sealed_answer=old.encrypt("answer", idempotency.associated_data(1 + n % 2, f"d{n}")),
                    expires_at=now() + timedelta(hours=1),
                )
            )

    assert run(fresh_database, both) == {"idempotency_keys.sealed_answer": (5, 0)}

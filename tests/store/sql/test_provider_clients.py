"""OAuth clients of providers in the database."""

from __future__ import annotations

import secrets

import pytest
from sqlalchemy import text

from store.security.crypto import Keyring, Undecipherable
from store.sql.database import Database
from store.sql.queries import provider_clients
from store.sql.queries.provider_clients import StoredClient

GOOGLE = StoredClient("id.apps.googleusercontent.com", "planted-secret", None)
MICROSOFT = StoredClient("8f6b", "planted~secret", "contoso.onmicrosoft.com")


@pytest.fixture
def put(fresh_database: Database, keyring: Keyring):
    """Save a registration."""

    def save(provider: str, client: StoredClient) -> None:
        with fresh_database.writing() as session:
            provider_clients.save(session, keyring, provider, client)

    return save


@pytest.fixture
def stored(fresh_database: Database):
    """Everything that is saved now."""

    def load():
        with fresh_database.reading() as session:
            return provider_clients.load(session)

    return load


def test_what_was_saved_comes_back(put, stored, keyring):
    assert stored() == {}
    put("google", GOOGLE)
    put("microsoft", MICROSOFT)

    opened = {name: provider_clients.open_client(row, keyring) for name, row in stored().items()}

    assert opened == {"google": GOOGLE, "microsoft": MICROSOFT}


def test_saving_again_replaces_and_shows_that_something_was_saved(put, stored, keyring):
    put("microsoft", MICROSOFT)
    before = stored()["microsoft"]
    put("microsoft", MICROSOFT)
    again = stored()["microsoft"]
    put("microsoft", GOOGLE)

    assert again != before
    assert again.updated_at > before.updated_at
    assert provider_clients.open_client(stored()["microsoft"], keyring) == GOOGLE


def test_unchanged_registration_is_equal(put, stored):
    put("google", GOOGLE)

    assert stored() == stored()


def test_what_was_removed_is_gone_and_the_other_stays(put, stored, fresh_database):
    put("google", GOOGLE)
    put("microsoft", MICROSOFT)

    with fresh_database.writing() as session:
        assert provider_clients.remove(session, "google") is True
        assert provider_clients.remove(session, "google") is False

    assert list(stored()) == ["microsoft"]


def test_a_secret_is_sealed_in_the_database(put, fresh_database):
    put("google", GOOGLE)

    with fresh_database.engine.connect() as connection:
        row = connection.execute(text("SELECT * FROM provider_clients")).one()

    assert "planted" not in str(tuple(bytes(v) if isinstance(v, memoryview) else v for v in row))


def test_a_secret_copied_to_the_other_provider_does_not_open(put, stored, fresh_database, keyring):
    put("google", GOOGLE)
    with fresh_database.writing() as session:
        session.execute(text("UPDATE provider_clients SET provider = 'microsoft'"))

    with pytest.raises(Undecipherable):
        provider_clients.open_client(stored()["microsoft"], keyring)


def test_secret_of_a_removed_key_is_undecipherable(put, stored):
    put("google", GOOGLE)

    with pytest.raises(Undecipherable):
        provider_clients.open_client(stored()["google"], Keyring([secrets.token_bytes(32)]))


def test_neither_form_shows_its_secret(put, stored):
    put("google", GOOGLE)
    row = stored()["google"]

    shown = f"{row!r} {stored()!r} {GOOGLE!r}"

    assert "planted" not in shown
    assert repr(row.sealed_secret) not in shown


def test_saving_and_removing_invalidate_caches(fresh_database, keyring):
    changes: list[str] = []
    database = Database(
        fresh_database.url.render_as_string(False), on_cached_rows_changed=lambda: changes.append("!")
    )

    with database.writing() as session:
        provider_clients.save(session, keyring, "google", GOOGLE)
    # Before the commit and after.
    assert len(changes) == 2
    with database.writing() as session:
        provider_clients.remove(session, "google")
    assert len(changes) == 4
    with database.writing() as session:
        provider_clients.remove(session, "google")
    assert len(changes) == 4
    database.close()

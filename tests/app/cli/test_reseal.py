"""`almanac db reseal`, run as a user runs it."""

from __future__ import annotations

import pytest

from store.config.settings import new_secrets
from store.sql.queries import provider_clients
from store.sql.queries.provider_clients import StoredClient
from store.stores import Stores
from tests.app.cli.test_commands import almanac
from tests.conftest import settings_of
from tests.databases import KINDS, new_database


@pytest.fixture(params=KINDS)
def installation(request, tmp_path):
    """Its settings, with the key that has sealed a client secret there."""
    with new_database(request.param, tmp_path) as url:
        secret, key = new_secrets()
        ours = {"ALMANAC_DATABASE_URL": url, "ALMANAC_SECRET_KEY": secret, "ALMANAC_ENCRYPTION_KEYS": key}
        with Stores(settings_of(ours)) as stores:
            stores.database.upgrade()
            with stores.database.writing() as session:
                client = StoredClient("ours", "planted-secret", None)
                provider_clients.save(session, stores.keyring, "google", client)
        yield ours


def secret_of(settings) -> str:
    with Stores(settings_of(settings)) as stores, stores.database.reading() as session:
        return provider_clients.open_client(provider_clients.load(session)["google"], stores.keyring).secret


def test_an_old_key_may_go_when_everything_is_sealed_with_the_new_one(installation, tmp_path):
    old, new = installation["ALMANAC_ENCRYPTION_KEYS"], new_secrets()[1]
    both = installation | {"ALMANAC_ENCRYPTION_KEYS": f"{new},{old}"}

    done = almanac("db", "reseal", data=tmp_path, **both)

    assert done.exit_code == 0, done.output
    assert "provider_clients.sealed_secret: 1 re-encrypted" in done.stdout
    assert "Everything is encrypted with the first key" in done.stdout
    assert "planted" not in done.output
    assert secret_of(installation | {"ALMANAC_ENCRYPTION_KEYS": new}) == "planted-secret"


def test_a_missing_key_is_reported_and_nothing_is_lost(installation, tmp_path):
    new = new_secrets()[1]

    done = almanac("db", "reseal", data=tmp_path, **installation | {"ALMANAC_ENCRYPTION_KEYS": new})

    assert done.exit_code == 1
    assert "provider_clients.sealed_secret: 0 re-encrypted, 1 that no key decrypts" in done.stdout
    assert "Not encrypted with the first key: 1 in provider_clients.sealed_secret" in done.stderr
    assert secret_of(installation) == "planted-secret"

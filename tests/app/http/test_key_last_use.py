"""The last use of a key: recorded by authenticated requests only."""

from __future__ import annotations

import pytest

from app.services import EXTENSION
from store.metrics.key_usage import KeyUsage
from store.sql.models import now
from store.sql.queries import api_keys
from tests.app.days import DAY
from tests.conftest import Api


@pytest.fixture
def key_usage(app, monkeypatch):
    """The uses of this test alone: a flush would write only a part of those of all tests."""
    stores = app.extensions[EXTENSION].stores
    monkeypatch.setattr(stores, "key_usage", KeyUsage(stores.database))
    return stores.key_usage


@pytest.fixture
def last_use(key_usage, stores):
    """The last use of a caller's key, from the database."""

    def find(api):
        key_usage.flush()
        with stores.database.reading() as session:
            (row,) = [each for each in api_keys.every(session) if api.key.startswith(each.visible)]
        return row.last_used_at

    return find


def test_a_request_is_a_use_of_its_key(new_api, last_use):
    used, unused = new_api(), new_api()
    before = now()

    assert used.get("/users", limit=1).status_code == 200

    assert before <= last_use(used) <= now()
    assert last_use(unused) is None


@pytest.mark.parametrize("path", ["/users/nobody", "/users/nobody/calendar/busy"])
def test_so_is_one_that_is_refused_for_another_reason(new_api, last_use, path):
    api = new_api()

    assert api.get(path, **DAY).status_code == 404

    assert last_use(api) is not None


@pytest.mark.usefixtures("worker")
def test_so_is_one_that_is_answered_from_the_cache(new_api, api, new_user, sandbox, last_use):
    user = new_user(sandbox.account("google", "ada@example.com"))
    assert api.get(f"/users/{user}/calendar/busy", **DAY).status_code == 200
    other = new_api()

    assert other.get(f"/users/{user}/calendar/busy", **DAY).status_code == 200

    assert last_use(other) is not None


@pytest.mark.parametrize("path", ["/users", "/users/nobody/calendar/busy"])
def test_a_revoked_key_is_not_used(app, new_api, stores, last_use, path):
    api = new_api()
    with stores.database.writing() as session:
        api_keys.revoke(session, api.key, prefix="alm_")

    assert api.get(path, **DAY).status_code == 401

    assert last_use(api) is None


def test_revoked_key_in_cache_is_refused_and_not_noted_as_used(
    key_usage, new_api, new_user, stores, last_use
):
    api, user = new_api(), new_user()
    assert api.get(f"/users/{user}").status_code == 200
    before = last_use(api)
    with stores.database.writing() as session:
        api_keys.revoke(session, api.key, prefix="alm_")

    # These routes let it in on what they remember, until they have read from Redis.
    assert api.get(f"/users/{user}/calendar/busy", **DAY).status_code == 401

    key_usage.flush(now=now().timestamp() + 3600)
    assert last_use(api) == before


def test_a_key_that_is_too_weak_for_a_request_is_used_all_the_same(app, new_api, last_use):
    reader = new_api(read_only=True)

    assert reader.post("/users", {"id": "ada"}).status_code == 403

    assert last_use(reader) is not None


def test_a_request_without_a_key_counts_for_no_key(app, stores, last_use, new_api):
    api = new_api()
    stranger = Api(app.test_client(), api.key[:12])

    assert stranger.get("/users").status_code == 401

    assert last_use(api) is None

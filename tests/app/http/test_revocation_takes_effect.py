"""Cached keys, members and connections are invalid as soon as the response to their removal is sent."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.services import EXTENSION
from store.cache.versioned_cache import VERSION_KEY
from store.sql.models import now
from store.sql.queries import api_keys
from tests.app.days import MORNING, meeting, starts
from tests.conftest import Api

pytestmark = pytest.mark.slow

ROUTES = ("scheduling", "calendar/busy")


@pytest.fixture
def elsewhere(new_app):
    """The same caller at another web process: it learns of changes from Redis alone."""
    client = new_app().test_client()
    return lambda api: Api(client, api.key)


def account(sandbox, unique, provider="google", events=()):
    return sandbox.account(provider, f"{unique('ada')}@remembered.example", events=list(events))


@pytest.mark.parametrize("route", [*ROUTES, "scheduling/explain"])
def test_a_revoked_key_is_refused_by_every_process_at_once(
    worker, new_api, new_user, elsewhere, sandbox, unique, stores, route
):
    ada, here = new_user(account(sandbox, unique)), new_api()
    there = elsewhere(here)
    query = MORNING | {"at": MORNING["start"]}
    for api in (here, there, there):
        assert api.get(f"/users/{ada}/{route}", **query).status_code == 200

    with stores.database.writing() as session:
        assert len(api_keys.revoke(session, here.key, prefix="alm_")) == 1

    for api in (here, there):
        assert api.get(f"/users/{ada}/{route}", **query).status_code == 401
        assert api.get(f"/users/{ada}/{route}").status_code == 401, "not even a fault is told"


@pytest.mark.parametrize("route", ROUTES)
def test_leaving_member_is_missing_from_next_answers(
    worker, api, new_user, new_organization, elsewhere, sandbox, unique, route
):
    slug = new_organization()
    events = [meeting("09:00", "10:00")]
    ada = new_user(account(sandbox, unique, events=events), slugs=(slug,))
    bruno = new_user(account(sandbox, unique), slugs=(slug,))
    there = elsewhere(api)
    for _ in range(2):
        assert ada in there.get(f"/organizations/{slug}/{route}", **MORNING).text or route == ROUTES[1]
        assert there.get(f"/organizations/{slug}/calendar/busy", **MORNING).json["data"] != []

    assert api.delete(f"/organizations/{slug}/members", {"userIds": [ada]}).status_code == 200

    answer = there.get(f"/organizations/{slug}/{route}", **MORNING)
    assert (answer.status_code, ada in answer.text) == (200, False)
    if route == "scheduling":
        assert {slot["userId"] for slot in answer.json["data"]["availableSlots"]} == {bruno}
    else:
        assert answer.json["data"] == []


def test_a_deleted_connection_is_neither_busy_nor_free(worker, api, new_user, elsewhere, sandbox, unique):
    busy = account(sandbox, unique, "google", [meeting("09:00", "10:00")])
    ada = new_user(busy, account(sandbox, unique, "microsoft"))
    there = elsewhere(api)
    for _ in range(2):
        assert starts(there.get(f"/users/{ada}/scheduling", **MORNING)) == ["10:00", "11:00"]

    assert api.delete(f"/users/{ada}/oauth/google").status_code == 200
    assert starts(there.get(f"/users/{ada}/scheduling", **MORNING)) == ["09:00", "10:00", "11:00"]

    assert api.delete(f"/users/{ada}/oauth/microsoft").status_code == 200
    assert there.get(f"/users/{ada}/scheduling", **MORNING).status_code == 404


def test_a_renamed_user_answers_by_the_new_name_only(worker, api, new_user, elsewhere, sandbox, unique):
    ada, eve = new_user(account(sandbox, unique)), unique("eve")
    there = elsewhere(api)
    assert there.get(f"/users/{ada}/scheduling", **MORNING).status_code == 200

    assert api.put(f"/users/{ada}", {"id": eve}).status_code == 200

    assert there.get(f"/users/{ada}/scheduling", **MORNING).status_code == 404
    assert there.get(f"/users/{eve}/scheduling", **MORNING).status_code == 200


def test_a_key_that_ends_is_refused_from_then_on(worker, new_api, new_user, sandbox, unique, monkeypatch):
    """Nothing in the database changes when a key's time is over."""
    later = now() + timedelta(hours=1)
    api, ada = new_api(expires_at=later), new_user(account(sandbox, unique))
    assert api.get(f"/users/{ada}/scheduling", **MORNING).status_code == 200

    monkeypatch.setattr(api_keys, "now", lambda: later)

    assert api.get(f"/users/{ada}/scheduling", **MORNING).status_code == 401


def test_a_redis_that_forgot_everything_confirms_nothing(worker, new_api, new_user, sandbox, unique, stores):
    ada, api = new_user(account(sandbox, unique)), new_api()
    for _ in range(2):
        assert api.get(f"/users/{ada}/scheduling", **MORNING).status_code == 200

    with stores.database.writing() as session:
        assert len(api_keys.revoke(session, api.key, prefix="alm_")) == 1
    stores.redis.delete(VERSION_KEY)

    assert api.get(f"/users/{ada}/scheduling", **MORNING).status_code == 401


def test_a_warm_request_costs_no_statement(worker, api, new_user, new_organization, sandbox, unique, app):
    slug = new_organization()
    ada = new_user(account(sandbox, unique), slugs=(slug,))
    paths = [f"/users/{ada}/scheduling", f"/organizations/{slug}/scheduling"]
    paths += [f"{path}/explain" for path in paths]
    query = MORNING | {"at": MORNING["start"]}
    for path in paths * 2:
        assert api.get(path, **query).status_code == 200
    database = app.extensions[EXTENSION].stores.__dict__["database"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "reading", None)
        for path in paths:
            assert api.get(path, **query).status_code == 200

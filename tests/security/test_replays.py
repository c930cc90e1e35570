"""Kept answers under an ``Idempotency-Key``: replayed only to a key that may still see their content."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest
from flask import Flask
from sqlalchemy import delete, select, update
from werkzeug.test import TestResponse

from store.sql.models import ApiKey, Membership, OAuthConnection, User
from store.sql.queries import api_keys
from store.stores import Stores
from tests.app.routes import idempotent_endpoints
from tests.conftest import Api
from tests.security import keys
from tests.security.keys import IN_FORCE, Kind
from tests.security.matrix import ROWS, Row
from tests.security.tenants import Settle, Tenant, leaks

READ_ONLY = {"data": None, "error": "This API key is read-only", "code": "keyReadOnly"}
UNKNOWN_KEY = {
    "data": None,
    "error": "The API key is unknown, revoked or expired",
    "code": "apiKeyInvalid",
}
# The routes that keep answers, and what names the user in the request.
OF_USERS = {
    "POST /users": "new",
    "POST /organizations/{orgSlug}/members": "userId",
    "POST /organizations/{orgSlug}/grants/{provider}/members": "new",
    "POST /users/{userId}/oauth/{provider}": "userId",
    "POST /users/{userId}/connections": "userId",
    "POST /users/{userId}/calendar/events/{provider}/{calendarId}": "userId",
    "POST /users/{userId}/calendar/events/meta": "userId",
    "POST /holds": "userId",
}
OF_OTHERS = {
    *("POST /organizations", "POST /webhooks", "POST /webhooks/{webhookId}/secret"),
    *("POST /keys", "POST /keys/{keyId}/rotate"),
}
CREATING = tuple(row for row in ROWS if row.operation in OF_USERS.keys() | OF_OTHERS)
OF_EVENTS = tuple(row for row in CREATING if "/calendar/events/" in row.operation)
WRITES = {name: kind for name, kind in IN_FORCE.items() if not kind.read_only}
EACH = pytest.mark.parametrize("row", CREATING, ids=lambda row: row.operation)


class Repeater:
    """Sends one request of a tenant again and again, always with the same ``Idempotency-Key``."""

    def __init__(self, api: Api, row: Row, names: dict[str, str]) -> None:
        self.api, self.row, self.names = api, row, names
        self._header = {"Idempotency-Key": secrets.token_hex(12)}

    def send(self, api: Api | None = None) -> TestResponse:
        """``api``: another client, instead of the first."""
        method, path, more = self.row.request(self.names)
        return (api or self.api).call(method, path, headers=self._header, **more)

    def make(self) -> TestResponse:
        """Send it for the first time, and once more to see the replay."""
        first, again = self.send(), self.send()
        assert first.status_code == self.row.status, first.text
        assert (again.status_code, again.data) == (first.status_code, first.data)
        assert replayed(again)
        return first


def needed(row: Row, **rights: bool) -> Kind:
    """The rights that a row needs."""
    return Kind(manages_keys=row.kind == "change keys", **rights)


def replayed(answer: TestResponse) -> bool:
    return answer.headers.get("Idempotency-Replayed") == "true"


@pytest.fixture
def caller(app: Flask, stores: Stores) -> Callable[..., Api]:
    """Make a client with a key of some kind, of a tenant when it is bound."""
    return lambda kind, tenant: Api(app.test_client(), keys.create(stores, kind, tenant.slug))


def leave(stores: Stores, *names: str) -> None:
    """End the memberships of these users."""
    with stores.database.writing() as session:
        ids = select(User.id).where(User.custom_id.in_(names))
        session.execute(delete(Membership).where(Membership.user_id.in_(ids)))


def refused(answer: TestResponse, status: int, tenant: Tenant, row: Row, known: str = "") -> None:
    """It is an error, and reveals nothing that was not in the request, or is ``known`` to the caller."""
    assert answer.status_code == status, (row, answer.text)
    assert not replayed(answer)
    assert list(leaks(answer, tenant.words, f"{row.request(tenant.names)} {known}")) == []


def test_every_idempotent_route_has_a_replay_test(app):
    tried = set()
    for row in CREATING:
        path = "/v1" + row.path.format(**dict.fromkeys(row.names | {"provider"}, "google"))
        endpoint, _ = app.url_map.bind("localhost").match(path, method="POST")
        tried.add(endpoint)

    assert tried == idempotent_endpoints(app)


@pytest.mark.security
@pytest.mark.parametrize("kind", WRITES)
def test_a_replay_is_refused_once_the_user_has_left_the_organization(
    caller, new_tenant: Settle, stores, kind: str
):
    for row in CREATING:
        if row.operation not in OF_USERS:
            continue
        own = new_tenant()
        repeater = Repeater(caller(WRITES[kind], own), row, own.names)
        if row.operation.endswith("/members") and WRITES[kind].bound:
            # A bound key reaches members only, so it adds no user.
            assert repeater.send().status_code == 200
        else:
            repeater.send()
        left = own.names[OF_USERS[row.operation]]

        leave(stores, left)

        answer = repeater.send()
        if not WRITES[kind].bound:
            assert replayed(answer), row
            continue
        refused(answer, 404, own, row)
        assert answer.json["error"] == "User not found"


@pytest.mark.security
@EACH
def test_a_replay_is_refused_to_a_key_that_is_revoked_or_reads_only(
    caller, new_tenant: Settle, stores, row: Row
):
    own = new_tenant()
    repeater = Repeater(caller(needed(row), own), row, own.names)
    repeater.make()

    reader = caller(Kind(read_only=True), own)
    answer = repeater.send(reader)
    refused(answer, 403, own, row)
    assert answer.json == READ_ONLY

    with stores.database.writing() as session:
        session.execute(
            update(ApiKey)
            .where(ApiKey.digest == api_keys.digest(repeater.api.key))
            .values(read_only=True)
            .execution_options(synchronize_session=False)
        )
    assert repeater.send().json == READ_ONLY

    with stores.database.writing() as session:
        api_keys.revoke(session, repeater.api.key, prefix="alm_")
    answer = repeater.send()
    refused(answer, 401, own, row)
    assert answer.json == UNKNOWN_KEY


@pytest.mark.security
@EACH
def test_a_kept_answer_belongs_to_its_key(caller, new_tenant: Settle, row: Row):
    own, other = new_tenant(), new_tenant()
    repeater = Repeater(caller(needed(row), own), row, own.names)
    repeater.make()

    answer = repeater.send(caller(needed(row, bound=True), other))

    assert not replayed(answer)
    if row.operation == "POST /webhooks":
        assert answer.status_code == 201
    else:
        refused(answer, 403 if row.operation == "POST /organizations" else 404, own, row)


@pytest.mark.security
@pytest.mark.parametrize("row", OF_EVENTS, ids=lambda row: row.operation)
def test_event_is_not_replayed_without_grant_or_scope(caller, new_tenant: Settle, stores, row: Row):
    own = new_tenant()
    repeater = Repeater(caller(Kind(bound=True), own), row, own.names)
    repeater.make()
    wanted = [{"scope": ["openid"]}, {"alive": False}]

    for values, status in zip(wanted, (403, 401), strict=True):
        with stores.database.writing() as session:
            session.execute(_own_connections(update(OAuthConnection), own).values(**values))
        # The answer names the tenant's own connection that failed.
        refused(repeater.send(), status, own, row, known=own.names["connectionId"])
    with stores.database.writing() as session:
        session.execute(_own_connections(delete(OAuthConnection), own))
    refused(repeater.send(), 404, own, row)


def _own_connections(statement, tenant: Tenant):
    ids = select(User.id).where(User.custom_id == tenant.user).scalar_subquery()
    return statement.where(OAuthConnection.user_id == ids).execution_options(synchronize_session=False)


@pytest.mark.security
def test_replay_is_refused_if_the_slug_has_another_owner(api, caller, new_tenant: Settle):
    own = new_tenant()
    (row,) = (row for row in CREATING if row.operation == "POST /organizations/{orgSlug}/members")
    repeater = Repeater(caller(Kind(bound=True), own), row, own.names)
    assert repeater.send().status_code == 200

    assert api.put(f"/organizations/{own.slug}", {"slug": f"{own.slug}-before"}).status_code == 200
    assert api.post("/organizations", {"slug": own.slug}).status_code == 200

    answer = repeater.send()
    refused(answer, 404, own, row)
    assert answer.json["error"] == "Organization not found"


@pytest.mark.security
def test_a_deleted_webhook_s_secret_is_not_replayed(api, caller, new_tenant: Settle):
    own = new_tenant()
    (row,) = (row for row in CREATING if row.operation == "POST /webhooks")
    repeater = Repeater(caller(Kind(bound=True), own), row, own.names)
    made = repeater.make().json["data"]

    assert api.delete(f"/webhooks/{made['id']}").status_code == 200

    answer = repeater.send()
    refused(answer, 404, own, row)
    assert made["secret"] not in answer.text


@pytest.mark.security
def test_a_revoked_key_is_not_replayed(api, caller, new_tenant: Settle):
    own = new_tenant()
    (row,) = (row for row in CREATING if row.operation == "POST /keys")
    repeater = Repeater(caller(needed(row, bound=True), own), row, own.names)
    made = repeater.make().json["data"]

    assert repeater.api.delete(f"/keys/{made['id']}").status_code == 200

    answer = repeater.send()
    refused(answer, 404, own, row)
    assert made["key"] not in answer.text

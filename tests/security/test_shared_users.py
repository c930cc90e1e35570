"""Users of two organizations: every route of the matrix, by the keys of both and by an unbound key.

The shared user has a connection by a grant of each organization. A key sees its own one, and no field of an
answer has anything private of the other organization.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from store.stores import Stores
from tests.conftest import Api
from tests.security import keys
from tests.security.keys import Kind
from tests.security.matrix import NINE, ROWS, Row
from tests.security.tenants import Settle, Tenant, connection_of, consent, fields, leaking_fields

pytestmark = pytest.mark.security

EACH_ROW = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.operation)
READS = [row for row in ROWS if row.kind == "read"]


class Shared:
    """Two tenants and the user whom they share; each reads the user by its own grant at its own provider."""

    def __init__(self, app: Flask, api: Api, stores: Stores, mine: Tenant, theirs: Tenant, user: str) -> None:
        self.api, self.mine, self.theirs, self.user = api, mine, theirs, user
        self._things: dict[str, dict[str, str]] = {}
        full = Kind(bound=True, shows_tokens=True)
        self.keys = {
            each.slug: Api(app.test_client(), keys.create(stores, full, each.slug)) for each in (mine, theirs)
        }

    def join(self, tenant: Tenant) -> None:
        """Make the user a member, read by the grant of the tenant, with an event in that calendar."""
        word, provider = tenant.names["domain"].partition(".")[0], tenant.names["provider"]
        self._made("POST", f"/organizations/{tenant.slug}/members", {"userIds": [self.user]})
        connection = {"type": "delegated", "email": tenant.spare_mailbox, "organization": tenant.slug}
        self._made("POST", f"/users/{self.user}/oauth/{provider}", connection)
        meta = f"shared-{word}"
        event = {**NINE, "subject": f"Shared subject {word}", "metaId": meta}
        made = self._made("POST", f"/users/{self.user}/calendar/events/{provider}/primary", event)
        mine = connection_of(self.api, self.user, tenant.spare_mailbox)
        self._things[tenant.slug] = {"eventId": made["id"], "metaId": meta, "connectionId": mine}

    def _made(self, method: str, path: str, body: Any) -> Any:
        answer = self.api.call(method, path, json=body)
        assert answer.status_code in (200, 201), answer.text
        return answer.json["data"]

    def key_of(self, tenant: Tenant) -> Api:
        return self.keys[tenant.slug]

    def names_of(self, tenant: Tenant) -> dict[str, str]:
        """The names of a tenant's things, with the shared user in the place of its own."""
        own = {"userId": self.user, "code": "x", "state": "x"}
        return tenant.names | own | self._things[tenant.slug]


def ask(api: Api, row: Row, names: Mapping[str, str]) -> TestResponse:
    method, path, more = row.request(names)
    return api.call(method, path, **more)


@pytest.fixture
def alone(app: Flask, new_tenant: Settle, api: Api, stores: Stores, unique) -> Shared:
    """The user is a member of the first tenant only."""
    user = unique("both")
    assert api.post("/users", {"id": user}).status_code == 201
    world = Shared(app, api, stores, new_tenant("google"), new_tenant("microsoft"), user)
    world.join(world.mine)
    return world


@pytest.fixture
def shared(alone: Shared) -> Shared:
    """The user is a member of both."""
    alone.join(alone.theirs)
    return alone


def both(shared: Shared) -> list[tuple[Tenant, Tenant]]:
    return [(shared.mine, shared.theirs), (shared.theirs, shared.mine)]


def test_what_another_organization_adds_to_a_user_changes_no_field(alone: Shared):
    """The same requests before and after the other organization has the user, a connection and a webhook."""
    bearer, names = alone.key_of(alone.mine), alone.names_of(alone.mine)
    before = {row.operation: lasting(ask(bearer, row, names)) for row in READS}

    alone.join(alone.theirs)

    for row in READS:
        assert lasting(ask(bearer, row, names)) == before[row.operation], row.operation


def lasting(answer: TestResponse) -> dict[str, Any]:
    """The fields of an answer, without cursors and the fields that the reads of the test change."""
    changing = {"lastRead", "cursor"}
    return {path: value for path, value in fields(answer.json) if changing.isdisjoint(path.split("."))}


def test_an_unbound_key_sees_what_both_have(shared: Shared):
    """So the other answers lack it because of the key."""
    for path in (f"/users/{shared.user}", f"/users/{shared.user}/oauth"):
        text = shared.api.get(path).text
        for tenant in (shared.mine, shared.theirs):
            assert tenant.spare_mailbox in text
    for tenant in (shared.mine, shared.theirs):
        for row in READS:
            assert ask(shared.api, row, shared.names_of(tenant)).status_code == 200, row.operation


def test_no_field_of_an_answer_has_anything_of_the_other_organization(shared: Shared):
    for mine, theirs in both(shared):
        bearer, names = shared.key_of(mine), shared.names_of(mine)
        for row in READS:
            answer = ask(bearer, row, names)
            assert answer.status_code == (row.bound or 200), (row.operation, answer.text)
            assert leaking_fields(answer, theirs.words, str(row.request(names))) == [], row.operation


def test_the_connection_of_the_other_organization_does_not_exist(shared: Shared):
    """Every route that names a provider, with the one of the other organization's grant."""
    for mine, theirs in both(shared):
        names = shared.names_of(mine) | {"provider": theirs.names["provider"]}
        nobody = names | {"userId": mine.delegated}
        assert shared.api.delete(f"/users/{mine.delegated}/oauth/{names['provider']}").status_code == 200
        for row in READS:
            if "{provider}" not in row.path or "{userId}" not in row.path:
                continue
            hidden = ask(shared.key_of(mine), row, names)
            missing = ask(shared.key_of(mine), row, nobody)
            assert hidden.status_code == 404, row.operation
            assert (hidden.status_code, hidden.json) == (missing.status_code, missing.json), row.operation


@pytest.mark.parametrize(
    "row", [r for r in ROWS if "{connectionId}" in r.path], ids=lambda row: row.operation
)
def test_the_connection_of_the_other_organization_does_not_exist_by_its_id(shared: Shared, row: Row):
    """A change of a shared user is refused before the id is looked at."""
    for mine, theirs in both(shared):
        names, other = (shared.names_of(each) for each in (mine, theirs))
        answers = [
            ask(shared.key_of(mine), row, names | {"connectionId": each})
            for each in (other["connectionId"], "0" * 32)
        ]
        assert [each.status_code for each in answers] == [404 if row.kind == "read" else 403] * 2
        assert answers[0].json == answers[1].json
        assert leaking_fields(answers[0], theirs.words, str(row.request(names))) == []
        kept = shared.key_of(theirs).get(f"/users/{shared.user}/connections/{other['connectionId']}")
        assert (kept.status_code, kept.json["data"]["label"]) == (200, None)


def test_the_routes_that_list_connections_show_those_of_the_key(shared: Shared):
    for mine, _ in both(shared):
        bearer = shared.key_of(mine)
        (listed,) = [each for each in bearer.get("/users").json["data"] if each["id"] == shared.user]
        members = bearer.get(f"/organizations/{mine.slug}/members").json["data"]
        (member,) = [each for each in members if each["id"] == shared.user]
        user = bearer.get(f"/users/{shared.user}").json["data"]
        connections = bearer.get(f"/users/{shared.user}/oauth").json["data"]
        by_id = bearer.get(f"/users/{shared.user}/connections").json["data"]
        for each in (listed, member, user):
            assert [one["email"] for one in each["oauthConnections"]] == [mine.spare_mailbox]
        for listing in (connections, by_id):
            assert [one["email"] for one in listing] == [mine.spare_mailbox]


@EACH_ROW
def test_a_request_about_a_shared_user_reveals_nothing_of_the_other_organization(
    shared: Shared, stores: Stores, row: Row
):
    """Also requests that name the user in the body or the query."""
    for mine, theirs in both(shared):
        names = shared.names_of(mine)
        if "state" in row.names:
            names |= consent(shared.api, mine)
        before = things_of(shared.api, theirs)

        answer = ask(shared.key_of(mine), row, names)

        assert answer.status_code < 500, answer.text
        assert leaking_fields(answer, theirs.words, str(row.request(names))) == []
        assert things_of(shared.api, theirs) == before


# --- holds


HELD_DAY = {"start": "2099-01-08T00:00:00Z", "end": "2099-01-09T00:00:00Z"}
HELD_TIME = {"start": "2099-01-08T09:00:00Z", "end": "2099-01-08T10:00:00Z"}
UNKNOWN_HOLD = f"hold_{0:024x}"


@pytest.fixture
def held(shared: Shared) -> tuple[Shared, str, frozenset[str]]:
    """A hold of the shared user by the key of the second organization: its id, and its private words."""
    theirs = shared.theirs
    body = {"users": [shared.user], "note": f"Note of {theirs.slug}", "expiresIn": 3600, **HELD_TIME}
    made = shared.key_of(theirs).post("/holds", body)
    assert made.status_code == 201, made.text
    hold = made.json["data"]["id"]
    return shared, hold, theirs.words | {hold}


def test_the_hold_of_another_organization_is_busy_time(held):
    shared, _, private = held
    bearer = shared.key_of(shared.mine)

    slots = bearer.get(f"/users/{shared.user}/scheduling", slotDuration="60", **HELD_DAY)
    refused = bearer.post("/holds", {"users": [shared.user], **HELD_TIME})

    starts = [each["start"] for each in slots.json["data"]["availableSlots"]]
    assert starts
    assert not [each for each in starts if each.startswith("2099-01-08T09")]
    assert (refused.status_code, refused.json["code"]) == (409, "slotTaken")
    for answer in (slots, refused):
        assert leaking_fields(answer, private, "") == []


@pytest.mark.parametrize("row", [r for r in ROWS if "{holdId}" in r.path], ids=lambda row: row.operation)
def test_the_hold_of_another_organization_does_not_exist_by_its_id(held, row: Row):
    shared, hold, private = held
    names = shared.names_of(shared.mine)

    foreign = ask(shared.key_of(shared.mine), row, names | {"holdId": hold})
    unknown = ask(shared.key_of(shared.mine), row, names | {"holdId": UNKNOWN_HOLD})

    assert foreign.status_code == 404
    assert foreign.json == unknown.json
    assert leaking_fields(foreign, private, hold) == []
    kept = shared.key_of(shared.theirs).get(f"/holds/{hold}")
    assert (kept.status_code, kept.json["data"]["note"]) == (200, f"Note of {shared.theirs.slug}")


def test_the_hold_of_another_organization_is_in_no_list(held):
    shared, hold, private = held
    bearer = shared.key_of(shared.mine)

    for answer in (bearer.get("/holds"), bearer.get("/holds", user=shared.user)):
        assert answer.status_code == 200
        assert leaking_fields(answer, private, "") == []
    every = shared.api.get("/holds", user=shared.user).json["data"]
    assert hold in [each["id"] for each in every]


def test_an_event_is_not_created_by_the_hold_of_another_organization(held):
    shared, hold, private = held
    bearer, provider = shared.key_of(shared.mine), shared.mine.names["provider"]
    path = f"/users/{shared.user}/calendar/events/{provider}/primary"

    foreign, unknown = (
        bearer.call("POST", path, json=HELD_TIME, query_string={"hold": each})
        for each in (hold, UNKNOWN_HOLD)
    )

    assert (foreign.status_code, foreign.json) == (unknown.status_code, unknown.json)
    assert foreign.status_code in (404, 409)
    assert leaking_fields(foreign, private, hold) == []
    assert shared.key_of(shared.theirs).get(f"/holds/{hold}").status_code == 200


def things_of(api: Api, tenant: Tenant) -> dict[str, Any]:
    """The tenant's things as an unbound key sees them, apart from the members whom it shares."""
    slug, found = tenant.slug, {}
    for path in (
        f"/organizations/{slug}/grants",
        f"/users/{tenant.user}",
        f"/users/{tenant.delegated}",
        f"/webhooks/{tenant.names['webhookId']}",
        f"/holds/{tenant.names['holdId']}",
    ):
        found[path] = api.get(path).json
    return found

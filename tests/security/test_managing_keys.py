"""A managing API key cannot make, change or take over a key that may do more than itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from app.accounts import managed_keys
from app.http.errors import Forbidden
from scheduling.json_render import timestamp
from store.security.crypto import digest
from store.sql.models import ApiKey, AuditRecord, now
from store.sql.queries import api_keys
from store.stores import Stores
from tests.conftest import Api, stores_of

SOON, LATER = now() + timedelta(days=1), now() + timedelta(days=2)


def written(moment) -> str:
    return timestamp(int(moment.timestamp() * 1000))


@dataclass(frozen=True)
class Case:
    """A field of which the managing key has ``own``, and values for a key of its making."""

    field: str
    column: str
    own: Any
    allowed: tuple[Any, ...]
    refused: tuple[Any, ...]

    def rights(self) -> dict[str, Any]:
        return {self.column: self.own}


CASES = (
    Case("showTokens", "shows_tokens", False, (False,), (True,)),
    Case("showTokens", "shows_tokens", True, (False, True), ()),
    Case("readOnly", "read_only", False, (False, True), ()),
    Case("expiresAt", "expires_at", None, (written(SOON), written(LATER)), ()),
    Case("expiresAt", "expires_at", SOON, (written(now() + timedelta(hours=1)),), (written(LATER),)),
    Case("rateLimit", "rate_limit", None, (1, 500, 600), (601,)),
    Case("rateLimit", "rate_limit", 60, (1, 60), (61, 600)),
    # An operator may give a key more than the installation's limit.
    Case("rateLimit", "rate_limit", 900, (900,), (901,)),
)
EACH = pytest.mark.parametrize("case", CASES, ids=[f"{case.field} {n}" for n, case in enumerate(CASES)])
# The columns of a change to null, which would lift a bound of the managing key.
LIFTED = pytest.mark.parametrize(
    ("field", "rights"), [("expiresAt", {"expires_at": SOON}), ("rateLimit", {"rate_limit": 60})]
)


@pytest.fixture
def manager(new_app, new_api, unique):
    """Make a managing key at an installation with 600 requests a minute for each key."""
    app = new_app(rate_limit=600)

    def make(**rights: Any) -> Api:
        return Api(app.test_client(), new_api(manages_keys=True, **rights).key)

    return make


def refused(answer, field: str) -> None:
    assert (answer.status_code, answer.json["code"], answer.json["param"]) == (
        403,
        "keyExceedsManager",
        field,
    )
    assert "key" not in answer.json


def stored(stores: Stores, key: str) -> ApiKey:
    with stores.database.reading() as session:
        return session.query(ApiKey).filter_by(digest=digest(key)).one()


@EACH
def test_a_key_is_made_within_the_rights_of_its_maker(manager, case: Case):
    api = manager(**case.rights())
    for value in case.allowed:
        made = api.post("/keys", {"name": "x", case.field: value})
        assert made.status_code == 201, made.text
        assert made.json["data"][case.field] == value
        assert made.json["data"]["manageKeys"] is False
    count = len(api.get("/keys").json["data"])
    for value in case.refused:
        refused(api.post("/keys", {"name": "x", case.field: value}), case.field)
    assert len(api.get("/keys").json["data"]) == count


@EACH
def test_a_key_is_changed_within_the_rights_of_the_manager(manager, case: Case):
    api = manager(**case.rights())
    made = api.post("/keys", {"name": "x"}).json["data"]
    for value in case.allowed:
        changed = api.call("PATCH", f"/keys/{made['id']}", json={case.field: value})
        assert (changed.status_code, changed.json["data"][case.field]) == (200, value), changed.text
    before = api.get(f"/keys/{made['id']}").json
    for value in case.refused:
        refused(api.call("PATCH", f"/keys/{made['id']}", json={case.field: value}), case.field)
    assert api.get(f"/keys/{made['id']}").json == before


@LIFTED
def test_a_bound_is_not_lifted_by_null(manager, field: str, rights):
    api = manager(**rights)
    made = api.post("/keys", {"name": "x", field: None}).json["data"]
    assert made[field] is not None
    refused(api.call("PATCH", f"/keys/{made['id']}", json={field: None}), field)


@pytest.mark.parametrize(
    ("rights", "field"),
    [
        ({"shows_tokens": True}, "showTokens"),
        ({"expires_at": None}, "expiresAt"),
        ({"expires_at": LATER}, "expiresAt"),
        ({"rate_limit": 61}, "rateLimit"),
    ],
)
def test_a_key_that_may_do_more_is_not_taken_over(manager, new_api, stores, rights, field: str):
    """Rotating it would give the managing key its rights."""
    other = {"expires_at": SOON, "rate_limit": 60} | rights
    target = new_api(**other)
    number = stored(stores, target.key).public_id
    api = manager(expires_at=SOON, rate_limit=60)

    refused(api.post(f"/keys/{number}/rotate", {}), field)
    refused(api.call("PATCH", f"/keys/{number}", json={"name": "mine"}), field)

    assert target.get("/users").status_code == 200
    assert stored(stores, target.key).name == "test"
    # It may take a right away, and revoke.
    assert api.delete(f"/keys/{number}").status_code == 200
    assert target.get("/users").status_code == 401


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("showTokens", True),
        pytest.param("expiresAt", written(LATER), id="a later end"),
        ("expiresAt", None),
        ("rateLimit", 61),
        ("rateLimit", None),
    ],
)
def test_a_managing_key_does_not_lift_its_own_limits(manager, stores, field: str, value):
    api = manager(expires_at=SOON, rate_limit=60)
    path = f"/keys/{stored(stores, api.key).public_id}"
    before = api.get(path).json

    refused(api.call("PATCH", path, json={"name": "mine", field: value}), field)

    assert api.get(path).json == before
    narrower = {"name": "mine", "rateLimit": 59, "expiresAt": written(now() + timedelta(hours=1))}
    changed = api.call("PATCH", path, json=narrower)
    assert changed.status_code == 200
    assert narrower.items() <= changed.json["data"].items()


def test_a_key_of_an_organization_reaches_and_makes_keys_of_it_alone(
    manager, new_api, new_organization, stores
):
    own, other = new_organization(), new_organization()
    api = manager(organization=own)
    everyones, theirs = new_api(), new_api(organization=other)

    made = api.post("/keys", {"name": "x"}).json["data"]

    assert made["organization"] == own
    assert api.post("/keys", {"name": "x", "organization": other}).status_code == 404
    assert {each["organization"] for each in api.get("/keys").json["data"]} == {own}
    for foreign in (everyones, theirs):
        path = f"/keys/{stored(stores, foreign.key).public_id}"
        answers = [
            api.get(path),
            api.call("PATCH", path, json={"name": "mine"}),
            api.post(f"{path}/rotate", {}),
            api.delete(path),
        ]
        assert {(each.status_code, each.json["code"]) for each in answers} == {(404, "keyNotFound")}
        assert foreign.get("/organizations").status_code == 200
    moved = api.call("PATCH", f"/keys/{made['id']}", json={"organization": other})
    assert (moved.status_code, moved.json["param"]) == (400, "organization")


def test_a_read_only_managing_key_changes_no_key(manager, new_api, stores):
    api = manager(read_only=True)
    number = stored(stores, new_api().key).public_id
    answers = [
        api.post("/keys", {"name": "x"}),
        api.call("PATCH", f"/keys/{number}", json={"name": "x"}),
        api.post(f"/keys/{number}/rotate", {}),
        api.delete(f"/keys/{number}"),
    ]
    assert {each.json["code"] for each in answers} == {"keyReadOnly"}
    assert api.get(f"/keys/{number}").status_code == 200


def test_no_key_of_the_api_manages_keys(manager):
    api = manager()
    assert api.post("/keys", {"name": "x", "manageKeys": True}).json["param"] == "manageKeys"
    assert api.post("/keys", {"name": "x", "managesKeys": True}).json["param"] == "managesKeys"
    made = api.post("/keys", {"name": "x"}).json["data"]
    child = Api(api.client, made["key"])
    assert child.get("/keys").json["code"] == "keyMayNotManageKeys"
    assert api.call("PATCH", f"/keys/{made['id']}", json={"manageKeys": True}).status_code == 400
    assert child.post("/keys", {"name": "y"}).json["code"] == "keyMayNotManageKeys"


def test_a_replaced_key_is_valid_until_its_overlap_has_passed(manager, stores):
    api = manager()
    made = api.post("/keys", {"name": "billing", "readOnly": True}).json["data"]
    old = Api(api.client, made["key"])
    assert old.get("/users").status_code == 200

    rotated = api.post(f"/keys/{made['id']}/rotate", {"overlapSeconds": 3600}).json["data"]

    new = Api(api.client, rotated["key"])
    assert (rotated["id"], rotated["readOnly"]) == (made["id"], True)
    assert rotated["previousKeyUntil"] is not None
    for each in (old, new):
        assert each.get("/users").status_code == 200
        assert each.post("/users", {"id": "someone"}).json["code"] == "keyReadOnly"

    with stores.database.writing() as session:
        row = session.query(ApiKey).filter_by(digest=digest(rotated["key"])).one()
        row.previous_until = now() - timedelta(seconds=1)
    assert [each.get("/users").status_code for each in (old, new)] == [401, 200]


def test_a_rotation_without_overlap_ends_the_key_at_once(manager):
    api = manager()
    made = api.post("/keys", {"name": "leaked"}).json["data"]
    old = Api(api.client, made["key"])
    assert old.get("/users").status_code == 200

    rotated = api.post(f"/keys/{made['id']}/rotate", {"overlapSeconds": 0}).json["data"]

    assert old.get("/users").status_code == 401
    assert Api(api.client, rotated["key"]).get("/users").status_code == 200


def test_a_second_rotation_ends_the_oldest_key(manager):
    api = manager()
    first = api.post("/keys", {"name": "x"}).json["data"]
    second = api.post(f"/keys/{first['id']}/rotate", {}).json["data"]
    third = api.post(f"/keys/{first['id']}/rotate", {}).json["data"]
    statuses = [Api(api.client, each["key"]).get("/users").status_code for each in (first, second, third)]
    assert statuses == [401, 200, 200]


def test_a_managing_key_replaces_itself_and_keeps_its_limits(manager, stores):
    api = manager(rate_limit=60, expires_at=SOON)
    own = stored(stores, api.key).public_id
    rotated = api.post(f"/keys/{own}/rotate", {"overlapSeconds": 60}).json["data"]
    renewed = Api(api.client, rotated["key"])
    made = renewed.post("/keys", {"name": "x"}).json["data"]
    assert (made["expiresAt"], made["rateLimit"]) == (written(SOON), 60)


def test_a_replaced_managing_key_makes_and_changes_no_key(manager, stores):
    """It ends soon: a key of its making, or the new key if it rotated that, would not."""
    api = manager()
    own = f"/keys/{stored(stores, api.key).public_id}"
    made = api.post("/keys", {"name": "x"}).json["data"]
    rotated = api.post(f"{own}/rotate", {"overlapSeconds": 3600}).json["data"]
    child, renewed = f"/keys/{made['id']}", Api(api.client, rotated["key"])
    count = len(renewed.get("/keys").json["data"])

    answers = [
        api.post("/keys", {"name": "y"}),
        *(api.call("PATCH", path, json={"name": "y"}) for path in (own, child)),
        *(api.post(f"{path}/rotate", {"overlapSeconds": 0}) for path in (own, child)),
    ]

    assert {(each.status_code, each.json["code"]) for each in answers} == {(403, "keyMayNotManageKeys")}
    assert answers[0].json["error"] == "This API key was replaced: manage API keys with the new one"
    assert len(renewed.get("/keys").json["data"]) == count
    assert Api(api.client, made["key"]).get("/users").status_code == 200
    # It still reads, and may take rights away.
    assert api.get(own).status_code == 200
    assert api.delete(child).status_code == 200


def test_a_managing_key_that_is_replaced_during_its_request_makes_no_key(manager, stores):
    api = manager()
    own = stored(stores, api.key).public_id
    with stores.database.reading() as session:
        early = api_keys.caller(session, api.key)
    assert api.post(f"/keys/{own}/rotate", {}).status_code == 200

    with stores.database.writing() as session, pytest.raises(Forbidden):
        managed_keys.rotate(session, early, own, overlap=timedelta())


def test_a_key_has_its_own_rate_limit(new_api, new_app):
    """Also at an installation that limits no key."""
    for usual in (0, 1, 600):
        client = new_app(rate_limit=usual).test_client()
        key = new_api(rate_limit=3).key
        answers = [Api(client, key).get("/users") for _ in range(4)]
        assert [each.status_code for each in answers] == [200, 200, 200, 429]
        assert {each.headers["RateLimit-Limit"] for each in answers} == {"3"}


def test_a_change_of_the_limit_counts_at_once(manager):
    api = manager()
    made = api.post("/keys", {"name": "x", "rateLimit": 2}).json["data"]
    child = Api(api.client, made["key"])
    assert [child.get("/users").status_code for _ in range(3)] == [200, 200, 429]
    api.call("PATCH", f"/keys/{made['id']}", json={"rateLimit": 100})
    assert child.get("/users").headers["RateLimit-Limit"] == "100"


def test_every_change_is_in_the_audit_log_without_a_key(manager):
    api = manager()
    made = api.post("/keys", {"name": "billing"}).json["data"]
    api.call("PATCH", f"/keys/{made['id']}", json={"name": "invoices", "rateLimit": 60})
    rotated = api.post(f"/keys/{made['id']}/rotate", {}).json["data"]
    api.delete(f"/keys/{made['id']}")
    with stores_of(api.client.application).database.reading() as session:
        log = session.query(AuditRecord).filter_by(actor=api.key[:12]).order_by(AuditRecord.id).all()
    told = [(each.action, each.subject) for each in log]
    old, new = made["visible"], rotated["visible"]
    assert told == [("createKey", old), ("changeKey", old), ("rotateKey", old), ("revokeKey", new)]
    assert log[1].changes == {"name": ["billing", "invoices"], "rateLimit": [None, "60"]}
    assert not any(secret in str(each.changes) for each in log for secret in (made["key"], rotated["key"]))

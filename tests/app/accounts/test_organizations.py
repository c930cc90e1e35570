"""Organizations."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from store.sql.models import AuditRecord
from store.stores import Stores
from tests.app.answers import error, pages


def test_an_organization_is_created_with_200(api, unique):
    slug = unique("org")

    answer = api.post("/organizations", {"slug": slug, "name": "Design team"})

    assert answer.status_code == 200
    data = answer.json["data"]
    assert answer.json == {
        "data": {"slug": slug, "name": "Design team", "createdAt": data["createdAt"], "members": []}
    }
    assert data["createdAt"].endswith("Z")
    assert api.get(f"/organizations/{slug}").json == answer.json


@pytest.mark.parametrize(
    "name",
    [
        None,
        "A",
        "x" * 128,
        "Z\u00fcrich \u2013 B\u00fcro",
        "\u65e5\u672c",
        "a\u00a0b",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        " ",
        "{}",
        "'; --",
    ],
)
def test_names_are_any_text_in_one_line_or_null(api, unique, name):
    slug = unique("org")
    assert api.post("/organizations", {"slug": slug, "name": name}).json["data"]["name"] == name
    assert api.get(f"/organizations/{slug}").json["data"]["name"] == name


def test_a_name_may_be_absent(api, unique):
    assert api.post("/organizations", {"slug": unique("org")}).json["data"]["name"] is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "slug is required"),
        ({"name": "N"}, "slug is required"),
        ({"slug": None}, "slug is required"),
        ({"slug": 123}, "slug must be a string"),
        ({"slug": "ab"}, "slug must match ^[a-z0-9][a-z0-9_-]{2,127}$"),
        ({"slug": "Design"}, "slug must match"),
        ({"slug": "design team"}, "slug must match"),
        ({"slug": "_design"}, "slug must match"),
        ({"slug": "design.team"}, "slug must match"),
        ({"slug": "x" * 129}, "slug must match"),
        ({"slug": "design", "name": ""}, "name must have 1 to 128 characters"),
        ({"slug": "design", "name": "x" * 129}, "name must have 1 to 128 characters"),
        ({"slug": "design", "name": 5}, "name must be a string"),
        ({"slug": "design", "name": "a\x00b"}, "name must not contain control characters"),
    ],
)
def test_a_bad_body_creates_nothing(api, body, message):
    assert error(api.post("/organizations", body), 400).startswith(message)
    assert api.get("/organizations/design").status_code == 404


def test_a_slug_that_is_taken_is_409(api, new_organization):
    slug = new_organization()

    message = error(api.post("/organizations", {"slug": slug, "name": "Other"}), 409)

    assert message == "Organization with slug already exists"
    assert api.get(f"/organizations/{slug}").json["data"]["name"] is None


def test_organizations_are_listed_in_order_and_by_pages(api, new_organization):
    slugs = {new_organization(), new_organization(), new_organization()}

    listed = api.get("/organizations").json

    everything = [each["slug"] for each in listed["data"]]
    assert slugs <= set(everything)
    assert everything == sorted(everything)
    assert listed.keys() == {"data"}
    assert [slug for page in pages(api, "/organizations", 2) for slug in page] == everything


def test_an_organization_changes_name_and_slug(api, new_user, new_organization, unique):
    slug, new = new_organization(), unique("new")
    user = new_user(slugs=(slug,))

    renamed = api.put(f"/organizations/{slug}", {"name": "Named"})
    moved = api.put(f"/organizations/{slug}", {"slug": new})
    unnamed = api.put(f"/organizations/{new}", {"name": None, "slug": new})

    assert [each.status_code for each in (renamed, moved, unnamed)] == [200, 200, 200]
    assert (renamed.json["data"]["slug"], renamed.json["data"]["name"]) == (slug, "Named")
    assert (moved.json["data"]["slug"], moved.json["data"]["name"]) == (new, "Named")
    assert unnamed.json["data"]["name"] is None
    assert [member["id"] for member in unnamed.json["data"]["members"]] == [user]
    assert api.get(f"/organizations/{slug}").status_code == 404


def test_an_empty_change_changes_nothing(api, new_organization):
    slug = new_organization()
    before = api.get(f"/organizations/{slug}").json

    assert api.put(f"/organizations/{slug}", {}).json == before


def test_a_change_to_a_taken_slug_is_409(api, new_organization):
    slug, other = new_organization(), new_organization()

    assert (
        error(api.put(f"/organizations/{slug}", {"slug": other}), 409)
        == "Organization with slug already exists"
    )
    assert api.get(f"/organizations/{slug}").status_code == 200


@pytest.mark.parametrize("body", [{"slug": "A b"}, {"name": ""}, {"name": ["x"]}])
def test_a_bad_change_is_refused(api, new_organization, body):
    assert error(api.put(f"/organizations/{new_organization()}", body), 400).startswith(next(iter(body)))


def test_delete_returns_the_organization_and_keeps_its_users(api, new_user, new_organization):
    slug = new_organization()
    user = new_user(slugs=(slug,))
    before = api.get(f"/organizations/{slug}").json

    answer = api.delete(f"/organizations/{slug}")

    assert (answer.status_code, answer.json) == (200, before)
    assert before["data"]["members"][0]["id"] == user
    assert api.get(f"/users/{user}").json["data"]["organizations"] == []
    assert error(api.delete(f"/organizations/{slug}"), 404) == "Organization not found"


def test_the_keys_of_a_deleted_organization_end_with_it(api, new_api, new_organization):
    slug = new_organization()
    bound = new_api(slug)
    assert bound.get("/users").status_code == 200

    api.delete(f"/organizations/{slug}")

    assert "key" in error(bound.get("/users"), 401)


def test_an_organization_that_does_not_exist_is_404(api):
    for answer in (
        api.get("/organizations/nowhere"),
        api.put("/organizations/nowhere", {"name": "N"}),
        api.delete("/organizations/nowhere"),
        api.get("/organizations/nowhere/members"),
        api.post("/organizations/nowhere/members", {"userIds": []}),
        api.delete("/organizations/nowhere/members", {"userIds": []}),
    ):
        assert error(answer, 404) == "Organization not found"


def quotas_of(api, slug: str) -> object:
    return api.get(f"/organizations/{slug}").json["data"].get("quotas")


def quota_changes(stores: Stores, slug: str) -> list[Any]:
    """What each record of a change of the quotas says, the oldest first."""
    query = select(AuditRecord.changes).where(
        AuditRecord.subject == slug, AuditRecord.action == "changeQuotas"
    )
    with stores.database.reading() as session:
        return list(session.scalars(query.order_by(AuditRecord.id)))


def test_an_organization_has_quotas_of_its_own(api, new_api, stores, new_organization, new_user):
    slug = new_organization()
    bound = new_api(organization=slug)
    assert "quotas" not in api.get(f"/organizations/{slug}").json["data"]

    first = api.put(f"/organizations/{slug}", {"quotas": {"heldUsers": 2000, "waitingReads": "64"}})
    changed = {"name": "Named", "quotas": {"heldUsers": None, "webhookTurns": 2}}
    second = api.put(f"/organizations/{slug}", changed)

    assert first.json["data"]["quotas"] == {"heldUsers": 2000, "waitingReads": 64}
    assert second.json["data"]["quotas"] == {"waitingReads": 64, "webhookTurns": 2}
    # Its own keys see them, in the list too; users do not.
    assert quotas_of(bound, slug) == quotas_of(api, slug) == {"waitingReads": 64, "webhookTurns": 2}
    assert bound.get("/organizations").json["data"][0]["quotas"] == {"waitingReads": 64, "webhookTurns": 2}
    user = new_user(slugs=(slug,))
    assert "quotas" not in bound.get(f"/users/{user}").json["data"]["organizations"][0]
    none = dict.fromkeys(("waitingReads", "webhookTurns"))
    assert "quotas" not in api.put(f"/organizations/{slug}", {"quotas": none}).json["data"]
    assert quota_changes(stores, slug) == [
        {"waitingReads": [None, "64"], "heldUsers": [None, "2000"]},
        {"heldUsers": ["2000", None], "webhookTurns": [None, "2"]},
        {"waitingReads": ["64", None], "webhookTurns": ["2", None]},
    ]


def test_an_organization_is_created_with_quotas(api, unique):
    slug = unique("limited")
    created = api.post("/organizations", {"slug": slug, "quotas": {"requestsPerMinute": 60}})
    assert created.json["data"]["quotas"] == quotas_of(api, slug) == {"requestsPerMinute": 60}


@pytest.mark.parametrize(
    ("quotas", "param"),
    [
        ({"requestsPerMinute": 0}, "quotas.requestsPerMinute"),
        ({"heldUsers": 1_000_001}, "quotas.heldUsers"),
        ({"waitingReads": "many"}, "quotas.waitingReads"),
        ({"webhookTurns": True}, "quotas.webhookTurns"),
        ({"held_users": 60}, "quotas.held_users"),
        ([], "quotas"),
    ],
)
def test_quotas_that_are_refused(api, new_organization, quotas, param):
    slug = new_organization()
    answer = api.put(f"/organizations/{slug}", {"quotas": quotas})
    assert error(answer, 400).startswith(param)
    assert answer.json["param"] == param
    assert quotas_of(api, slug) is None


def test_a_key_does_not_raise_the_quotas_of_its_own_organization(api, new_api, new_organization):
    slug = new_organization()
    bound = new_api(organization=slug)

    refused = bound.put(f"/organizations/{slug}", {"name": "Named", "quotas": {"heldUsers": 10**6}})

    assert refused.json["code"] == "keyBoundToOrganization"
    assert error(refused, 403) == (
        "Changing the quotas of an organization needs an API key that is not bound to an organization"
    )
    # Nothing of the request was done.
    assert bound.get(f"/organizations/{slug}").json["data"]["name"] is None
    # What changes no quota is as before, such as an organization that is sent back as it was read.
    for harmless in ({}, None, {"heldUsers": None}):
        assert bound.put(f"/organizations/{slug}", {"name": "Named", "quotas": harmless}).status_code == 200
    api.put(f"/organizations/{slug}", {"quotas": {"heldUsers": 7}})
    read = bound.get(f"/organizations/{slug}").json["data"]
    assert bound.put(f"/organizations/{slug}", read).json["data"] == read
    assert error(bound.put(f"/organizations/{slug}", read | {"quotas": {"heldUsers": None}}), 403)

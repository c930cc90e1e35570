"""Users."""

from __future__ import annotations

from collections import Counter

import pytest

from app.services import EXTENSION
from tests.app.answers import INCLUDED, error, pages
from tests.store.statements import recorded

RANGE = {"start": "2026-12-03", "end": "2026-12-04"}


# --- create


def test_a_user_is_registered(api, unique):
    user = unique("ada")

    answer = api.post("/users", {"id": user})

    assert answer.status_code == 201
    data = answer.json["data"]
    assert answer.json == {
        "data": {"id": user, "createdAt": data["createdAt"], "oauthConnections": [], "organizations": []}
    }
    assert data["createdAt"].endswith("Z")
    assert len(data["createdAt"]) == len("2026-11-20T09:00:00.000Z")
    assert api.get(f"/users/{user}").json == answer.json


@pytest.mark.parametrize("user", ["a.b", "007", "A-B_c.d", "x" * 128, "scheduling", "Ada"])
def test_ids_that_are_allowed(api, user):
    # A generated request may have chosen the same word.
    api.delete(f"/users/{user}")

    assert api.post("/users", {"id": user}).status_code == 201
    assert api.get(f"/users/{user}").json["data"]["id"] == user
    assert api.delete(f"/users/{user}").status_code == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "id is required"),
        ({"id": None}, "id is required"),
        ({"id": 12345}, "id must be a string"),
        ({"id": ["ada"]}, "id must be a string"),
        ({"id": "ab"}, "id must match ^[A-Za-z0-9][A-Za-z0-9._-]{2,127}$"),
        ({"id": "_ada"}, "id must match"),
        ({"id": "ada lovelace"}, "id must match"),
        ({"id": "ada@example.com"}, "id must match"),
        ({"id": "x" * 129}, "id must match"),
        ({"id": "ada\n"}, "id must match"),
        ({"id": "a\x00da"}, "id must match"),
        ({"id": "ad\u0661"}, "id must match"),
        ({"id": "not.registered", "organizationSlugs": "acme"}, "organizationSlugs must be an array"),
        (
            {"id": "not.registered", "organizationSlugs": ["abc"] * 1001},
            "organizationSlugs must have at most 1000",
        ),
    ],
)
def test_a_bad_body_registers_no_user(api, body, message):
    assert error(api.post("/users", body), 400).startswith(message)
    assert api.get("/users/not.registered").status_code == 404


def test_a_user_can_start_as_a_member(api, unique, new_organization):
    slugs = sorted([new_organization(), new_organization()])

    data = api.post("/users", {"id": (user := unique("ada")), "organizationSlugs": [*slugs, slugs[0]]}).json[
        "data"
    ]

    assert [organization["slug"] for organization in data["organizations"]] == slugs
    members = data["organizations"][0]["members"]
    assert members == [{"id": user, "createdAt": data["createdAt"]}]


def test_an_unknown_slug_creates_nothing(api, unique, new_organization):
    user, slug = unique("ada"), new_organization()

    answer = api.post("/users", {"id": user, "organizationSlugs": [slug, "no-such-org"]})

    assert error(answer, 404) == "Organization not found"
    assert api.get(f"/users/{user}").status_code == 404
    assert api.get(f"/organizations/{slug}").json["data"]["members"] == []


def test_an_id_that_is_taken_is_409_and_changes_nothing(api, new_user, new_organization):
    user, slug = new_user(), new_organization()

    assert error(api.post("/users", {"id": user, "organizationSlugs": [slug]}), 409) == "User already exists"
    assert api.get(f"/users/{user}").json["data"]["organizations"] == []


def test_ids_differ_by_case(api, unique):
    user = unique("ada")
    assert api.post("/users", {"id": user}).status_code == 201
    assert api.post("/users", {"id": user.upper()}).status_code == 201


# --- read


def test_include_narrows_the_relations(api, new_user):
    user = new_user()
    for query, present in INCLUDED.items():
        for method, body in (("GET", None), ("PUT", {"userId": user})):
            more = {} if body is None else {"json": body}
            answer = api.call(method, f"/users/{user}", query_string=query, **more)
            assert answer.json["data"].keys() - {"id", "createdAt"} == present, query

    message = error(api.get(f"/users/{user}", include="members"), 400)
    assert message.endswith("must be one of oauthConnections, organizations")


def test_an_unknown_user_is_404(api):
    for call in (
        api.get("/users/nobody"),
        api.put("/users/nobody", {"userId": "somebody"}),
        api.delete("/users/nobody"),
        api.get("/users/nobody/organizations"),
        api.get("/users/nobody/oauth"),
    ):
        assert error(call, 404) == "User not found"


def test_a_users_organizations_are_listed_with_their_members(api, new_user, new_organization):
    slugs = sorted(new_organization() for _ in range(3))
    user, other = new_user(slugs=tuple(slugs)), new_user(slugs=(slugs[0],))

    listed = api.get(f"/users/{user}/organizations").json

    assert [each["slug"] for each in listed["data"]] == slugs
    assert sorted(member["id"] for member in listed["data"][0]["members"]) == sorted([user, other])
    assert listed.keys() == {"data"}
    page = api.get(f"/users/{user}/organizations", limit=2).json
    assert [each["slug"] for each in page["data"]] == slugs[:2]
    rest = api.get(f"/users/{user}/organizations", limit=2, cursor=page["nextCursor"]).json
    assert [each["slug"] for each in rest["data"]] == slugs[2:]
    assert rest["nextCursor"] is None


# --- rename


@pytest.mark.parametrize("field", ["userId", "id"])
def test_a_user_is_renamed_and_keeps_everything(api, sandbox, new_user, new_organization, unique, field):
    user = new_user(sandbox.account("google", "ada@example.com"), slugs=(new_organization(),))
    before, new = api.get(f"/users/{user}").json["data"], unique("new")

    answer = api.put(f"/users/{user}", {field: new})

    assert answer.status_code == 200
    assert answer.json["data"]["id"] == new
    assert answer.json["data"]["oauthConnections"] == before["oauthConnections"]
    assert answer.json["data"]["organizations"][0]["members"][0]["id"] == new
    assert api.get(f"/users/{user}").status_code == 404
    assert api.get(f"/users/{new}").json == answer.json


def test_a_rename_to_a_taken_id_is_409(api, new_user):
    user, other = new_user(), new_user()

    assert error(api.put(f"/users/{user}", {"userId": other}), 409) == "User already exists"
    assert api.get(f"/users/{user}").status_code == 200


def test_a_rename_to_the_same_id_is_nothing(api, new_user):
    user = new_user()
    assert api.put(f"/users/{user}", {"userId": user}).status_code == 200


@pytest.mark.parametrize("body", [{}, {"userId": None}, {"id": None, "flavour": "vanilla"}])
def test_an_update_without_a_field_changes_nothing(api, new_user, body):
    user = new_user()
    before = api.get(f"/users/{user}").json

    answer = api.put(f"/users/{user}", body)

    assert (answer.status_code, answer.json) == (200, before)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"userId": "a b"}, "userId must match"),
        ({"userId": "ada", "id": "bruno"}, "id must be the same as userId"),
    ],
)
def test_a_rename_needs_a_good_id(api, new_user, body, message):
    assert error(api.put(f"/users/{new_user()}", body), 400).startswith(message)


# --- delete


def test_deleting_answers_with_the_deleted_user(api, new_user, new_organization):
    slug = new_organization()
    user = new_user(slugs=(slug,))
    before = api.get(f"/users/{user}").json

    answer = api.delete(f"/users/{user}")

    assert (answer.status_code, answer.json) == (200, before)
    assert error(api.delete(f"/users/{user}"), 404) == "User not found"
    assert api.get(f"/organizations/{slug}").json["data"]["members"] == []


# --- the list


@pytest.mark.slow
def test_the_list_holds_everybody_in_order(api, new_user):
    users = {new_user(), new_user(), new_user()}

    listed = api.get("/users").json

    ids = [user["id"] for user in listed["data"]]
    assert users <= set(ids)
    assert len(ids) == len(set(ids))
    assert listed.keys() == {"data"}
    assert all(
        {"id", "createdAt", "oauthConnections", "organizations"} == user.keys() for user in listed["data"]
    )


@pytest.mark.slow
def test_paging_shows_everybody_once(api, new_user):
    for _ in range(5):
        new_user()
    everybody = [user["id"] for user in api.get("/users").json["data"]]

    # Other tests of this process have registered users too.
    size = 2 + len(everybody) // 10

    found = list(pages(api, "/users", size))

    assert [user for page in found for user in page] == everybody
    assert {len(page) for page in found[:-1]} == {size}


def test_a_page_that_holds_everything_is_the_last(api, new_user, new_organization):
    slug = new_organization()
    new_user(slugs=(slug,)), new_user(slugs=(slug,))

    assert api.get(f"/organizations/{slug}/members", limit=2).json["nextCursor"] is None
    assert api.get(f"/organizations/{slug}/members", limit=1).json["nextCursor"] is not None


@pytest.mark.slow
def test_a_cursor_without_a_limit_is_the_rest_of_the_list(api, new_user):
    new_user(), new_user()
    everybody = [user["id"] for user in api.get("/users").json["data"]]
    first = api.get("/users", limit=1).json

    rest = api.get("/users", cursor=first["nextCursor"]).json

    assert [user["id"] for user in rest["data"]] == everybody[1:]
    assert rest["nextCursor"] is None


def test_a_cursor_outlives_the_user_it_names(new_api, new_organization, new_user):
    slug = new_organization()
    api = new_api(slug)
    first, second, _ = sorted(new_user(slugs=(slug,)) for _ in range(3))
    cursor = api.get("/users", limit=1).json["nextCursor"]
    assert api.delete(f"/users/{first}").status_code == 200

    assert [user["id"] for user in api.get("/users", limit=1, cursor=cursor).json["data"]] == [second]


@pytest.mark.parametrize(
    "cursor",
    ["!", "abc", "YWRh=", "a", "AA==", "YQBi", "w6Q=", "Li4v", "YWRh\n", "\u00e4\u00e4", "x" * 400, "YW Rh"],
)
def test_a_cursor_that_is_not_ours_is_refused(api, cursor):
    assert error(api.get("/users", limit=1, cursor=cursor), 400).startswith("cursor ")
    assert error(api.get("/organizations", limit=1, cursor=cursor), 400).startswith("cursor ")


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "x", "", "1.5"])
def test_a_page_holds_one_to_a_thousand(api, limit):
    assert error(api.get("/users", limit=limit), 400).startswith("limit must be")


@pytest.mark.slow
def test_the_list_costs_the_same_statements_for_three_and_for_thirty(racing_app, racer, unique):
    database = racing_app.extensions[EXTENSION].stores.database
    slugs = [unique("org"), unique("org")]
    for slug in slugs:
        racer.post("/organizations", {"slug": slug, "name": None})

    def grow(by):
        for _ in range(by):
            user = unique("many")
            racer.post("/users", {"id": user, "organizationSlugs": slugs})
            racer.post(f"/users/{user}/oauth/google", {"accessToken": "t", "scope": ["s"]})

    counts = []
    for more in (3, 27):
        grow(more)
        with recorded(database) as statements:
            assert racer.get("/users").status_code == 200
        counts.append(Counter(statement.split()[0] for statement in statements))

    assert counts[0] == counts[1]
    assert counts[0]["SELECT"] <= 5


# --- keys that are bound to an organization


def test_a_bound_key_makes_members_of_its_organization(new_api, new_organization, unique):
    slug = new_organization()
    created = new_api(slug).post("/users", {"id": unique("ada")}).json["data"]
    assert [each["slug"] for each in created["organizations"]] == [slug]

"""The members of an organization."""

from __future__ import annotations

import pytest

from tests.app.answers import error


def members(api, slug):
    return [member["id"] for member in api.get(f"/organizations/{slug}").json["data"]["members"]]


def test_members_are_added_with_201(api, new_user, new_organization):
    slug, users = new_organization(), sorted([new_user(), new_user()])

    answer = api.post(f"/organizations/{slug}/members", {"userIds": users})

    assert (answer.status_code, answer.json) == (
        201,
        {"data": f"2 users added successfully to {slug}", "added": users, "alreadyMembers": [], "count": 2},
    )
    assert members(api, slug) == users


def test_adding_members_counts_only_new_members(api, new_user, new_organization):
    slug = new_organization()
    member, fresh = new_user(slugs=(slug,)), new_user()

    answer = api.post(f"/organizations/{slug}/members", {"userIds": [member, fresh, fresh]})

    assert (answer.status_code, answer.json["data"]) == (201, f"1 users added successfully to {slug}")
    assert (answer.json["added"], answer.json["alreadyMembers"], answer.json["count"]) == (
        [fresh],
        [member],
        1,
    )
    assert members(api, slug) == sorted([member, fresh])


@pytest.mark.parametrize("everybody", [True, False])
def test_adding_members_again_is_200(api, new_user, new_organization, everybody):
    slug = new_organization()
    user = new_user(slugs=(slug,))

    answer = api.post(f"/organizations/{slug}/members", {"userIds": [user] if everybody else []})

    assert (answer.status_code, answer.json["data"]) == (200, f"All users are already members of {slug}")
    listed = [user] if everybody else []
    assert (answer.json["added"], answer.json["alreadyMembers"], answer.json["count"]) == ([], listed, 0)


def test_an_unknown_user_adds_no_member(api, new_user, new_organization):
    slug, user = new_organization(), new_user()

    answer = api.post(f"/organizations/{slug}/members", {"userIds": [user, "nobody"]})

    assert error(answer, 404) == "User not found"
    assert members(api, slug) == []


def test_members_are_removed_and_the_users_stay(api, new_user, new_organization):
    slug = new_organization()
    gone, stays = new_user(slugs=(slug,)), new_user(slugs=(slug,))
    stranger = new_user()

    answer = api.delete(f"/organizations/{slug}/members", {"userIds": [stranger, gone, gone]})

    assert (answer.status_code, answer.json) == (
        200,
        {
            "data": f"Users removed successfully from {slug}",
            "removed": [gone],
            "notMembers": [stranger],
            "count": 1,
        },
    )
    assert members(api, slug) == [stays]
    assert api.get(f"/users/{gone}").json["data"]["organizations"] == []


def test_one_member_is_removed_by_the_path_alone(api, new_user, new_organization):
    slug = new_organization()
    gone, stays = new_user(slugs=(slug,)), new_user(slugs=(slug,))

    answer = api.delete(f"/organizations/{slug}/members/{gone}")

    assert (answer.status_code, answer.json) == (200, {"data": {"success": True}})
    assert members(api, slug) == [stays]
    assert api.get(f"/users/{gone}").status_code == 200
    assert (
        error(api.delete(f"/organizations/{slug}/members/{gone}"), 404) == f"User is not a member of {slug}"
    )
    assert error(api.delete(f"/organizations/{slug}/members/nobody"), 404) == "User not found"


def test_an_unknown_user_removes_no_member(api, new_user, new_organization):
    slug = new_organization()
    user = new_user(slugs=(slug,))

    answer = api.delete(f"/organizations/{slug}/members", {"userIds": [user, "nobody"]})

    assert error(answer, 404) == "User not found"
    assert members(api, slug) == [user]


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "userIds is required"),
        ({"userIds": None}, "userIds is required"),
        ({"userIds": "ada"}, "userIds must be an array"),
        ({"userIds": {"0": "ada"}}, "userIds must be an array"),
        ({"userIds": [7]}, "userIds[0] must be a string"),
        ({"userIds": ["ada", None]}, "userIds[1] must not be null"),
        ({"userIds": ["ada"] * 10_001}, "userIds must have at most 10000 elements"),
    ],
)
def test_a_bad_list_of_users_is_refused_with_the_place(api, new_organization, method, body, message):
    answer = api.call(method, f"/organizations/{new_organization()}/members", json=body)

    assert error(answer, 400).startswith(message)


def test_ten_thousand_names_fit_into_one_request(api, new_organization):
    names = [f"person-{number}" for number in range(10_000)]

    answer = api.post(f"/organizations/{new_organization()}/members", {"userIds": names})

    assert error(answer, 404) == "User not found"


def test_members_are_listed_as_users(api, sandbox, new_user, new_organization):
    slug, other = new_organization(), new_organization()
    ada = new_user(sandbox.account("google", "ada@example.com"), slugs=(slug, other))
    eve = new_user(slugs=(slug,))

    listed = api.get(f"/organizations/{slug}/members").json

    assert [user["id"] for user in listed["data"]] == sorted([ada, eve])
    assert listed == {"data": [api.get(f"/users/{user}").json["data"] for user in sorted([ada, eve])]}
    narrow = api.get(f"/organizations/{slug}/members", include="organizations").json["data"]
    assert narrow[0].keys() == {"id", "createdAt", "organizations"}

"""Changes of users, organizations and connections at the same moment, on both kinds of database."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

ROUNDS = 5
USER, ORGANIZATION = "/users/{user}", "/organizations/{slug}"
MEMBERS, GOOGLE = ORGANIZATION + "/members", USER + "/oauth/google"
TOKENS = {"accessToken": "planted", "scope": ["openid"]}
PAIR, REVERSED = {"userIds": ["{user}", "{other}"]}, {"userIds": ["{other}", "{user}"]}

# Calls at once, of which each names what a round has made, and the statuses that they may have, in order.
RACES = {
    "create a user": ([("POST", "/users", {"id": "{new}"})] * 2, [{201}, {409}]),
    "delete a user": ([("DELETE", USER, None)] * 2, [{200}, {404}]),
    "rename to one id": (
        [("PUT", USER, {"userId": "{new}"}), ("PUT", "/users/{other}", {"userId": "{new}"})],
        [{200}, {409}],
    ),
    "rename and delete": (
        [("PUT", USER, {"userId": "{new}"}), ("DELETE", USER, None)],
        [{200}, {200, 404}],
    ),
    "create an organization": ([("POST", "/organizations", {"slug": "{new}"})] * 2, [{200}, {409}]),
    "delete an organization": ([("DELETE", ORGANIZATION, None)] * 2, [{200}, {404}]),
    "change, join and delete": (
        [("PUT", ORGANIZATION, {"name": "New"}), ("POST", MEMBERS, PAIR), ("DELETE", ORGANIZATION, None)],
        [{200}, {200, 201, 404}, {201, 404}],
    ),
    "add the same members": ([("POST", MEMBERS, PAIR), ("POST", MEMBERS, REVERSED)], [{200}, {201}]),
    "add and delete a member": (
        [("POST", MEMBERS, {"userIds": ["{user}"]}), ("DELETE", USER, None)],
        [{200}, {201, 404}],
    ),
    "connect twice": ([("POST", GOOGLE, TOKENS), ("POST", GOOGLE, TOKENS)], [{201}, {201}]),
    "connect and delete": ([("POST", GOOGLE, TOKENS), ("DELETE", USER, None)], [{200}, {201, 404}]),
}


def filled(value, names):
    if isinstance(value, str):
        return value.format(**names)
    if isinstance(value, list):
        return [filled(each, names) for each in value]
    return {name: filled(each, names) for name, each in value.items()} if value else value


@pytest.mark.parametrize(("calls", "allowed"), RACES.values(), ids=RACES)
def test_concurrent_changes_follow_each_other(at_once, racer, unique, calls, allowed):
    for _ in range(ROUNDS):
        names = {name: unique(name) for name in ("user", "other", "slug", "new")}
        for name in ("user", "other"):
            racer.post("/users", {"id": names[name]})
        racer.post("/organizations", {"slug": names["slug"]})

        def send(api, call, names=names):
            method, path, body = call
            return api.call(method, filled(path, names), json=filled(body, names))

        answers = at_once([lambda api, call=call: send(api, call) for call in calls])

        statuses = sorted(answer.status_code for answer in answers)
        assert all(status in each for status, each in zip(statuses, allowed, strict=True)), statuses
        kept = racer.get(filled(USER, names))
        if kept.status_code == 200:
            assert len(kept.json["data"]["oauthConnections"]) <= 1
        organization = racer.get(filled(ORGANIZATION, names))
        if organization.status_code == 200:
            members = [each["id"] for each in organization.json["data"]["members"]]
            assert members in ([], sorted([names["user"], names["other"]]))

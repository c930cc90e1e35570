"""The routes of all connections of a user; those under ``oauth`` mean the default ones."""

from __future__ import annotations

import pytest

from app.accounts import disconnect
from tests import people
from tests.app.consenting import arrive, consent, link, query_of
from tests.app.days import DAY
from tests.conftest import Api, connect, stores_of
from tests.dashboard.audit_records import records
from tests.waiting import until

FIELDS = [
    *("id", "provider", "type", "email", "label", "default", "alive", "scope", "expiresAt", "createdAt"),
    "lastRead",
]


def path(user, connection=None):
    return f"/users/{user}/connections" + ("" if connection is None else f"/{connection}")


def listed(api, user):
    answer = api.get(path(user))
    assert answer.status_code == 200, answer.text
    return answer.json["data"]


def shown(api, user):
    """Address, label and default of each connection."""
    return [(each["email"], each["label"], each["default"]) for each in listed(api, user)]


def add(api, user, account, **more):
    return api.post(path(user), people.posted(account) | {"provider": account.provider} | more)


def patch(api, user, connection, **body):
    return api.call("PATCH", path(user, connection), json=body)


@pytest.fixture
def accounts(sandbox):
    """Two accounts at Google and one at Microsoft."""
    return [
        sandbox.account("google", "ada@example.com"),
        sandbox.account("google", "family@example.com"),
        sandbox.account("microsoft", "ada@contoso.example"),
    ]


@pytest.fixture
def user(new_user, accounts):
    return new_user(*accounts)


def test_accounts_are_added_and_listed(api, accounts, new_user):
    user = new_user()

    answers = [add(api, user, each, label=label) for each, label in zip(accounts, "abc", strict=True)]

    assert [each.status_code for each in answers] == [201, 201, 201]
    assert shown(api, user) == [
        ("ada@example.com", "a", True),
        ("family@example.com", "b", False),
        ("ada@contoso.example", "c", True),
    ]
    assert [each.json["data"] for each in answers] == listed(api, user)
    for each in listed(api, user):
        assert sorted(each) == sorted(FIELDS)
        assert (each["type"], each["alive"], each["lastRead"]) == ("oauth2", True, None)
        assert api.get(path(user, each["id"])).json["data"] == each


def test_the_same_account_again_replaces_its_tokens(api, accounts, user):
    before = listed(api, user)

    again = add(api, user, accounts[1], email="Family@Example.com", label="Family")

    assert again.status_code == 200
    assert again.json["data"]["id"] == before[1]["id"]
    assert shown(api, user)[1] == ("Family@Example.com", "Family", False)
    assert add(api, user, accounts[1]).json["data"]["label"] == "Family"


def test_routes_under_oauth_mean_the_default_connection(api, accounts, user):
    assert [each["email"] for each in api.get(f"/users/{user}/oauth").json["data"]] == [
        "ada@example.com",
        "ada@contoso.example",
    ]
    assert api.get(f"/users/{user}/oauth/google").json["data"]["email"] == "ada@example.com"
    of_user = api.get(f"/users/{user}").json["data"]["oauthConnections"]
    assert [each["email"] for each in of_user] == [each.email for each in accounts]

    second = listed(api, user)[1]["id"]
    assert patch(api, user, second, default=True).status_code == 200
    assert api.get(f"/users/{user}/oauth/google").json["data"]["email"] == "family@example.com"

    assert api.delete(f"/users/{user}/oauth/google").json["data"] == {"success": True}
    assert shown(api, user)[0] == ("ada@example.com", None, True)


def test_posting_to_oauth_replaces_the_default_connection_only(api, sandbox, user):
    other = sandbox.account("google", "other@example.com")

    connect(api, user, other)

    assert [each for each, *_ in shown(api, user)] == [
        "other@example.com",
        "family@example.com",
        "ada@contoso.example",
    ]


def test_a_default_connection_is_chosen_and_its_successor_is_the_oldest(api, sandbox, user):
    add(api, user, sandbox.account("google", "third@example.com"))
    third = listed(api, user)[2]["id"]

    changed = patch(api, user, third, default=True)

    assert changed.json["data"]["default"]
    assert [each for each, *_ in shown(api, user)][:3] == [
        "third@example.com",
        "ada@example.com",
        "family@example.com",
    ]
    assert api.delete(path(user, third)).status_code == 200
    assert shown(api, user)[:2] == [("ada@example.com", None, True), ("family@example.com", None, False)]
    assert api.delete(path(user, third)).status_code == 404
    assert api.get(path(user, third)).json["code"] == "connectionNotFound"


@pytest.mark.parametrize("meanwhile", ["delete", "another default"])
def test_a_delete_of_the_default_connection_keeps_its_successor(api, user, meanwhile, monkeypatch):
    """It waits for a provider between two transactions; a repeated call, or a change, comes in between."""
    stop, answers = disconnect.stop_channels_of, []
    second = listed(api, user)[1]["id"]

    def wait(ids):
        stop(ids)
        monkeypatch.setattr(disconnect, "stop_channels_of", stop)
        other = Api(api.client.application.test_client(), api.key)
        if meanwhile == "delete":
            answers.append(other.delete(f"/users/{user}/oauth/google"))
        else:
            answers.append(patch(other, user, second, default=True))

    monkeypatch.setattr(disconnect, "stop_channels_of", wait)
    answers.append(api.delete(f"/users/{user}/oauth/google"))

    assert [each.status_code for each in answers] == [200, 404 if meanwhile == "delete" else 200]
    assert shown(api, user)[0] == ("family@example.com", None, True)


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({}, 200, None),
        ({"label": None, "default": None}, 200, None),
        ({"default": False}, 400, "default"),
        ({"default": "true"}, 400, "default"),
        ({"label": "x" * 129}, 400, "label"),
        ({"label": 7}, 400, "label"),
    ],
)
def test_a_change_that_is_none_or_is_wrong(api, user, body, status, param):
    before = listed(api, user)

    answer = patch(api, user, before[0]["id"], **body)

    assert (answer.status_code, answer.json.get("param")) == (status, param)
    assert listed(api, user) == before


def test_a_label_is_set_and_removed(api, user):
    second = listed(api, user)[1]["id"]

    assert patch(api, user, second, label="Family").json["data"]["label"] == "Family"
    assert patch(api, user, second, default=False).json["data"]["label"] == "Family"
    assert patch(api, user, second, label="").json["data"]["label"] is None


def test_a_connection_of_another_user_does_not_exist(api, sandbox, user, new_user):
    other = new_user(sandbox.account("google", "bruno@example.com"))
    theirs = listed(api, other)[0]["id"]

    answers = [
        api.get(path(user, theirs)),
        patch(api, user, theirs, label="mine"),
        api.delete(path(user, theirs)),
        api.get(f"/users/{user}/oauth/google/link", account=theirs),
        api.get(f"/users/{user}/scheduling", connection=theirs, **DAY),
        api.get(path(user, "no-such-id")),
    ]

    assert [(each.status_code, each.json["code"]) for each in answers] == [(404, "connectionNotFound")] * 6
    assert shown(api, other) == [("bruno@example.com", None, True)]


def test_keys_of_another_organization_find_no_user(api, new_api, new_user, new_organization, accounts):
    slug, elsewhere = new_organization(), new_organization()
    user = new_user(*accounts, slugs=(slug,))
    own, strange = new_api(organization=slug), new_api(organization=elsewhere)
    one = listed(own, user)[1]["id"]

    answers = [
        strange.get(path(user)),
        strange.get(path(user, one)),
        add(strange, user, accounts[0]),
        patch(strange, user, one, label="mine"),
        strange.delete(path(user, one)),
    ]

    assert [(each.status_code, each.json["code"]) for each in answers] == [(404, "userNotFound")] * 5
    assert patch(own, user, one, label="ours").status_code == 200


def test_changes_are_audited(api, stores, user):
    second = listed(api, user)[1]["id"]
    patch(api, user, second, label="Family", default=True)
    patch(api, user, second, label="Family")
    api.delete(path(user, second))

    actions = [action for _, action, *_ in records(stores, f"{user}/google")]
    assert actions == ["deleteConnection", "changeConnection"]


def test_the_last_read_of_each_main_calendar_is_shown(api, worker, sandbox, user):
    def last_reads():
        return [each["lastRead"] for each in listed(api, user)]

    def ask():
        return api.get(f"/users/{user}/scheduling", {"Cache-Control": "no-cache"}, **DAY)

    assert ask().status_code == 200
    until(lambda: all(each and each["ok"] for each in last_reads()))

    sandbox.fault(email="family@example.com", status=404)
    failed = ask()
    assert failed.status_code == 404
    until(lambda: not last_reads()[1]["ok"])
    first, second, third = last_reads()
    assert first["ok"]
    assert third["ok"]
    assert second == {
        "at": second["at"],
        "ok": False,
        "reason": "notFound",
        "message": failed.json["failedCalendars"][0]["message"],
        "since": second["at"],
    }
    ask()
    until(lambda: last_reads()[1]["at"] > second["at"])
    assert last_reads()[1]["since"] == second["since"]

    sandbox.clear_faults()
    ask()
    until(lambda: last_reads()[1]["ok"])
    assert sorted(last_reads()[1]) == ["at", "ok"]


# --- consents


def finished(api, url, email):
    """The page after a consent."""
    return arrive(api, consent(url, email))


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_a_consent_adds_an_account_and_renews_the_same_one(api, worker, sandbox, new_user, provider):
    user = new_user()
    for email in ("one@example.com", "two@example.com"):
        sandbox.account(provider, email)
        assert finished(api, link(api, user, provider, account="add"), email).status_code == 200
    first, second = listed(api, user)
    assert (first["email"], second["email"]) == ("one@example.com", "two@example.com")
    patch(api, user, second["id"], label="Two")

    page = finished(api, link(api, user, provider, account="add"), "two@example.com")

    assert "two@example.com" in page.text
    again = listed(api, user)
    assert [each["id"] for each in again] == [first["id"], second["id"]]
    assert again[1]["label"] == "Two"
    assert again[1]["createdAt"] > second["createdAt"]


def test_the_link_of_another_account_lets_the_person_choose(api, user):
    added = query_of(link(api, user, "google", account="add"))
    usual = query_of(link(api, user, "google"))
    second = query_of(link(api, user, "google", account=listed(api, user)[1]["id"]))

    assert added["prompt"] == "select_account consent"
    assert "login_hint" not in added
    assert (usual["prompt"], usual["login_hint"]) == ("consent", "ada@example.com")
    assert second["login_hint"] == "family@example.com"
    assert query_of(link(api, user, "microsoft", account="add"))["prompt"] == "select_account"


def test_a_consent_without_account_replaces_the_default_connection(api, worker, sandbox, user):
    sandbox.account("google", "new@example.com")

    finished(api, link(api, user, "google"), "new@example.com")

    assert [each for each, *_ in shown(api, user)][:2] == ["new@example.com", "family@example.com"]


def test_only_the_account_of_the_named_connection_may_answer(api, worker, sandbox, user):
    second = listed(api, user)[1]["id"]

    other = finished(api, link(api, user, "google", account=second), "ada@example.com")
    assert other.status_code == 400
    assert "Another account was chosen" in other.text

    assert finished(api, link(api, user, "google", account=second), "family@example.com").status_code == 200
    assert listed(api, user)[1]["id"] == second

    url = link(api, user, "google", account=second)
    api.delete(path(user, second))
    gone = finished(api, url, "family@example.com")
    assert "was deleted" in gone.text
    assert len(listed(api, user)) == 2


def test_links_for_a_connection_lead_to_its_provider(api, user):
    microsoft = listed(api, user)[2]["id"]

    def providers(**query):
        return [each["provider"] for each in api.get(f"/users/{user}/oauth/links", **query).json["data"]]

    assert providers() == providers(account="add") == ["google", "microsoft"]
    assert providers(account=microsoft) == ["microsoft"]
    assert api.get(f"/users/{user}/oauth/google/link", account=microsoft).status_code == 404
    assert api.get(f"/users/{user}/oauth/links", account="nobody").json["code"] == "connectionNotFound"


def test_deleting_one_account_revokes_its_grant_and_not_the_other(api, worker, sandbox, new_user):
    user = new_user()
    for email in ("one@example.com", "two@example.com"):
        sandbox.account("google", email)
        finished(api, link(api, user, "google", account="add"), email)
    first, second = listed(api, user)

    api.delete(path(user, first["id"]))

    busy = api.get(f"/users/{user}/calendar/busy", **DAY)
    assert busy.status_code == 200, busy.text
    assert [each["id"] for each in listed(api, user)] == [second["id"]]
    assert stores_of(api.client.application).calendar_lists.load([first["id"]]) == {}
